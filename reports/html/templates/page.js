// Letters that this machine has, the theme, the tabs, and the choice of a model and of strategies.

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

const get = (id) => document.getElementById(id);

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = legible(text);
  return node;
}

// Text that was deflated, in base64.
async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

const button = get("theme");
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

function showTab() {
  const tab = state.get("tab");
  document.documentElement.dataset.tab = tab;
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.dataset.tab === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  state.target?.scrollIntoView();
}
for (const link of document.querySelectorAll(".tabs a")) {
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    state.set({ tab: link.dataset.tab }, { push: true });
    scrollTo(0, 0);
  });
}
state.listen(showTab);

// The model whose bill is shown, and the strategies in tables and charts; none chosen = all.
const MODELS = [...(get("model")?.options ?? [])].map((option) => option.value);
const boxes = [...document.querySelectorAll("#filter [name=only]")];
const STRATEGIES = boxes.map((box) => box.value);
const chosenModel = () => (MODELS.includes(state.get("model")) ? state.get("model") : MODELS[0]);
function chosenStrategies() {
  const only = new Set(state.all("only"));
  const chosen = STRATEGIES.filter((name) => only.has(name));
  return chosen.length ? chosen : only.has("") ? [] : STRATEGIES;
}

function showChoices() {
  if (MODELS.length) get("model").value = chosenModel();
  const chosen = new Set(chosenStrategies());
  for (const box of boxes) box.checked = chosen.has(box.value);
  get("chosen").textContent = chosen.size === STRATEGIES.length ? `all ${chosen.size}` : `${chosen.size} of ${STRATEGIES.length}`;
  for (const block of document.querySelectorAll("[data-model]")) block.hidden = block.dataset.model !== chosenModel() && MODELS.includes(block.dataset.model);
}
const choose = (names) => state.set({ only: names.length === STRATEGIES.length ? null : names.length ? names : "" });
get("model")?.addEventListener("change", (event) => state.set({ model: event.target.value === MODELS[0] ? null : event.target.value }));
for (const box of boxes) box.addEventListener("change", () => choose(boxes.filter((each) => each.checked).map((each) => each.value)));
get("every").addEventListener("click", () => choose(STRATEGIES));
get("nothing").addEventListener("click", () => choose([]));
get("find").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  for (const box of boxes) box.closest("li").hidden = !box.value.toLowerCase().includes(wanted);
});
get("choices").addEventListener("submit", (event) => event.preventDefault());
get("filter").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  get("filter").open = false;
  get("filter").firstElementChild.focus();
});
addEventListener("click", (event) => { if (!event.target.closest("#filter")) get("filter").open = false; });
get("choices").hidden = false;
state.listen(showChoices);

// The report of a run that goes on, as `ctxbench view` serves it: again after a while in which nobody did anything.
const again = Number(document.documentElement.dataset.again) * 1000;
if (again) {
  let reloading;
  const wait = () => {
    clearTimeout(reloading);
    reloading = setTimeout(() => location.reload(), again);
  };
  for (const done of ["pointermove", "keydown", "scroll", "input"]) addEventListener(done, wait, { passive: true });
  wait();
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("main details")) each.open = true;
});
