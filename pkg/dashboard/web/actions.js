// Letting an instance leave, and taking that back. Nothing is sent before it is confirmed.
import * as api from './api.js';
import { byID, setText } from './dom.js';
import { plural } from './format.js';

let overview;
let asked; // { what, instance }

export function showActions(o) {
  overview = o;
}

// what can be asked of an instance now; null: nothing.
export function actionOf(o, instance) {
  if (!o.actions) return null;
  if (instance.state === 'running') return 'leave';
  return instance.state === 'draining' ? 'cancel' : null;
}

const dialog = byID('order');
const form = dialog.querySelector('form');

export function ask(what, id) {
  const instance = overview.instances.find((i) => i.id === id);
  if (!instance) return;
  asked = { what, instance };
  const leave = what === 'leave';
  setText(byID('order-title'), leave ? `Let ${id} leave?` : `Keep ${id} after all?`);
  setText(byID('order-text'), leave
    ? `Others learn its ${plural(instance.active.length, 'task')} and take them over one by one, while records flow on. Then the process exits.`
    : 'It stops leaving. What it has handed over already stays where it is until balancing moves it.');
  const alone = leave && !overview.instances.some((i) => i.id !== id && i.state === 'running');
  byID('order-warning').hidden = !alone;
  setText(byID('order-warning'), alone ? 'No other instance is there to take its tasks.' : '');
  byID('order-timeout').hidden = !leave;
  setText(byID('order-yes'), leave ? `Let ${id} leave` : `Keep ${id}`);
  setText(byID('order-error'), '');
  form.reset();
  dialog.showModal();
  byID('order-no').focus();
}

byID('order-no').addEventListener('click', () => dialog.close());

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { what, instance } = asked;
  byID('order-yes').disabled = true;
  try {
    await api.order(what, { instance: instance.id, incarnation: instance.incarnation, ...(what === 'leave' && { timeout: form.timeout.value }) });
    dialog.close();
    document.dispatchEvent(new Event('ordered'));
  } catch (error) {
    setText(byID('order-error'), error.message);
  }
  byID('order-yes').disabled = false;
});
