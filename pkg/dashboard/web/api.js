// Requests to the instance that serves the page.

export class Unauthorized extends Error {}

let token = '';
try {
  token = sessionStorage.getItem('token') ?? '';
} catch { /* no storage here: the token lasts as long as the page */ }

export function setToken(value) {
  token = value;
  try {
    sessionStorage.setItem('token', value);
  } catch { /* as above */ }
}

async function ask(path, options) {
  const response = await fetch(path, {
    ...options,
    headers: { ...options?.headers, ...(token && { Authorization: `Bearer ${token}` }) },
    signal: AbortSignal.timeout(8000),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) throw new Unauthorized(answer.error ?? 'not authorized');
  if (!response.ok) throw new Error(answer.error ?? `the instance answers ${response.status}`);
  return answer;
}

export const overview = () => ask('api/v1/overview');
export const topology = () => ask('api/v1/topology');

export const order = (what, body) => ask(`api/v1/${what}`, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
});
