// What is being learned, by whom, and how long it will take.
import { byID, h, keyed, setAttribute, setText, table } from './dom.js';
import { count, duration, plural } from './format.js';

const paceOver = 15_000; // over which the pace is measured, ms
const paces = new Map(); // per learner: [time, lag] of late

// timeLeft says how long a learner needs at its present pace, in seconds; null: it cannot be told.
function timeLeft(key, lag, now) {
  const seen = paces.get(key) ?? [];
  seen.push([now, lag]);
  while (seen.length > 2 && now - seen[0][0] > paceOver) seen.shift();
  paces.set(key, seen);
  const [at, before] = seen[0];
  const perSecond = ((before - lag) * 1000) / (now - at);
  return now - at >= 2000 && perSecond > 0 ? lag / perSecond : null;
}

export function progress(instance, l) {
  if (l.ready) return 100;
  const most = Math.max(instance.behind[l.task] ?? 0, l.lag, 1);
  return l.lag < 0 ? 0 : Math.min(99, Math.floor(100 * (1 - l.lag / most)));
}

function rows(o) {
  const owner = new Map(o.tasks.map((t) => [t.id, t.active]));
  const out = [];
  const alive = new Set();
  for (const i of o.instances) {
    for (const l of i.learning) {
      const key = `${l.task}/${i.id}`;
      alive.add(key);
      const left = l.lag >= 0 ? timeLeft(key, l.lag, i.seen_ms) : null;
      out.push({
        key, task: l.task, from: owner.get(l.task) ?? '–', to: i.id, done: progress(i, l), ready: l.ready,
        behind: l.lag < 0 ? 'starting' : count(l.lag), left: l.ready ? 'ready' : left === null ? '–' : duration(left),
      });
    }
  }
  for (const key of paces.keys()) if (!alive.has(key)) paces.delete(key);
  return out;
}

let body;

export function showLearners(o) {
  const all = rows(o);
  setText(byID('learners-note'), all.length ? `${plural(all.length, 'task')} being copied before they change hands` : '');
  const place = byID('learners');
  if (!all.length) {
    if (body !== null) place.replaceChildren(h('p', { class: 'empty' }, 'Nothing is being learned.'));
    body = null;
    return;
  }
  if (!body) {
    const [element, rowsOf] = table('Learners', [['Task', ''], ['From → to', ''], ['Progress', 'grow'], ['Behind', 'num'], ['Time left', 'num']]);
    place.replaceChildren(element);
    body = rowsOf;
  }
  keyed(body, all, (r) => r.key,
    () => h('tr', {}, h('th', { scope: 'row', class: 'id' }), h('td', { class: 'route' }),
      h('td', {}, h('div', { class: 'bar', role: 'progressbar', 'aria-valuemin': '0', 'aria-valuemax': '100' }, h('i'), h('span'))), h('td', { class: 'num' }), h('td', { class: 'num' })),
    (tr, r) => {
      const [task, route, cell, behind, left] = tr.children;
      setText(task, r.task);
      setText(route, `${r.from} → ${r.to}`);
      const bar = cell.firstElementChild;
      setAttribute(bar, 'aria-valuenow', String(r.done));
      setAttribute(bar, 'aria-label', `Task ${r.task}`);
      bar.style.setProperty('--done', `${r.done}%`);
      bar.dataset.ready = r.ready;
      setText(bar.lastElementChild, `${r.done} %`);
      setText(behind, r.behind);
      setText(left, r.left);
    });
}
