// The inspector: a conversation, a strategy, a step. Only the rows that are seen are in the page, so that a step costs the
// same in a long conversation. All text of a recording goes into the page as text, never as HTML.
const ROW = 26, BEYOND = 8;
const number = (value) => value.toLocaleString("en");

// A list of rows of one height. `draw` makes a row of an item; `choose` takes the chosen item.
class List {
  constructor(box, draw, choose) {
    Object.assign(this, { box, draw, choose, items: [], chosen: -1 });
    this.inside = element("div", "inside");
    box.append(this.inside);
    box.addEventListener("scroll", () => this.show());
    box.addEventListener("click", (event) => {
      const row = event.target.closest("[data-at]");
      if (row) this.pick(Number(row.dataset.at));
    });
    box.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, End: Infinity, Home: -Infinity }[event.key];
      if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.pick(Math.min(Math.max(this.chosen + by, 0), this.items.length - 1));
    });
  }

  fill(items) {
    this.items = items;
    this.inside.style.height = `${items.length * ROW}px`;
    this.show();
  }

  pick(at) {
    if (at < 0 || at >= this.items.length) return;
    this.mark(at);
    this.choose(this.items[at]);
  }

  // Show an item as chosen, where it can be seen; -1 = none.
  mark(at) {
    this.chosen = at;
    if (at >= 0) {
      const { scrollTop, clientHeight } = this.box;
      if (at * ROW < scrollTop) this.box.scrollTop = at * ROW;
      else if ((at + 1) * ROW > scrollTop + clientHeight) this.box.scrollTop = (at + 1) * ROW - clientHeight;
    }
    this.show();
  }

  show() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + BEYOND);
    const rows = [];
    for (let at = first; at < last; at += 1) {
      const row = this.draw(this.items[at]);
      row.id = `${this.box.id}-${at}`;
      row.dataset.at = at;
      row.style.transform = `translateY(${at * ROW}px)`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-setsize", this.items.length);
      row.setAttribute("aria-posinset", at + 1);
      row.setAttribute("aria-selected", at === this.chosen);
      rows.push(row);
    }
    this.inside.replaceChildren(...rows);
    if (this.chosen >= first && this.chosen < last) this.box.setAttribute("aria-activedescendant", `${this.box.id}-${this.chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

class Inspector {
  constructor() {
    this.packed = [...document.querySelectorAll("script.packed")].map((each) => each.textContent);
    this.names = [...get("conversation").options].map((each) => each.value);
    this.strategies = [...get("strategy").options].map((each) => each.value);
    this.chosen = null; // the message that is shown whole: its number, and its place in the history
    // On the left: the whole history, or what another strategy sent.
    this.history = new List(get("history"), (item) => this.row(item, this.other ? item.number : item.place), (item) => this.choose(item));
    this.sent = new List(get("sent"), (item) => this.row(item, item.number), (item) => this.choose(item));
    this.listen();
    get("inspect").hidden = false;
  }

  listen() {
    get("controls").addEventListener("submit", (event) => event.preventDefault());
    get("conversation").addEventListener("change", () => this.open(get("conversation").selectedIndex, this.arm, Infinity));
    get("strategy").addEventListener("change", () => this.cell(get("strategy").selectedIndex, this.step));
    get("probe").addEventListener("change", () => this.chooseProbe(get("probe").selectedIndex - 1));
    get("range").addEventListener("input", () => this.go(Number(get("range").value)));
    get("number").addEventListener("change", () => this.go(Number(get("number").value)));
    get("back").addEventListener("click", () => this.go(this.step - 1));
    get("on").addEventListener("click", () => this.go(this.step + 1));
    get("beside").addEventListener("change", () => { this.compare(get("beside").selectedIndex - 1); this.go(this.step); });
    for (const jump of Object.keys(this.jumps)) {
      get(jump).addEventListener("click", () => {
        const next = this.jumps[jump]();
        if (next > 0) this.go(next);
      });
    }
    get("curve").addEventListener("click", (event) => {
      const box = get("curve").getBoundingClientRect();
      this.go(Math.floor(((event.clientX - box.left) / box.width) * this.steps));
    });
    for (const list of ["history", "sent"]) {
      get(list).addEventListener("keydown", (event) => {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (by) { event.preventDefault(); this.go(this.step + by); }
        if (event.key !== "Enter") return;
        get("message").focus();
        this.left = get(list);
      });
    }
    get("message").addEventListener("keydown", (event) => { if (event.key === "Escape") this.left?.focus(); });
    for (const link of document.querySelectorAll('main a[href^="#conversation="]')) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        const { conversation } = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
        state.set({ tab: "inspector", conversation, step: null });
      });
    }
    state.listen(() => this.follow());
  }

  // The next step at which something happens, or -1, by the id of its button.
  jumps = {
    broke: () => this.log.broken(this.step),
    lost: () => this.log.lost(this.step),
    limit: () => this.limit(this.step),
    left: () => (this.probe ? this.log.lost(this.step, new Set(this.probe.evidence)) : -1),
  };

  limit(after) {
    for (const [step, kind] of this.log.strategy.events) if (step > after && (kind === "limit_reached" || kind === "over_budget")) return step;
    return -1;
  }

  // The address opens a conversation, a strategy and a step. Nothing is unpacked before it is looked at.
  async follow() {
    if (state.get("tab") !== "inspector") return;
    get("absent").hidden = true;
    const usual = Math.max(0, this.strategies.indexOf(get("inspector").dataset.first));
    const name = state.get("conversation") ?? this.names[this.at ?? 0];
    const strategy = state.get("strategy") ?? this.strategies[this.arm ?? usual];
    const step = state.get("step") ?? (name === this.names[this.at] && strategy === this.strategies[this.arm] ? this.step : "Infinity");
    if (state.get("beside") !== null) this.beside = this.strategies.indexOf(state.get("beside"));
    const at = this.names.indexOf(name), arm = this.strategies.indexOf(strategy);
    if (at < 0 || arm < 0) {
      this.absent(name, strategy, step, at < 0 ? name : strategy);
      if (this.conversation) return;
      this.following = true;
      await this.open(0, usual, Infinity);
      this.following = false;
    } else {
      this.following = true; // what the address says need not be remembered
      await this.open(at, arm, Number(step));
      this.following = false;
    }
    if (state.get("conversation") !== null && !this.followed) get("inspector").scrollIntoView();
    this.followed = state.get("conversation") === name;
  }

  absent(name, strategy, step, what) {
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const folder = get("inspector").dataset.folder;
    get("absent").textContent = `${what} is not in this file. On a terminal: ctxbench show ${quoted(folder)} ${quoted(name)} ${Number.isInteger(Number(step)) ? Number(step) : -1} --strategy ${quoted(strategy)}`;
    get("absent").hidden = false;
  }

  async open(at, arm, step) {
    if (at !== this.at) {
      const opened = JSON.parse(await inflated(this.packed[at]));
      for (const strategy of opened.strategies.filter((each) => !each.failed)) {
        strategy.events = strategy.events.map(([step, at]) => [step, ...opened.actions[at]]);
        strategy.prefix = strategy.prefix.map((more, step) => more + (step ? strategy.sent[step - 1] : 0));
        strategy.read = strategy.read?.map((more, step) => more + strategy.prefix[step]) ?? null;
      }
      this.conversation = opened;
      this.at = at;
      get("conversation").selectedIndex = at;
      const probes = opened.probes.map((probe) => element("option", "", `${probe.id}: ${probe.question}`));
      get("probe").replaceChildren(element("option", "", probes.length ? "none" : "(it has none)"), ...probes);
      get("probe").disabled = !probes.length;
      this.probe = null;
      this.chosen = null;
    }
    this.cell(arm ?? 0, step);
  }

  cell(arm, step) {
    this.arm = arm;
    get("strategy").selectedIndex = arm;
    const strategy = this.conversation.strategies[arm];
    this.failed = strategy.failed;
    this.log = strategy.failed ? null : new Result(this.conversation, strategy);
    this.steps = strategy.failed ? 0 : strategy.at.length;
    this.done = new Map();
    for (const event of strategy.events ?? []) this.done.set(event[0], [...(this.done.get(event[0]) ?? []), event]);
    this.compare(this.beside ?? -1);
    for (const id of ["range", "number"]) get(id).max = Math.max(0, this.steps - 1);
    this.curve();
    this.go(step);
  }

  // Put what another strategy sent on the left; -1 = the whole history.
  compare(arm) {
    this.beside = arm;
    get("beside").selectedIndex = arm + 1;
    const strategy = this.conversation.strategies[arm];
    this.other = strategy && !strategy.failed ? new Result(this.conversation, strategy) : null;
  }

  chooseProbe(at) {
    this.probe = at < 0 ? null : this.conversation.probes[at];
    if (this.probe && this.log) {
      const first = this.log.strategy.at.findIndex((size) => size >= this.probe.at);
      this.go(first < 0 ? this.steps - 1 : first);
    } else this.go(this.step);
  }

  go(step) {
    this.step = Math.max(0, Math.min(Math.floor(step) || 0, this.steps - 1));
    get("range").value = get("number").value = this.step;
    get("back").disabled = this.step <= 0;
    get("on").disabled = this.step >= this.steps - 1;
    for (const [id, next] of Object.entries(this.jumps)) get(id).disabled = !this.log || next() < 0;
    if (this.log) this.show();
    else this.nothing();
    clearTimeout(this.later);
    if (!this.following) this.later = setTimeout(() => this.remember(), 300);
  }

  remember() {
    if (state.get("tab") !== "inspector") return;
    state.set({
      conversation: this.names[this.at],
      strategy: this.strategies[this.arm],
      step: this.step,
      beside: this.other ? this.strategies[this.beside] : null,
    }, { quiet: true });
  }

  nothing() {
    get("status").textContent = `This strategy sent nothing here: ${this.failed}`;
    this.history.fill([]);
    this.sent.fill([]);
    get("message").replaceChildren();
    get("events").replaceChildren();
  }

  // The messages of a strategy at the step: those that it sends, and those of the history that it does not.
  messages(log) {
    const { step, conversation } = this, strategy = log.strategy;
    const evidence = new Set(this.probe ? this.probe.evidence : []);
    const archived = log.until(step, "archived");
    const marks = new Set(strategy.marks[step]);
    let end = conversation.tools; // where a message ends in the prompt, in tokens
    return log.diff(step).map((message) => {
      const place = log.place(message.number) < strategy.at[step] ? log.place(message.number) : -1;
      const item = { ...message, log, place, mark: message.at >= 0 && marks.has(message.at), cached: false };
      if (message.at >= 0) {
        end += this.of(item, message.number, "tokens");
        item.cached = strategy.read !== null && end <= strategy.read[step];
      }
      item.archived = message.origin === "replaced" && archived.has(place);
      item.evidence = evidence.has(place);
      return item;
    });
  }

  show() {
    const items = this.messages(this.log);
    const sent = items.filter((item) => item.at >= 0);
    let left = items.filter((item) => item.place >= 0).sort((a, b) => a.place - b.place);
    if (this.other) {
      left = this.step < this.other.strategy.at.length ? this.messages(this.other).filter((item) => item.at >= 0) : [];
      // A message that only one of the two sends. Those that strategies wrote are told apart by their texts.
      const key = (item) => (item.origin === "recorded" ? item.number : this.text(item, item.number));
      for (const [one, another] of [[left, sent], [sent, left]]) {
        const keys = new Set(another.map(key));
        for (const item of one) item.only = !keys.has(key(item));
      }
    }
    this.items = this.other ? [...items, ...left] : items;
    this.history.fill(left);
    this.sent.fill(sent);
    this.summarise(sent, items);
    get("history-title").textContent = this.other
      ? legible(`${this.strategies[this.beside]} sent (${number(left.length)}, ${number(this.other.strategy.sent[this.step] ?? 0)} tokens)`)
      : `Full history (${number(this.log.strategy.at[this.step])})`;
    this.mark();
    this.events();
    this.cursor();
  }

  summarise(sent, items) {
    const strategy = this.log.strategy, step = this.step;
    const counts = new Map();
    for (const { status } of items) counts.set(status, (counts.get(status) ?? 0) + 1);
    const words = ["same", "again", "new", "summarised", "dropped"].filter((word) => counts.has(word));
    const parts = [
      `step ${number(step)} of 0 to ${number(this.steps - 1)}, turn ${number(strategy.turn[step])}`,
      `${number(sent.length)} messages sent, ${number(strategy.at[step])} in the history: ${words.map((word) => `${number(counts.get(word))} ${word}`).join(", ")}`,
      `${number(strategy.sent[step])} of ${number(strategy.full[step])} tokens, ${number(strategy.prefix[step])} in the same prefix as before`,
    ];
    if (strategy.read !== null) parts.push(`${number(strategy.read[step])} read from the cache`);
    if (this.probe) {
      const there = items.filter((item) => item.evidence && item.at >= 0).length;
      const all = this.probe.evidence.length;
      parts.push(all ? `evidence: ${there} of ${all} sent` : "it has no evidence");
      parts.push(`answer: ${this.probe.answers.join(" or ") || "none"}`);
    }
    get("status").textContent = legible(parts.join(" · "));
    const who = this.other ? `${this.strategies[this.arm]} sent` : "Sent";
    get("sent-title").textContent = legible(`${who} (${number(sent.length)}, ${number(strategy.sent[step])} tokens)`);
  }

  // A column of a message: of the recording's, or of those that the item's strategy wrote.
  of(item, number, column) {
    const { messages } = this.conversation, size = messages.id.length;
    return number < size ? messages[column][number] : item.log.strategy.written[column][number - size];
  }

  more(item, number) {
    const { messages } = this.conversation, size = messages.id.length;
    return (number < size ? messages.more[number] : item.log.strategy.written.more[number - size]) ?? 0;
  }

  // A text from its pieces; `most` characters are enough.
  text(item, number, most = Infinity) {
    const runs = this.of(item, number, "text");
    let text = "";
    for (let at = 0; at < runs.length && text.length < most; at += 2) {
      text += this.conversation.pieces.slice(runs[at], runs[at] + runs[at + 1]).join("");
    }
    return text.slice(0, most);
  }

  badges(item) {
    const words = [];
    if (item.origin === "replaced") words.push(item.archived ? "archived" : "replaced");
    if (item.origin === "written") words.push("written");
    if (item.only) words.push("only here");
    for (const word of ["cached", "mark", "evidence"]) if (item[word]) words.push(word);
    return words;
  }

  row(item, number) {
    const row = element("div", `row ${item.status}${item.evidence ? " evidence" : ""}`);
    row.append(element("span", `word ${item.status}`, item.status));
    row.append(element("span", "role", this.of(item, number, "role")));
    for (const word of this.badges(item)) row.append(element("span", `badge ${word.replace(" ", "-")}`, word));
    row.append(element("bdi", "start", this.text(item, number, 160).replace(/\s+/g, " ") || "(empty)"));
    row.append(element("span", "size", `${this.of(item, number, "tokens")}`));
    return row;
  }

  choose(item) {
    this.chosen = { number: item.number, place: item.place, log: item.log };
    this.mark();
  }

  // Show the chosen message in both lists, and whole.
  mark() {
    const { chosen } = this;
    const same = (item) => item.number === chosen.number && (item.log === chosen.log || item.origin === "recorded");
    const is = (item) => chosen && (same(item) || (item.place >= 0 && item.place === chosen.place));
    this.history.mark(this.history.items.findIndex(is));
    this.sent.mark(this.sent.items.findIndex(is));
    const item = this.items.find((each) => is(each) && each.log === chosen.log) ?? this.items.find(is);
    const box = get("message");
    if (!item) { box.replaceChildren(element("p", "note", "Click a message, or press ↑ and ↓ in a list, to see it whole.")); return; }
    const parts = [];
    if (item.origin === "replaced") parts.push(...this.whole(item, "as recorded", item.place), ...this.whole(item, "as sent", item.number));
    else parts.push(...this.whole(item, item.origin === "written" ? "written by the strategy" : "as recorded", item.number));
    box.replaceChildren(element("h3", "", [this.of(item, item.number, "id"), item.status, ...this.badges(item)].join(" · ")), ...parts);
  }

  whole(item, title, which) {
    const more = this.more(item, which);
    const parts = [element("p", "note", `${this.of(item, which, "role")}, ${title}, ${number(this.of(item, which, "tokens"))} tokens`), element("pre", "", this.text(item, which))];
    if (more) parts.push(element("p", "note", `cut here: ${number(more)} more characters are in the run (ctxbench show --full)`));
    return parts;
  }

  events() {
    const offered = this.log.strategy.offered[this.step];
    const actions = (this.done.get(this.step) ?? []).map(([, kind, fields]) => {
      const entry = element("li");
      entry.append(element("span", "word", kind), element("bdi", "", Object.entries(fields).map(([name, value]) => `${name}=${value}`).join("  ")));
      return entry;
    });
    if (offered) actions.push(element("li", "", `tools offered besides: ${offered.join(", ")}`));
    get("events").replaceChildren(...(actions.length ? actions : [element("li", "note", "it reported nothing")]));
  }

  // Tokens by step: the whole history, and what was sent.
  curve() {
    const { full = [], sent = [] } = this.log ? this.log.strategy : {};
    const top = full.reduce((most, each) => Math.max(most, each), sent.reduce((most, each) => Math.max(most, each), 1));
    const line = (values, name) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
      line.setAttribute("class", name);
      line.setAttribute("points", values.map((each, at) => `${(((at + 0.5) * 1000) / values.length).toFixed(1)},${(58 - (56 * each) / top).toFixed(1)}`).join(" "));
      return line;
    };
    this.line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    this.line.setAttribute("class", "here");
    this.line.setAttribute("y1", 0);
    this.line.setAttribute("y2", 60);
    get("curve").replaceChildren(line(full, "full"), line(sent, "sent"), this.line);
  }

  cursor() {
    const x = ((this.step + 0.5) * 1000) / this.steps;
    this.line.setAttribute("x1", x);
    this.line.setAttribute("x2", x);
  }
}

if (document.querySelector("script.packed")) new Inspector();
state.tell();
