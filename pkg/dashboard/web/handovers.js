// Tasks that changed hands, the newest first.
import { byID, h, keyed, setText, table } from './dom.js';
import { clock, count, median, milliseconds, plural } from './format.js';

let body;
let known = null; // keys seen so far; null: nothing was shown yet

// gapsOf leaves out tasks that had no record at their former place, which have no gap.
export const gapsOf = (o) => o.handovers.map((x) => x.gap_ms).filter((ms) => ms > 0);

const keyOf = (x) => `${x.task}/${x.to}/${x.generation}`;

export function showHandovers(o) {
  const place = byID('handovers');
  const gaps = gapsOf(o);
  setText(byID('handovers-note'), gaps.length
    ? `${plural(o.handovers.length, 'task')}: gap ${milliseconds(median(gaps))} median, ${milliseconds(Math.max(...gaps))} longest` : '');
  if (!o.handovers.length) {
    if (body !== null) place.replaceChildren(h('p', { class: 'empty' }, 'No task has changed hands of late. The gap is the time from the last record at the old place to the first at the new one.'));
    body = null;
    known = new Set();
    return;
  }
  if (!body) {
    const [element, rows] = table('Handovers', [['Time', ''], ['Task', ''], ['From → to', ''], ['Gap', 'grow'], ['Gathered', 'num'], ['Slowest record', 'num']]);
    rows.addEventListener('animationend', (event) => event.target.classList.remove('new'));
    place.replaceChildren(element);
    body = rows;
  }
  const scale = Math.max(100, ...gaps);
  const before = known;
  known = new Set(o.handovers.map(keyOf));
  keyed(body, o.handovers, keyOf,
    (x) => h('tr', { class: before && !before.has(keyOf(x)) ? 'new' : null }, h('td', { class: 'time' }), h('th', { scope: 'row', class: 'id' }), h('td', { class: 'route' }),
      h('td', {}, h('div', { class: 'gap' }, h('i'), h('span'))), h('td', { class: 'num' }), h('td', { class: 'num' })),
    (tr, x) => {
      const [time, task, route, gap, records, slowest] = tr.children;
      setText(time, clock(x.at_ms));
      setText(task, x.task);
      setText(route, `${x.from} → ${x.to}`);
      gap.firstElementChild.style.setProperty('--done', `${x.gap_ms > 0 ? Math.max(1, (100 * x.gap_ms) / scale) : 0}%`);
      setText(gap.firstElementChild.lastElementChild, x.gap_ms > 0 ? milliseconds(x.gap_ms) : 'no record before');
      gap.firstElementChild.lastElementChild.classList.toggle('none', x.gap_ms <= 0);
      setText(records, count(x.records));
      setText(slowest, milliseconds(x.slowest_ms));
    });
}
