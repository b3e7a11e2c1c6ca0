// Sets the chosen theme before anything is painted. Without a choice the system's counts.
(() => {
  const order = ['auto', 'light', 'dark'];
  const names = { auto: 'as the system', light: 'light', dark: 'dark' };
  let theme = 'auto';
  try {
    theme = localStorage.getItem('theme') ?? 'auto';
  } catch { /* no storage here: the choice lasts as long as the page */ }
  const apply = () => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById('theme');
    if (button) {
      button.textContent = { auto: '◐ Auto', light: '☀ Light', dark: '☾ Dark' }[theme];
      button.setAttribute('aria-label', `Theme: ${names[theme]}. Press for: ${names[order[(order.indexOf(theme) + 1) % order.length]]}`);
    }
  };
  if (!order.includes(theme)) theme = 'auto';
  apply();
  addEventListener('DOMContentLoaded', () => {
    apply();
    document.getElementById('theme').addEventListener('click', () => {
      theme = order[(order.indexOf(theme) + 1) % order.length];
      try {
        localStorage.setItem('theme', theme);
      } catch { /* as above */ }
      apply();
    });
  });
})();
