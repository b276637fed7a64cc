// What the reader chose, and the address that says it: #tab=cost&model=…&only=…&only=…&conversation=…&strategy=…&step=…
// An address without "=" is the id of a part of the page: its tab is opened, and it is scrolled to.
class State {
  constructor() {
    this.listeners = [];
    this.tabs = [...document.querySelectorAll(".tab")].map((tab) => tab.id.slice(4));
    this.read();
    this.write();
    addEventListener("hashchange", () => {
      this.read();
      this.write();
      this.tell();
    });
  }

  read() {
    const hash = location.hash.slice(1);
    let id = hash.includes("=") ? "" : hash;
    try { id = decodeURIComponent(id); } catch { /* not an address of ours: there is no such part */ }
    this.target = id ? document.getElementById(id) : null;
    // An anchor keeps what was chosen before it.
    if (!id || !this.values) this.values = new URLSearchParams(hash.includes("=") ? hash : "");
    const tab = this.target?.closest(".tab")?.id.slice(4) ?? this.values.get("tab") ?? (this.values.has("conversation") ? "inspector" : "verdict");
    this.values.set("tab", this.tabs.includes(tab) ? tab : "verdict");
  }

  get(name) { return this.values.get(name); }

  all(name) { return this.values.getAll(name); }

  // Let the address of a part say all that was chosen, so that it can be sent.
  write(push = false) {
    if (!push && (!location.hash || location.hash.includes("="))) return;
    const hash = `#${this.values.toString().replaceAll("+", "%20")}`;
    try { history[push === "push" ? "pushState" : "replaceState"](null, "", hash); } catch { /* not allowed here */ }
  }

  // Set some values (null or an empty list: none), and say so in the address: `push` a new one, to which Back leads;
  // `quiet` tells no listener.
  set(values, { quiet = false, push = false } = {}) {
    for (const [name, value] of Object.entries(values)) {
      this.values.delete(name);
      for (const one of [value].flat()) if (one !== null && one !== undefined) this.values.append(name, one);
    }
    this.target = null;
    this.write(push ? "push" : "replace");
    if (!quiet) this.tell();
  }

  listen(listener) { this.listeners.push(listener); }

  tell() { for (const listener of this.listeners) listener(); }
}
const state = new State();
