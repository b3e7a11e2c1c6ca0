// Elements, without a framework. Text is only ever set as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'vars') {
      for (const [property, v] of Object.entries(value)) element.style.setProperty(property, v);
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);
export const byID = (id) => document.getElementById(id);

// setText leaves an element alone that has the text already, so that selections survive.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// setAttribute does the same for an attribute; null removes it.
export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// keyed makes the children of parent those of items, in order. Elements of items that stay are kept, with the focus.
export function keyed(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((e) => [e.dataset.key, e]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let element = old.get(k);
    if (element) old.delete(k);
    else {
      element = create(item);
      element.dataset.key = k;
    }
    update(element, item);
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  for (const gone of old.values()) gone.remove();
}

// table makes a table with a head; its body is returned with it.
export function table(caption, columns) {
  const body = h('tbody');
  const element = h('table', {}, h('caption', { class: 'hidden' }, caption),
    h('thead', {}, h('tr', {}, columns.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))), body);
  return [element, body];
}
