// Charts of the shown tab, drawn by Vega-Lite at the width that there is, for the chosen model and strategies.
const NARROW = 560;
const ERRORS = 1; // Vega's level: a part of a chart may be empty, which it warns of
const CONFIG = {
  background: null,
  view: { stroke: null },
  // Each is told apart from white and from the dark page by three to one.
  point: { opacity: 1 },
  range: { category: ["#1f7fc4", "#d45a00", "#16855f", "#bf4f92", "#9a7200", "#7d6bd0", "#7a828c", "#14889a"] },
  axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", tickCount: 6 },
  legend: { labelFontSize: 12, titleFontSize: 12, orient: "bottom", symbolOpacity: 1 },
};

class Charts {
  constructor() {
    this.figures = [...document.querySelectorAll("figure.chart")];
    this.drawn = new Map(); // by name: what the chart was drawn for
    this.turn = 0;
    state.listen(() => this.show());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.show(), 150);
    });
  }

  async open() {
    this.data = JSON.parse(await inflated(get("charts").textContent));
    // The policy of the page knows this script by its digest.
    const script = document.createElement("script");
    script.textContent = await inflated(get("library").textContent);
    document.head.append(script);
  }

  async show() {
    const turn = (this.turn += 1);
    delete document.documentElement.dataset.charts;
    this.opened ??= this.open();
    await this.opened;
    for (const figure of this.figures) {
      if (turn !== this.turn) return; // something else was chosen meanwhile
      if (figure.closest(".tab").id === `tab-${state.get("tab")}`) await this.draw(figure);
    }
    document.documentElement.dataset.charts = state.get("tab");
  }

  // The rows that the reader chose, and how many strategies there would be.
  rows({ columns, most }) {
    const names = Object.keys(columns);
    let rows = (columns[names[0]] ?? []).map((_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
    if (columns.model && MODELS.length) rows = rows.filter((row) => row.model === chosenModel());
    if (!columns.strategy) return { rows, shown: 0, of: 0 };
    const chosen = new Set(chosenStrategies());
    rows = rows.filter((row) => chosen.has(row.strategy) || !STRATEGIES.includes(row.strategy));
    const of = [...new Set(rows.map((row) => row.strategy))];
    const shown = new Set(most ? of.slice(0, most) : of);
    return { rows: rows.filter((row) => shown.has(row.strategy)), shown: shown.size, of: of.length };
  }

  async draw(figure) {
    const name = figure.dataset.chart, data = this.data[name];
    const { rows, shown, of } = this.rows(data);
    let box = figure.querySelector(".drawn");
    const room = (box ?? figure.querySelector(".still")).clientWidth;
    const key = JSON.stringify([room, data.columns.model && chosenModel(), [...new Set(rows.map((row) => row.strategy))]]);
    if (this.drawn.get(name) === key) return;
    this.drawn.set(name, key);
    if (!box) {
      box = element("div", "drawn");
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `${figure.querySelector("h3").textContent}: the arrow keys go from mark to mark`);
      figure.querySelector(".still").replaceWith(box);
      this.listen(box);
    }
    figure.querySelector(".few")?.remove();
    if (!rows.length) {
      box.replaceChildren(element("p", "note", "Nothing that was chosen is in this chart."));
      return;
    }
    const longest = Math.max(40, Math.min(300, Math.floor(room * 0.48)));
    const config = { ...CONFIG, font: getComputedStyle(box).fontFamily, axisY: { labelLimit: longest }, legend: { ...CONFIG.legend, columns: room < NARROW ? 1 : room < 900 ? 2 : 4, labelLimit: Math.min(room - 60, 320) } };
    if (!CHINESE) for (const row of rows) for (const each in row) if (typeof row[each] === "string") row[each] = legible(row[each]);
    const { step } = data.spec.height;
    const rowOf = data.columns.strategy ? "strategy" : Object.keys(data.columns)[0];
    const height = step ? step * new Set(rows.map((row) => row[rowOf])).size : data.spec.height;
    const spec = { ...data.spec, width: room, height, autosize: { type: "fit-x", contains: "padding" }, data: { values: rows }, config };
    const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, logLevel: ERRORS, tooltip: (_, event, item, value) => this.tip(event, value) };
    this.views ??= new Map();
    this.views.get(name)?.finalize();
    this.views.set(name, await embed(box, spec, options));
    // Vega gives groups of marks a role too, but no name.
    for (const group of box.querySelectorAll('[role^="graphics-"]:not([aria-label])')) {
      group.removeAttribute("role");
      group.removeAttribute("aria-roledescription");
    }
    if (shown < of) figure.append(element("p", "note few", `${shown} of ${of} strategies are drawn: “strategies” above chooses others.`));
  }

  tip(event, value) {
    if (!value) { get("tip").hidden = true; return; }
    this.say(Object.entries(value).filter(([, text]) => text !== "null" && text !== "NaN"), event.clientX, event.clientY);
  }

  // Show pairs of a name and a text beside a point of the window.
  say(pairs, x, y) {
    const tip = get("tip");
    tip.replaceChildren(...pairs.map(([name, text]) => {
      const line = element("div");
      line.append(element("span", "what", name), element("bdi", "", String(text)));
      return line;
    }));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  }

  // By keys: from mark to mark, each with what a pointer would show.
  listen(box) {
    const marks = () => [...box.querySelectorAll('[aria-roledescription="point"], [aria-roledescription="bar"]')];
    const leave = () => {
      box.querySelector(".at")?.classList.remove("at");
      get("tip").hidden = true;
    };
    box.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") leave();
      if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      const all = marks();
      if (!all.length) return;
      event.preventDefault();
      const at = all.findIndex((mark) => mark.classList.contains("at"));
      const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
      leave();
      next.classList.add("at");
      const { right, top } = next.getBoundingClientRect();
      this.say(next.getAttribute("aria-label").split("; ").map((part) => [part.slice(0, part.indexOf(":")), part.slice(part.indexOf(":") + 2)]), right, top);
    });
    box.addEventListener("blur", leave);
  }
}
if (get("library")) new Charts();
