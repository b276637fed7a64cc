// Tables: sorted by a click on a head, rows filtered by their text and by strategy, copied as CSV, gone through by keys.
const STEPS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], Home: [0, -Infinity], End: [0, Infinity] };
const UNITS = { k: 1e3, M: 1e6, "µs": 1, ms: 1e3, s: 1e6 };
// 12,345 · 61.2 % · +9.3 points · −4.0 % · $0.42 · 12.3k · 14 µs; what is no number comes last, whichever way.
function value(text) {
  const found = /^\$?([+−-]?)\$?([\d,]*\.?\d+)\s?(k|M|µs|ms|s)?(?![a-zµ])/.exec(text);
  return found ? (/[−-]/.test(found[1]) ? -1 : 1) * Number(found[2].replaceAll(",", "")) * (UNITS[found[3]] || 1) : NaN;
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

// The text of a cell, without the link that explains its head.
const cellText = (cell) => (cell.querySelector(".sort, span") ?? cell).textContent.trim();

// A spreadsheet takes a text that begins so for a formula.
const FORMULA = /^[=+@\t\r-]/;
function asCsv(table) {
  const rows = [...(table.tHead?.rows ?? []), ...[...table.tBodies[0].rows].filter((row) => !row.hidden)];
  const quoted = (text) => `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  return rows.map((row) => [...row.cells].map((cell) => quoted(cellText(cell))).join(",")).join("\n");
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* not allowed, or no such thing: by a selection, as it was done before */ }
  const area = element("textarea", "unseen", "");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

// Arrows go from cell to cell, Enter presses the button or link of a cell, and Tab comes back to the cell that was left.
function stopAt(table, cell) {
  table.stop?.removeAttribute("tabindex");
  table.stop = cell;
  cell.tabIndex = 0;
}

function walk(table) {
  const box = table.closest(".wide");
  box.removeAttribute("tabindex"); // it scrolls to the cell
  table.setAttribute("role", "grid");
  stopAt(table, table.tHead.rows[0].cells[0]);
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("th, td");
    if (event.altKey || event.ctrlKey || event.metaKey || !cell) return;
    if (event.key === "Enter" && event.target === cell) cell.querySelector("button, a")?.click();
    const [down, right] = STEPS[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const rows = [...table.rows].filter((row) => !row.hidden);
    const within = (at, items) => items[Math.max(0, Math.min(at, items.length - 1))];
    stopAt(table, within(cell.cellIndex + right, within(rows.indexOf(cell.parentElement) + down, rows).cells));
    box.style.scrollPaddingLeft = `${table.stop.cellIndex ? table.rows[0].cells[0].offsetWidth : 0}px`; // it stays, above the others
    table.stop.focus();
  });
}

// Rows from which a table has a field to filter them.
const MANY = 10;
const tables = [...document.querySelectorAll("table.figures, table.prose")].filter((table) => table.tHead);
const known = new Set(STRATEGIES.map(legible));
for (const table of tables) {
  for (const row of table.tBodies[0].rows) {
    const names = [...row.cells].slice(0, 2).map((cell) => cell.textContent.trim().replace(/^✗ /, ""));
    row.strategy = names.find((name) => known.has(name));
  }
  if (table.classList.contains("figures")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const name = head.querySelector("span");
      const way = element("button", "sort", name.textContent || "#");
      way.type = "button";
      way.title = name.title;
      name.replaceWith(way);
      way.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sort(table, column, up);
      });
    });
  }
  const tools = element("div", "tools");
  const title = table.closest(".block").querySelector("h3").textContent;
  if (table.tBodies[0].rows.length > MANY) {
    const filter = element("input");
    Object.assign(filter, { type: "search", placeholder: "filter rows" });
    filter.setAttribute("aria-label", `filter rows of: ${title}`);
    filter.addEventListener("input", () => { table.wanted = filter.value.trim().toLowerCase(); filterRows(); });
    tools.append(filter);
  }
  const copying = element("button", "", "copy as CSV");
  copying.type = "button";
  copying.setAttribute("aria-label", `copy as CSV: ${title}`);
  copying.addEventListener("click", async () => {
    copying.textContent = (await copy(asCsv(table))) ? "copied" : "not allowed";
    setTimeout(() => { copying.textContent = "copy as CSV"; }, 1500);
  });
  tools.append(copying);
  table.closest(".wide").before(tools);
  walk(table);
}

function filterRows() {
  const chosen = new Set(chosenStrategies().map(legible));
  for (const table of tables) {
    for (const row of table.tBodies[0].rows) {
      const isChosen = !row.strategy || chosen.has(row.strategy);
      row.hidden = !isChosen || Boolean(table.wanted && !row.textContent.toLowerCase().includes(table.wanted));
    }
    if (table.stop.parentElement.hidden) stopAt(table, table.tHead.rows[0].cells[0]);
  }
}
state.listen(filterRows);
