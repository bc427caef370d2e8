// Sets the selected theme before the first paint; "system" leaves it to the media query.
// A classic script in the head: a module would run after the page has flashed.
"use strict";
(() => {
  const KEY = "contextgauge-theme";
  const THEMES = ["system", "light", "dark"];
  const read = () => {
    try {
      const stored = localStorage.getItem(KEY);
      return THEMES.includes(stored) ? stored : "system";
    } catch {
      return "system"; // storage may be forbidden: the switch then lasts until the reload
    }
  };
  let theme = read();
  const apply = () => {
    const root = document.documentElement;
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("contextgauge:theme", { detail: theme }));
  };
  apply();
  window.contextgaugeTheme = {
    current: () => theme,
    next: () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // as above
      }
      apply();
      return theme;
    },
  };
})();
