// Sets the chosen theme before anything is painted. Without a choice the system's counts.
(() => {
  const order = ['auto', 'light', 'dark'];
  const signs = { auto: '◐', light: '☀', dark: '☾' };
  const title = (name) => name[0].toUpperCase() + name.slice(1);
  let theme = 'auto';
  try {
    theme = localStorage.getItem('theme') ?? 'auto';
  } catch { /* no storage here: the choice lasts as long as the page */ }
  const apply = () => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById('theme');
    if (button) {
      button.lastElementChild.textContent = title(theme);
      button.firstElementChild.textContent = signs[theme];
      button.setAttribute('aria-label', `${title(theme)} theme, press for ${order[(order.indexOf(theme) + 1) % order.length]}`);
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
