// The row of numbers on top, with what they were in the last two minutes.
import { byID, h, keyed, s, setAttribute, setText } from './dom.js';
import { count, median, milliseconds, plural, rate, sum } from './format.js';
import { gapsOf } from './handovers.js';

const kept = 120;
const history = { in: [], out: [], lag: [] };

function remember(name, value) {
  history[name].push(value);
  if (history[name].length > kept) history[name].shift();
  return value;
}

function tilesOf(o) {
  const all = (f) => sum(o.instances.map(f));
  const runs = Math.max(0, o.tasks.filter((t) => t.active !== null).length - o.failed_tasks);
  const learning = all((i) => i.learning.length);
  const standby = all((i) => i.standby.length);
  const gaps = gapsOf(o);
  const dead = all((i) => i.counts.dead_lettered ?? 0);
  const skipped = all((i) => i.counts.skipped ?? 0);
  const dropped = all((i) => i.counts.dropped ?? 0);
  return [
    { name: 'Records in', value: rate(remember('in', all((i) => i.rates.in))), unit: '/s', line: history.in },
    { name: 'Records out', value: rate(remember('out', all((i) => i.rates.out))), unit: '/s', line: history.out },
    { name: 'Input lag', value: count(remember('lag', sum(o.tasks.map((t) => t.lag)))), unit: 'records', line: history.lag },
    {
      name: 'Tasks that run', value: count(runs), unit: `of ${count(o.tasks.length)}`, state: o.failed_tasks ? 'bad' : runs < o.tasks.length ? 'warn' : '',
      note: o.failed_tasks ? `${plural(o.failed_tasks, 'task')} cannot go on` : `${count(learning)} learning, ${count(standby)} standby`,
    },
    gaps.length
      ? { name: 'Handover gap', value: milliseconds(median(gaps)).split(' ')[0], unit: `${milliseconds(median(gaps)).split(' ')[1]} median`, note: `longest ${milliseconds(Math.max(...gaps))}, of ${plural(o.handovers.length, 'handover')}` }
      : { name: 'Handover gap', value: '–', unit: '', note: 'no handover of late' },
    { name: 'Dead letters', value: count(dead), unit: '', state: dead ? 'warn' : '', note: `${count(skipped)} skipped, ${count(dropped)} dropped` },
  ];
}

const width = 120;
const height = 26;

function draw(path, area, values) {
  const most = Math.max(...values, 1);
  const points = values.map((v, i) => `${(width - (values.length - 1 - i) * (width / (kept - 1))).toFixed(1)} ${(height - 1 - (v / most) * (height - 3)).toFixed(1)}`);
  setAttribute(path, 'd', `M${points.join('L')}`);
  setAttribute(area, 'd', `M${points[0].split(' ')[0]} ${height}L${points.join('L')}L${width} ${height}Z`);
}

function create(t) {
  return h('div', { class: 'tile' },
    h('p', { class: 'name' }, t.name),
    h('p', { class: 'value' }, h('span', { class: 'number' }), ' ', h('span', { class: 'unit' })),
    t.line
      ? s('svg', { class: 'line', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('path', { class: 'area' }), s('path', { class: 'stroke' }))
      : h('p', { class: 'note' }));
}

function update(element, t) {
  element.dataset.state = t.state ?? '';
  setText(element.querySelector('.number'), t.value);
  setText(element.querySelector('.unit'), t.unit);
  if (t.line) draw(element.querySelector('.stroke'), element.querySelector('.area'), t.line);
  else setText(element.querySelector('.note'), t.note);
}

export function showTiles(o) {
  keyed(byID('tiles'), tilesOf(o), (t) => t.name, create, update);
}
