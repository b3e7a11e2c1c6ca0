// Asks for the overview once a second while somebody looks, and has each part of the page show it.
import * as api from './api.js';
import { showActions } from './actions.js';
import { byID, h, keyed, setText } from './dom.js';
import { count, duration, plural } from './format.js';
import { showGrid } from './grid.js';
import { showHandovers } from './handovers.js';
import { showLearners } from './learners.js';
import { showProblems } from './problems.js';
import { showTiles } from './tiles.js';
import { drawTopology, showTopology } from './topology.js';

const every = 1000;
const slowest = 10_000;

let failures = 0;
let lastAnswer = 0;
let drawn = false;
let timer;
let asking = false;

function show(o) {
  document.title = `${o.app} · streamworker`;
  setText(byID('app'), o.app);
  setText(byID('summary'), [plural(o.instances.length, 'instance'), plural(o.tasks.length, 'task'), `generation ${count(o.generation)}`].join(' · '));
  setText(byID('footer'), `Served by ${o.served_by}, streamworker ${o.version}. What other instances say of themselves is up to 10 s old while nothing moves, else a second.`);
  showTiles(o);
  showGrid(o);
  showActions(o);
  showLearners(o);
  showHandovers(o);
  showProblems(o);
  showTopology(o);
  banners(o);
}

function banners(o) {
  const all = [];
  if (o.note) all.push(['note', 'warn', o.note]);
  if (o.all_leaving) all.push(['leaving', 'warn', 'Every instance is leaving, so nobody can take the tasks: start another instance, or take one leave back.']);
  if (o.failed_tasks) all.push(['failed', 'bad', `${plural(o.failed_tasks, 'task')} cannot go on: see errors.`]);
  keyed(byID('banners'), all, (b) => b[0], (b) => h('p', { class: `banner ${b[1]}` }), (e, b) => setText(e, b[2]));
}

function live(state, text) {
  const element = byID('live');
  element.dataset.state = state;
  setText(element.lastElementChild, text);
}

async function ask() {
  clearTimeout(timer);
  if (asking || document.hidden || byID('login').open) return;
  asking = true;
  try {
    if (!drawn) {
      drawTopology(await api.topology());
      drawn = true;
    }
    show(await api.overview());
    failures = 0;
    lastAnswer = Date.now();
    live('live', 'live');
  } catch (error) {
    if (error instanceof api.Unauthorized) {
      live('lost', 'no access');
      logIn();
    } else {
      failures += 1;
      live('lost', lastAnswer ? `no answer for ${duration((Date.now() - lastAnswer) / 1000)}` : 'no answer');
      if (!lastAnswer) setText(byID('summary'), error.message);
      console.warn(error);
    }
  }
  asking = false;
  timer = setTimeout(ask, Math.min(every * 2 ** failures, slowest));
}

let refused = false;

function logIn() {
  const dialog = byID('login');
  setText(byID('login-error'), refused ? 'The instance does not accept this token.' : '');
  refused = true;
  dialog.showModal();
}

byID('login').addEventListener('close', () => {
  const form = byID('login').querySelector('form');
  if (form.token.value) api.setToken(form.token.value);
  form.reset();
  ask();
});

document.addEventListener('visibilitychange', () => {
  if (document.hidden) live('waiting', 'paused');
  else ask();
});
document.addEventListener('ordered', ask);
ask();
