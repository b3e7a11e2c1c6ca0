// The topology as a graph: topics, and cards with the steps between them.
import { byID, h, s, setText } from './dom.js';
import { count, plural, sum } from './format.js';

const sizes = { topic: { w: 190, h: 40 }, card: { w: 270, line: 19, head: 30, foot: 8 }, gapX: 56, gapY: 22, pad: 12 };
const letters = { topic: 22, step: 33 };

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// model joins the steps that follow each other into one card.
function model(graph) {
  const nodes = new Map();
  const cardOf = new Map();
  for (const t of graph.topics) nodes.set(t.id, { id: t.id, kind: 'topic', label: t.label, internal: t.internal, w: sizes.topic.w, h: sizes.topic.h });
  for (const part of graph.subtopologies) {
    for (const step of part.steps) {
      const id = step.id.split('_').slice(0, 2).join('_');
      if (!nodes.has(id)) nodes.set(id, { id, kind: 'card', sub: part.id, stateful: part.stateful, steps: [], w: sizes.card.w });
      nodes.get(id).steps.push(step);
      cardOf.set(step.id, id);
    }
  }
  for (const n of nodes.values()) if (n.kind === 'card') n.h = sizes.card.head + n.steps.length * sizes.card.line + sizes.card.foot;
  const edges = new Map();
  for (const e of graph.edges) {
    const from = cardOf.get(e.from) ?? e.from;
    const to = cardOf.get(e.to) ?? e.to;
    if (from !== to) edges.set(`${from} ${to}`, { from, to });
  }
  return { nodes, edges: [...edges.values()] };
}

// place puts each node right of what leads to it, and near its height.
function place({ nodes, edges }) {
  const layer = new Map([...nodes.keys()].map((id) => [id, 0]));
  for (let round = 0; round < nodes.size; round += 1) { // a cycle ends with the rounds
    let moved = false;
    for (const { from, to } of edges) {
      if (layer.get(to) < layer.get(from) + 1 && layer.get(from) + 1 < nodes.size) {
        layer.set(to, layer.get(from) + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const layers = [];
  for (const [id, n] of layer) (layers[n] ??= []).push(nodes.get(id));
  let x = sizes.pad;
  let bottom = 0;
  for (const list of layers.filter(Boolean)) {
    const wish = (n) => {
      const before = edges.filter((e) => e.to === n.id && nodes.get(e.from).y !== undefined).map((e) => nodes.get(e.from));
      return before.length ? sum(before.map((b) => b.y + b.h / 2)) / before.length - n.h / 2 : sizes.pad;
    };
    let y = sizes.pad;
    for (const n of list.map((one) => [wish(one), one]).sort((a, b) => a[0] - b[0])) {
      const [wanted, node] = n;
      node.x = x;
      node.y = Math.max(y, wanted);
      y = node.y + node.h + sizes.gapY;
      bottom = Math.max(bottom, node.y + node.h);
    }
    x += Math.max(...list.map((n) => n.w)) + sizes.gapX;
  }
  return { width: x - sizes.gapX + sizes.pad, height: bottom + sizes.pad };
}

function drawTopic(n) {
  return s('g', { class: n.internal ? 'topic internal' : 'topic', transform: `translate(${n.x} ${n.y})` },
    s('title', {}, n.internal ? `${n.label}: repartition topic` : n.label),
    s('rect', { width: n.w, height: n.h, rx: n.h / 2 }),
    s('text', { x: n.w / 2, y: n.h / 2, 'text-anchor': 'middle', 'dominant-baseline': 'central' }, cut(n.label, letters.topic)));
}

function drawCard(n) {
  const g = s('g', { class: n.stateful ? 'card stateful' : 'card', transform: `translate(${n.x} ${n.y})` },
    s('rect', { width: n.w, height: n.h, rx: 8 }),
    s('text', { x: 12, y: 19, class: 'title' }, `Subtopology ${n.sub}`),
    s('text', { x: n.w - 12, y: 19, class: 'figures', 'text-anchor': 'end', 'data-sub': n.sub }));
  n.steps.forEach((step, i) => {
    const y = sizes.card.head + (i + 0.5) * sizes.card.line;
    const text = step.label.replace(/ \(store .*\)$/, '');
    const store = (step.stores ?? []).map((one) => one.name).join(', ');
    const row = s('g', { class: store ? 'step keeps' : 'step' }, s('title', {}, step.label),
      s('text', { x: 12, y, 'dominant-baseline': 'central' }, cut(text, store ? letters.step - Math.min(store.length, 16) - 3 : letters.step)));
    if (store) {
      row.append(s('text', { x: n.w - 12, y, class: 'store', 'text-anchor': 'end', 'dominant-baseline': 'central' }, `▤ ${cut(store, 16)}`));
    }
    g.append(row);
  });
  return g;
}

function drawEdge(from, to) {
  const x1 = from.x + from.w;
  const y1 = from.y + from.h / 2;
  const y2 = to.y + to.h / 2;
  if (to.x <= from.x) { // back to a topic on the left: below everything between
    const low = Math.max(from.y + from.h, to.y + to.h) + sizes.gapY / 2;
    return s('path', { class: 'edge', 'marker-end': 'url(#arrow)', d: `M${from.x + from.w / 2} ${from.y + from.h}V${low}H${to.x + to.w / 2}V${to.y + to.h + 7}` });
  }
  const x2 = to.x - 7;
  const bend = Math.max(20, (x2 - x1) / 2);
  return s('path', { class: 'edge', 'marker-end': 'url(#arrow)', d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
}

export function drawTopology(graph) {
  const m = model(graph);
  const { width, height } = place(m);
  const svg = s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': describe(m) },
    s('defs', {}, s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 1, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto' }, s('path', { d: 'M0 0L8 4L0 8Z' }))),
    m.edges.map((e) => drawEdge(m.nodes.get(e.from), m.nodes.get(e.to))),
    [...m.nodes.values()].map((n) => (n.kind === 'topic' ? drawTopic(n) : drawCard(n))));
  byID('topology').replaceChildren(graph.topics.length ? svg : h('p', { class: 'empty' }, 'No topology is known.'));
}

// describe says the graph in words.
function describe({ nodes, edges }) {
  const name = (id) => {
    const n = nodes.get(id);
    return n.kind === 'topic' ? `topic ${n.label}` : `subtopology ${n.sub} (${n.steps.map((step) => step.label).join('; ')})`;
  };
  return edges.map((e) => `${name(e.from)} to ${name(e.to)}`).join('. ');
}

export function showTopology(o) {
  for (const text of byID('topology').querySelectorAll('[data-sub]')) {
    const mine = o.tasks.filter((t) => t.id.startsWith(`${text.dataset.sub}_`));
    setText(text, mine.length ? `${plural(mine.length, 'task')}, lag ${count(sum(mine.map((t) => t.lag)))}` : '');
  }
}
