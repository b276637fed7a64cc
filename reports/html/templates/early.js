"use strict";
// Before anything is shown: the theme that was chosen, so that the page does not flash.
try {
  const theme = localStorage.getItem("ctxbench-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* a file may not be allowed to remember: the system's theme it is */ }
