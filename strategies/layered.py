"""S5, `layered`: working, short-term and long-term memory (design document 000 §2.4, §3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..metrics.tfidf import Scores, best
from .base import Context, ModelError, StrategyContext, View
from .events import Failed, Recalled
from .parts.layers import LayerItem, LayerRules, Layers, Tier
from .parts.memories import FORM, Note, Past, Recalling
from .parts.search import VectorSearch, WordSearch
from .parts.units import at_least


class LayerHit(NamedTuple):
    """A memory that was recalled, from which tier, with its weighted score."""

    item: LayerItem
    tier: Tier
    score: float


@dataclass(frozen=True, slots=True)
class Layered(Recalling):
    """System messages, what three memories recall for the newest user message, and the last `recent` turns.

    * Working memory: the tasks and tool results of this session. Found by the words that it shares with the question,
      rare ones first. When a session ends (nothing said for `session_hours`) it becomes session history.
    * Short-term memory: session history, found by vectors. It lives `ttl_hours`; each turn that recalls it renews
      that, up to `longest_ttl_hours` after it was said. Then it is gone (Moved to nowhere).
    * Long-term memory: preferences, facts, procedures, summaries of at least `long_importance`, for ever, found by
      vectors. What is below that stays session history: the document drops it without a word.
    * What was recalled in `promote_after` turns is promoted to long-term memory whatever its importance (Moved). The
      document calls its own threshold again there, and so loses what it promotes.

    Each of `tiers` gives its best `limit`; a score counts `working`, `short` or `long` times; the best `limit` of all
    are sent as one system message. Types and importance are `kinds.kind_of` and `importance_of`.

    Time is the recorded one. Without times the whole recording is one session that takes no time: nothing ends or
    expires. A message without a time has that of the message before it; the first, that of the
    first model call.

    `search="document"` is the document's code: working memory is found only if it contains the whole question, and
    short-term memory never.

    Parameters shared with `retrieval` mean the same, and so do the budget and what happens if the embedder fails.
    """

    tiers: tuple[Tier, ...] = ("working", "short", "long")
    working: float = 1.0
    short: float = 0.8
    long: float = 0.6
    long_importance: float = 6.0
    ttl_hours: float = 24.0
    longest_ttl_hours: float = 168.0
    session_hours: float = 6.0
    promote_after: int = 3
    search: Literal["full", "document"] = "full"

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "000 §2.4, §3.3"
    fails: ClassVar[str] = "the question does not say what it is about: the memories that it needs are not called up"

    def __post_init__(self) -> None:
        Recalling.__post_init__(self)
        at_least(1, promote_after=self.promote_after)
        if not self.tiers or len(set(self.tiers)) < len(self.tiers):
            raise ValueError(f"tiers must name at least one of 'working', 'short', 'long', each once, not {self.tiers}")
        at_least(0, working=self.working, short=self.short, long=self.long)
        longest = self.longest_ttl_hours
        at_least(0, ttl_hours=self.ttl_hours, longest_ttl_hours=longest, session_hours=self.session_hours)
        if self.ttl_hours > longest:
            raise ValueError(f"ttl_hours must be at most longest_ttl_hours, {longest}, not {self.ttl_hours}")

    def start(self, desk: StrategyContext) -> View:
        past = Past(desk, self)
        rules = LayerRules(
            self.long_importance, self.ttl_hours, self.longest_ttl_hours, self.session_hours, self.promote_after
        )
        note = Note(desk, "layered", FORM[self.language])
        layers, recall = Layers(rules, desk.record), Recall(desk, self)
        found: list[LayerHit] = []
        last: tuple[str, str | None] | None = None

        def view(context: Context) -> Context:
            nonlocal found, last
            past.read(context.messages)
            turn = past.turn
            if last is not None and turn != last[0]:
                layers.settle()
                last = None
            changed = layers.follow(past, desk.now)
            query = past.question()
            if changed or (turn, query) != last:
                found, embedded = recall.best(layers.items, query) if query else ([], True)
                last = turn, query if embedded else None
            layers.refer((each.item for each in found), desk.now)
            lines = [f"- [{each.item.memory.kind}] {each.item.memory.line}" for each in found]
            message, kept = note.of(lines, past.room, context.messages)
            for tier in self.tiers:
                of_it = [(found[at].item.memory.source, found[at].score) for at in kept if found[at].tier == tier]
                if of_it:
                    sources, scores = zip(*of_it, strict=True)
                    desk.record(Recalled(sources, scores, tier))
            return past.sending(context, message)

        return view


class Recall:
    """Finds what each memory has for a question."""

    __slots__ = ("_bags", "_desk", "_vectors", "_with")

    def __init__(self, desk: StrategyContext, rules: Layered) -> None:
        self._desk, self._with = desk, rules
        self._vectors, self._bags = VectorSearch(desk), WordSearch()

    def best(self, items: list[LayerItem], query: str) -> tuple[list[LayerHit], bool]:
        """The best items, best first; of equal ones the later. And whether vectors could be had."""
        rules = self._with
        weights = {"working": rules.working, "short": rules.short, "long": rules.long}
        inside = {tier: [at for at, item in enumerate(items) if item.tier == tier] for tier in rules.tiers}
        if rules.search == "document":
            inside["short"] = []
        vectored = [items[at] for tier, places in inside.items() if tier != "working" for at in places]
        cosines = self._cosines(vectored, query)
        found: list[tuple[int, LayerHit]] = []
        for tier, places in inside.items():
            here = [items[at] for at in places]
            scores = self._scores(tier, here, query, cosines)
            chosen = [each for each in best(scores, rules.limit) if scores[each] > 0 or tier != "working"]
            weighted = (scores * weights[tier]).round(4).tolist()
            found += [(places[each], LayerHit(here[each], tier, weighted[each])) for each in chosen]
        found.sort(key=lambda pair: (-pair[1].score, -pair[0]))
        return [each for _, each in found[: rules.limit]], cosines is not None

    def _scores(self, tier: Tier, items: list[LayerItem], query: str, cosines: Scores | None) -> Scores:
        """How well the memories of a tier match, unweighted."""
        if tier != "working" and cosines is not None:
            return cosines[np.fromiter((item.row for item in items), np.int64, len(items))]
        if tier == "working" and self._with.search == "document":
            return np.array([float(query.lower() in item.memory.text.lower()) for item in items])
        rows = self._bags.rows([item.memory.text for item in items])
        return self._bags.scores(query)[rows]

    def _cosines(self, items: list[LayerItem], query: str) -> Scores | None:
        """The cosines of all rows, after these items have one; None if they cannot be had."""
        new = [item for item in items if item.row < 0]
        try:
            for item, row in zip(new, self._vectors.rows([item.memory.text for item in new]), strict=True):
                item.row = int(row)
            return self._vectors.scores(query)
        except ModelError as error:
            self._desk.record(Failed("embedding", str(error), "ranked by words in common"))
            return None
