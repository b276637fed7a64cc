"use strict";
// Before anything is shown: the theme that was chosen and the tab of the address, so that the page does not flash.
try {
  const theme = localStorage.getItem("ctxbench-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* a file may not be allowed to remember: the system's theme it is */ }
{
  const wanted = new URLSearchParams(location.hash.slice(1));
  const anchor = /^#tab-(\w+)$/.exec(location.hash);
  document.documentElement.dataset.tab = wanted.get("tab") ?? (wanted.has("conversation") ? "inspector" : anchor ? anchor[1] : "verdict");
}
