// Numbers and times as the page shows them.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1, notation: 'compact' });

export const count = (n) => (Math.abs(n) >= 1e7 ? short.format(n) : whole.format(n));
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

export function rate(n) {
  return n > 0 && n < 10 ? n.toFixed(1) : count(n);
}

export function milliseconds(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 10_000) return `${whole.format(ms)} ms`;
  return duration(ms / 1000);
}

export function duration(seconds) {
  const n = Math.max(0, Math.round(seconds));
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)}:${String(n % 60).padStart(2, '0')} min`;
  return `${Math.floor(n / 3600)}:${String(Math.floor((n % 3600) / 60)).padStart(2, '0')} h`;
}

export function clock(ms) {
  const t = new Date(ms);
  return [t.getHours(), t.getMinutes(), t.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':');
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
