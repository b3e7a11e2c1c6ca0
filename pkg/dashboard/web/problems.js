// Tasks that cannot go on, records that could not be processed, and instances that are gone.
import { byID, h, setText } from './dom.js';
import { count, duration } from './format.js';

const gone = {
  drained: 'left: everything was handed over', timeout: 'left at its timeout, with tasks not handed over', now: 'gave everything up at once, as asked',
  silent: 'fell silent: killed, stopped or cut off',
};

function lines(o) {
  const out = [];
  for (const f of o.failed) out.push(['bad', `Task ${f.task}`, f.instance, `cannot go on, ${f.failures} in a row: ${f.error}`]);
  if (o.failed_tasks > o.failed.length) out.push(['bad', 'Tasks', '', `and ${count(o.failed_tasks - o.failed.length)} more that cannot go on`]);
  for (const t of o.tasks) if (t.active === null) out.push(['warn', `Task ${t.id}`, t.learner ?? '', 'nobody runs it at this moment']);
  for (const i of o.instances) {
    const { dead_lettered: dead = 0, skipped = 0, dropped = 0, failures = 0 } = i.counts;
    if (dead) out.push(['warn', 'Dead letters', i.id, `${count(dead)} since its start went to a dead letter topic`]);
    if (skipped) out.push(['warn', 'Bad records', i.id, `${count(skipped)} skipped since its start`]);
    if (dropped) out.push(['info', 'Dropped', i.id, `${count(dropped)} records without a key or value that an aggregate needs`]);
    if (failures) out.push(['info', 'Attempts', i.id, `${count(failures)} times since its start a task could not go on`]);
  }
  for (const g of o.gone) out.push([g.why === 'drained' ? 'info' : 'warn', 'Gone', g.id, `${gone[g.why] ?? g.why}, ${duration((o.at_ms - g.seen_ms) / 1000)} ago`]);
  return out;
}

let last;

export function showProblems(o) {
  const all = lines(o);
  const text = JSON.stringify(all);
  if (text === last) return;
  last = text;
  const place = byID('problems');
  if (!all.length) {
    place.replaceChildren(h('p', { class: 'empty fine' }, 'Every task runs, and every record could be processed.'));
    return;
  }
  place.replaceChildren(h('ul', { class: 'problems' }, all.map(([kind, what, where, why]) => {
    const li = h('li', { class: kind }, h('b'), h('span', { class: 'where' }), h('span', { class: 'why' }));
    setText(li.children[0], what);
    setText(li.children[1], where);
    setText(li.children[2], why);
    return li;
  })));
}
