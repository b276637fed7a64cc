// Letters that this machine has, the theme, and tables that are sorted by a click on a head.

// Without a font for them, two Chinese letters are the same box.
function hasChinese() {
  const pixels = (letter) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 24;
    const drawing = canvas.getContext("2d");
    drawing.font = getComputedStyle(document.body).font;
    drawing.fillText(letter, 2, 18);
    return drawing.getImageData(0, 0, 24, 24).data.join();
  };
  return pixels("\u4e2d") !== pixels("\u56fd");
}
const CHINESE = hasChinese();
const BEYOND_US = /[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]|[\ud840-\ud88d][\udc00-\udfff]/g;
// A letter without a font as its code, never as a box.
function legible(text) {
  return CHINESE ? text : text.replace(BEYOND_US, (letter) => `\\u${letter.codePointAt(0).toString(16)}`);
}
if (!CHINESE) {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.localName !== "script" && node.data.search(BEYOND_US) >= 0) node.data = legible(node.data);
  }
}

const button = document.getElementById("theme");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
button.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("ctxbench-theme", theme); } catch { /* not allowed to remember */ }
  label();
});
button.hidden = false;
label();

const UNITS = { k: 1e3, M: 1e6, "µs": 1, ms: 1e3, s: 1e6 };
// 12,345 · 61.2 % · −4.0 % · $0.42 · 12.3k · 14 µs; what is no number comes last, whichever way.
function value(text) {
  const found = /^\$?([−-]?)\$?([\d,]*\.?\d+)\s?(k|M|µs|ms|s)?/.exec(text);
  return found ? (found[1] ? -1 : 1) * Number(found[2].replaceAll(",", "")) * (UNITS[found[3]] || 1) : NaN;
}

function sort(table, column, up) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, text: row.cells[column].textContent.trim() }));
  const numbers = rows.some(({ text }) => !Number.isNaN(value(text))) && table.tHead.rows[0].cells[column].classList.contains("figure");
  const sign = up ? 1 : -1;
  rows.sort((a, b) => {
    if (!numbers) return sign * a.text.localeCompare(b.text, "en");
    const [x, y] = [value(a.text), value(b.text)];
    return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : sign * (x - y);
  });
  body.append(...rows.map(({ row }) => row));
}

for (const table of document.querySelectorAll("table.figures")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const way = document.createElement("button");
    way.type = "button";
    way.className = "sort";
    way.textContent = head.textContent || "#";
    head.replaceChildren(way);
    way.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table, column, up);
    });
  });
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
