// The context sent at each step of a result, and the diff of every message: the same as harness/diff.py.
// Messages have numbers: those of the recording from 0, after them those that the strategy wrote.
class Result {
  constructor(conversation, strategy) {
    this.size = conversation.messages.id.length;
    this.strategy = strategy;
    const same = new Set(strategy.same);
    // A written message that is the recorded one counts as that.
    this.numbers = strategy.of.map((place, at) => (same.has(at) ? place : this.size + at));
    this.step = -1;
    this.context = [];
    this.before = new Set();
  }

  number(raw) { return raw < this.size ? raw : this.numbers[raw - this.size]; }

  place(number) { return number < this.size ? number : this.strategy.of[number - this.size]; }

  // The numbers of the messages sent at a step. A step on costs what it adds; a step back begins anew.
  go(step) {
    if (step < this.step) { this.step = -1; this.context = []; }
    while (this.step < step) {
      this.step += 1;
      if (this.step === step) this.before = new Set(this.context);
      this.context.length = this.strategy.kept[this.step];
      const added = this.strategy.added[this.step];
      for (let at = 0; at < added.length; at += 2) {
        for (let raw = added[at]; raw < added[at + 1]; raw += 1) this.context.push(this.number(raw));
      }
    }
    return this.context;
  }

  // The context, with each message that is not sent at its place in the history: {number, status, origin, at (in the context, or -1)}.
  diff(step) {
    if (step === this.step) this.go(-1);
    const context = this.go(step), length = this.strategy.at[step], kept = this.strategy.kept[step];
    const sent = new Set();
    const known = (number) => { const place = this.place(number); return place >= 0 && place < length ? place : -1; };
    for (const number of context) { const place = known(number); if (place >= 0) sent.add(place); }
    const summarised = this.until(step, "summarised");
    const messages = [];
    let next = 0;
    const absent = (stop) => {
      for (; next < stop; next += 1) {
        if (!sent.has(next)) messages.push({ number: next, status: summarised.has(next) ? "summarised" : "dropped", origin: "recorded", at: -1 });
      }
    };
    context.forEach((number, at) => {
      const place = known(number);
      if (place >= next) absent(place);
      const status = at < kept ? "same" : this.before.has(number) ? "again" : "new";
      messages.push({ number, status, origin: place < 0 ? "written" : number === place ? "recorded" : "replaced", at });
    });
    absent(length);
    return messages;
  }

  // Places of the messages that were summarised, or archived, up to a step.
  until(step, what) {
    const numbers = new Set();
    for (const [at, places] of this.strategy[what]) {
      if (at > step) break;
      for (const place of [places].flat()) numbers.add(place);
    }
    return numbers;
  }

  // The next step whose prompt does not begin with all of the one before; -1 if there is none.
  broken(after) {
    const { kept, added } = this.strategy;
    const size = (step) => kept[step] + added[step].reduce((sum, end, at) => sum + (at % 2 ? end : -end), 0);
    for (let step = after + 1; step < kept.length; step += 1) if (kept[step] < size(step - 1)) return step;
    return -1;
  }

  // The next step that no longer sends a message of the history which the step before sent; only those of `places` if given.
  lost(after, places = null) {
    const sent = (step) => new Set(this.go(step).map((number) => this.place(number)).filter((place) => place >= 0 && (!places || places.has(place))));
    for (let step = this.broken(after); step > 0; step = this.broken(step)) { // where the prefix is whole, nothing is lost
      const now = sent(step);
      this.go(-1);
      for (const place of sent(step - 1)) if (!now.has(place)) return step;
    }
    return -1;
  }
}
