// Instances and the tasks that they run, learn and keep: one column per task as long as these fit, else each
// instance's own tasks one after the other.
import { actionOf, ask } from './actions.js';
import { byID, h, keyed, setAttribute, setText } from './dom.js';
import { count, duration, plural, rate, sum } from './format.js';
import { progress } from './learners.js';

const columnsFit = 40;
const narrow = matchMedia('(max-width: 860px)');

const states = { starting: '◌', running: '●', draining: '◐', drained: '○', stopping: '○' };

// cellsOf gives what an instance has to do with each of its tasks.
function cellsOf(o, i) {
  const failing = new Map(o.failed.filter((f) => f.instance === i.id).map((f) => [f.task, f.error]));
  const cells = new Map();
  for (const t of i.standby) cells.set(t, { role: 'standby', text: 'kept as a standby' });
  for (const l of i.learning) {
    const done = progress(i, l);
    cells.set(l.task, l.ready
      ? { role: 'ready', text: 'learned, ready to take over' }
      : { role: 'learner', done, text: l.lag < 0 ? 'begins to learn' : `learns, ${done} % done, ${plural(l.lag, 'change')} behind` });
  }
  for (const t of i.active) cells.set(t, { role: 'active', text: t in i.lag ? `runs, ${plural(i.lag[t], 'input record')} behind` : 'is being opened' });
  for (const [t, error] of failing) cells.set(t, { role: 'failing', text: `cannot go on: ${error}` });
  return cells;
}

function stateText(o, i) {
  if (i.state !== 'draining') return i.state;
  const left = i.deadline_ms ? `, ${duration((i.deadline_ms - o.at_ms) / 1000)} to go` : '';
  return `draining, ${i.active.length} left${left}`;
}

let shape; // of the present table; another one is built anew
let body;
let current; // key of the cell that Tab leads to
let columns;

function build(o, wide) {
  const parts = new Map();
  for (const t of o.tasks) {
    const [sub, partition] = t.id.split('_');
    parts.set(sub, [...(parts.get(sub) ?? []), [t.id, partition]]);
  }
  columns = wide ? o.tasks.map((t) => t.id) : null;
  const numbers = [['Instance', 'name'], ['State', 'state'], ['Tasks', 'num'], ['In /s', 'num'], ['Lag', 'num']];
  const rows = wide && parts.size ? 2 : 1;
  const first = h('tr', {}, numbers.map(([name, kind]) => h('th', { scope: 'col', class: kind, rowspan: rows }, name)));
  const second = h('tr', { class: 'partitions' });
  if (wide) {
    for (const [sub, list] of parts) {
      first.append(h('th', { scope: 'colgroup', colspan: list.length, class: 'part' }, `Subtopology ${sub}`));
      list.forEach(([id, partition], n) => second.append(h('th', { scope: 'col', class: n ? 'task' : 'task first', 'aria-label': `Task ${id}` }, partition)));
    }
  } else {
    first.append(h('th', { scope: 'col', class: 'tasks' }, 'Subtopology_partition'));
  }
  if (o.actions) first.append(h('th', { scope: 'col', class: 'act', rowspan: rows }, h('span', { class: 'hidden' }, 'Actions')));
  body = h('tbody');
  const cell = o.tasks.length <= 12 ? '2.8rem' : o.tasks.length <= 24 ? '2.2rem' : '1.5rem';
  byID('grid').replaceChildren(h('table', { class: wide ? 'grid columns' : 'grid wrapped', vars: { '--cell': cell } },
    h('caption', { class: 'hidden' }, 'Instances and tasks'), h('thead', {}, first, wide ? second : null), body));
}

function createRow(o) {
  return (i) => h('tr', {},
    h('th', { scope: 'row', class: 'name' }, h('span', { class: 'id' }, i.id), h('span', { class: 'labels' })),
    h('td', { class: 'state' }, h('i', { 'aria-hidden': 'true' }), h('span')),
    h('td', { class: 'num' }), h('td', { class: 'num' }), h('td', { class: 'num' }),
    columns
      ? columns.map((t, n) => h('td', { class: n && columns[n - 1].split('_')[0] === t.split('_')[0] ? 'task' : 'task first', 'data-task': t }))
      : h('td', { class: 'tasks' }, h('div', { class: 'cells' })),
    o.actions ? h('td', { class: 'act' }, h('button', { type: 'button', class: 'quiet', hidden: true })) : null);
}

const createCell = () => h('button', { type: 'button', class: 'cell', tabindex: '-1' }, h('span', { 'aria-hidden': 'true' }));

function updateCell(button, instance, task, cell) {
  button.dataset.role = cell.role;
  button.dataset.at = `${instance}/${task}`;
  button.style.setProperty('--done', `${cell.done ?? 0}%`);
  setAttribute(button, 'aria-label', `Task ${task} on ${instance}: ${cell.text}`);
}

function updateRow(o) {
  return (tr, i) => {
    tr.dataset.state = i.state;
    const [name, state, tasks, records, lag] = tr.children;
    setText(name.lastElementChild, Object.entries(i.labels).map(([k, v]) => `${k}=${v}`).join(' '));
    setText(state.firstElementChild, states[i.state] ?? '');
    setText(state.lastElementChild, stateText(o, i));
    setText(tasks, count(i.active.length));
    setText(records, rate(i.rates.in));
    setText(lag, count(sum(Object.values(i.lag))));
    const cells = cellsOf(o, i);
    if (columns) {
      for (const td of tr.querySelectorAll('td.task')) {
        const cell = cells.get(td.dataset.task);
        if (!cell) td.replaceChildren();
        else {
          if (!td.firstElementChild) td.append(createCell());
          updateCell(td.firstElementChild, i.id, td.dataset.task, cell);
        }
      }
    } else {
      const order = new Map(o.tasks.map((t, n) => [t.id, n]));
      const mine = [...cells].sort(([a], [b]) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
      keyed(tr.querySelector('.cells'), mine, ([t]) => t, createCell, (button, [t, cell]) => {
        setText(button.firstElementChild, mine.length <= 200 ? t : '');
        updateCell(button, i.id, t, cell);
      });
    }
    const button = tr.querySelector('.act button');
    if (button) {
      const what = actionOf(o, i);
      button.hidden = !what;
      button.dataset.what = what ?? '';
      button.dataset.instance = i.id;
      setText(button, what === 'cancel' ? 'Keep…' : 'Leave…');
      setAttribute(button, 'aria-label', what === 'cancel' ? `Keep ${i.id}` : `Let ${i.id} leave`);
    }
  };
}

let last;

export function showGrid(o) {
  last = o;
  const wide = o.tasks.length <= columnsFit && !narrow.matches;
  const now = JSON.stringify([wide, o.actions, wide && o.tasks.map((t) => t.id)]);
  if (now !== shape) {
    build(o, wide);
    shape = now;
  }
  keyed(body, o.instances, (i) => i.id, createRow(o), updateRow(o));
  rove();
  describe();
}

narrow.addEventListener('change', () => last && showGrid(last));

// Tab leads to one cell, arrow keys from there to the others.

const cells = () => [...byID('grid').querySelectorAll('button.cell')];

function rove() {
  const all = cells();
  const chosen = all.find((c) => c.dataset.at === current) ?? all[0];
  for (const c of all) setAttribute(c, 'tabindex', c === chosen ? '0' : '-1');
}

let pointed;

function describe() {
  const cell = pointed?.isConnected ? pointed : cells().find((c) => c === document.activeElement);
  if (cell) setText(byID('detail'), cell.getAttribute('aria-label'));
}

function next(from, key) {
  const row = [...from.closest('tr').querySelectorAll('button.cell')];
  const at = row.indexOf(from);
  switch (key) {
    case 'ArrowLeft': return row[at - 1];
    case 'ArrowRight': return row[at + 1];
    case 'Home': return row[0];
    case 'End': return row.at(-1);
  }
  const step = key === 'ArrowDown' ? 'nextElementSibling' : 'previousElementSibling';
  const { left } = from.getBoundingClientRect();
  for (let tr = from.closest('tr')[step]; tr; tr = tr[step]) {
    const there = [...tr.querySelectorAll('button.cell')];
    if (there.length) return there.reduce((a, b) => (Math.abs(b.getBoundingClientRect().left - left) < Math.abs(a.getBoundingClientRect().left - left) ? b : a));
  }
  return undefined;
}

byID('grid').addEventListener('keydown', (event) => {
  if (!event.target.matches('button.cell') || !/^(Arrow|Home$|End$)/.test(event.key)) return;
  event.preventDefault();
  next(event.target, event.key)?.focus();
});
byID('grid').addEventListener('focusin', (event) => {
  if (!event.target.matches('button.cell')) return;
  current = event.target.dataset.at;
  rove();
  describe();
});
byID('grid').addEventListener('pointerover', (event) => {
  pointed = event.target.closest('button.cell');
  describe();
});
byID('grid').addEventListener('pointerleave', () => { pointed = null; });
byID('grid').addEventListener('click', (event) => {
  const button = event.target.closest('.act button');
  if (button) ask(button.dataset.what, button.dataset.instance);
});
