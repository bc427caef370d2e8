// Sets the chosen theme before the first paint; "system" leaves it to the media query.
// A classic script in the head: a module would run after the page has flashed.
"use strict";
(() => {
  const KEY = "contextgauge-theme";
  const THEMES = ["system", "light", "dark"];
  const read = () => {
    try {
      const kept = localStorage.getItem(KEY);
      return THEMES.includes(kept) ? kept : "system";
    } catch {
      return "system"; // storage may be forbidden: the switch then lasts until the reload
    }
  };
  let chosen = read();
  const apply = () => {
    const root = document.documentElement;
    if (chosen === "system") delete root.dataset.theme;
    else root.dataset.theme = chosen;
    document.dispatchEvent(new CustomEvent("contextgauge:theme", { detail: chosen }));
  };
  apply();
  window.contextgaugeTheme = {
    current: () => chosen,
    next: () => {
      chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // as above
      }
      apply();
      return chosen;
    },
  };
})();
