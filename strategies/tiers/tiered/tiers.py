"""The tiers below Focus as one memory: content goes down, is found, read where it is, and comes up again.

    tiers = Tiers(Rules(), record)
    now = tiers.clock.tick(seconds)
    tiers.say(message, tokens, now)          # it is in Focus
    tiers.keep({"m7", "m8"}, now)            # what Focus goes on holding; the rest goes down
    tiers.search("…", 5)                     # ids below, with scores
    tiers.read("m3", Trigger.CACHE_MISS, now)
    tiers.run(now, used=0.9)                 # moves what is to be moved

Each message is in exactly one tier: in Focus, as long as it was never left out, or in one of those below, where
migration has it. What Focus sends of what is below is a loan. The index is over all that ever left Focus, whichever
tier has it, as a table of contents is: it has the text to search, and the content is read from the tier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ....metrics.values import Spellings, occurs
from ....scenarios.model import Message
from ...base import ModelError
from ...events import Alarmed, Failed, LimitReached, Moved
from ..archive import ArchiveTier, Coding, MemoryFiles
from ..migration import MemoryJournal, Migration, Replacement, Tier, TierError, Trigger
from ..quota import Quota
from ..rag import Embed, Passage, Rag, passage
from ..rag.fusion import relative
from ..rag.rules import RagRules
from ..working.hybrid import Hybrid
from ..working.lru import Lru
from ..working.policies import parse
from ..working.policy import Policy
from ..working.preload import Successors
from .gauges import Gauges
from .quotes import Quotes
from .stores import KEPT, Blocks, DictStore, TierRules, content_of, message_of

FOCUS, WORKING, ARCHIVE, RAG = "focus", "working", "archive", "rag"
UNBOUNDED = 1 << 62
LEVEL = 9
"""Of zstd: the document's. 19 saves two points more and takes ten times as long, while a model waits."""
ENTRIES = 5_000
"""What a search may cost: how many texts the question's words stand in together, the rarest first."""
FORM = 3
"""A value that stands in more messages than this is a form, and refers to none of them."""
JOBS = 64
"""Moves of one call, at most: the rest is done at the next."""

Event = Moved | LimitReached | Alarmed | Failed


@dataclass(slots=True)
class Loans:
    """What Focus sends of what is below, and why."""

    turn: str = ""
    """The message whose question was searched for last."""
    called: dict[str, float | None] = field(default_factory=dict)
    """What the turn has called back so far, with the score of the search; None = it was named."""
    sent: set[str] = field(default_factory=set)
    """All that was sent at the last call."""


class Read(NamedTuple):
    """What was read, and the tier that it was in."""

    content: bytes
    tier: str

    @property
    def message(self) -> Message:
        """The message."""
        return message_of(self.content)


class Tiers:
    """Messages of one conversation by id. Events go to `record`, moves of one edge together, when `run` is called."""

    def __init__(
        self,
        rules: TierRules,
        record: Callable[[Event], None],
        embed: Embed | None = None,
        archive: ArchiveTier | None = None,
        block: int | None = None,
    ) -> None:
        """`archive`: another than one in memory; it should be given `block=0`, so that nothing waits in memory."""
        self.rules, self.record = rules, record
        self.clock, self.gauges = MigrationClock(), Gauges()
        self.focus: dict[str, tuple[Message, int]] = {}
        """What Focus alone has, with its tokens."""
        self.loans = Loans()
        self.successors = Successors() if rules.preload else None
        self.by_policy = ByPolicy(parse(rules.policy).sized(rules.working))
        if archive is None:
            archive = ArchiveTier(MemoryFiles(), Coding(LEVEL, "none", block_tokens=rules.block), keep=KEPT)
        self.blocks = Blocks(archive, rules.block if block is None else block)
        self.working, self.rag = DictStore(), DictStore()
        rows = (
            Tier(WORKING, self.working, Quota(rules.working), durable=False, replacement=self.by_policy),
            Tier(ARCHIVE, self.blocks, Quota(rules.archive), durable=False, replacement=ByPolicy(Lru(rules.archive))),
            Tier(RAG, self.rag, Quota(UNBOUNDED), durable=False),
        )
        self.moves: list[Moved] = []
        """Since `run` was called last."""
        self.migration = Migration(rows, MemoryJournal(), self._note, self.clock.now)
        self.question = ""
        """What was searched for last."""
        self._like: NDArray[np.float64] | None = None
        if isinstance(self.by_policy.policy, Hybrid):
            self.by_policy.policy.similarity = self._likeness
        self.index = Rag(RagRules(retrievers=rules.retrievers, entries=ENTRIES), embed)
        self.quotes = Quotes()
        """Of the same texts, by their numbers in the index."""

    def __contains__(self, id: str) -> bool:
        """Whether a message is below Focus."""
        return id in self.migration

    def say(self, message: Message, tokens: int, now: float) -> None:
        """A message is in Focus, unless it is below already. Said with other content, it is another."""
        if message.id in self.migration and message.id not in self.focus:
            if self.migration.holds(message.id, content_of(message)):
                return
            self.forget(message.id, now)
        if message.id:  # nothing can be found again that has no name
            self.focus[message.id] = message, tokens

    def keep(self, sent: Collection[str], now: float) -> None:
        """What Focus goes on holding. All else that it alone has goes down."""
        for id in [id for id in self.focus if id not in sent]:
            message, tokens = self.focus.pop(id)
            tier = self.migration.put(id, content_of(message), tokens, WORKING, now)
            self._note(Moved((id,), FOCUS, tier, tokens))
            text = msgspec.structs.replace(passage(message, tokens=tokens), message=None, time=now)
            if text.text:
                self.index.add([text], now)
                self.quotes.add(self.index.numbers[id], text.text)

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best `k` of what is below for a question, best first, with their scores."""
        self.question, self._like = query, None
        try:
            hits = self.index.search(query, k, now=self.clock.now)
        except ModelError as error:
            others = [each for each in self.rules.retrievers if each != "vector"]
            self.record(Failed("embedding", str(error), "searched by words" if others else "nothing is searched for"))
            hits = self.index.search(query, k, now=self.clock.now, by=others) if others else []
        return [(hit.passage.id, round(hit.score, 4)) for hit in hits]

    def having(self, value: Spellings) -> str | None:
        """The latest of the few messages below that say a value; None if none does, or many do."""
        having = ((spelling, at) for spelling in value for at in self.index.bm25.having(spelling, 10 * FORM).tolist())
        found = {at for spelling, at in having if occurs(spelling, self._passage(at).text)}
        return self._passage(max(found)).id if 0 < len(found) <= FORM else None

    def quoted(self, text: str) -> list[str]:
        """The messages below that a text quotes."""
        return [self._passage(number).id for number in self.quotes.quoted(text, lambda at: self._passage(at).text)]

    def read(self, id: str, trigger: Trigger, now: float, asked: bool = True) -> Read | None:
        """Read a message where it is. None if it is damaged. `asked`: somebody looked for it, which is a hit or a miss.

        It is promoted to Working if it was referred to, or is hot: of what a search finds most is not asked for, and it
        would drive out what is.
        """
        tier = self.migration.tier(id)
        try:
            content = self.migration.get(id, now)
        except TierError as error:
            self.record(Failed("load", str(error), "it is not sent"))
            return None
        if asked:
            self.gauges.look(tier == WORKING)
        hot = self.migration.heat.score(id, now) >= self.migration.tuning.threshold
        if tier != WORKING and (hot or trigger is Trigger.FOCUS_REFERENCE):
            self.migration.promote(id, WORKING, trigger, now)
        self._predict(id, now)
        return Read(content, tier)

    def forget(self, id: str, now: float) -> None:
        """A message below is not what it was: it is nowhere any more."""
        self.migration.forget(id, now)
        if id in self.index:
            number = self.index.numbers[id]
            self.quotes.delete(number, self._passage(number).text)
            self.index.delete([id])

    def run(self, now: float, used: float) -> None:
        """Move what is to be moved, and look at the readings. `used`: the share of its limit that Focus sends."""
        outcomes = self.migration.run(now, JOBS)
        readings = self.gauges.read(now, used, self.blocks.saved, self.migration.pressure(ARCHIVE), outcomes)
        if self.rules.tune and self.gauges.due():
            self._tune(self.migration.tune(readings).level)
        for source, to in dict.fromkeys((each.source, each.to) for each in self.moves):
            moves = [each for each in self.moves if (each.source, each.to) == (source, to)]
            ids = tuple(id for each in moves for id in each.sources)
            tokens, queue_time = sum(each.tokens for each in moves), sum(each.queue_time for each in moves)
            self.record(Moved(ids, source, to, tokens, queue_time))
        self.moves = []
        self.gauges.judge(readings, self.record)

    def _likeness(self, id: str) -> float:
        """How well a message fits what was searched for last: by BM25, as a share of the best."""
        number = self.index.numbers.get(id)
        if self._like is None or len(self._like) < len(self.index.passages):
            scores = self.index.bm25.score(self.question, np.arange(len(self.index.passages)))
            self._like = relative(scores)
        return 0.0 if number is None else float(self._like[number])

    def _passage(self, number: int) -> Passage:
        found = self.index.passages[number]
        assert found is not None
        return found

    def _tune(self, level: int) -> None:
        self.blocks.archive.coding = replace(self.blocks.archive.coding, level=level)
        if isinstance(self.by_policy.policy, Hybrid):
            self.by_policy.policy.weights = (*self.migration.tuning.weights,)

    def _predict(self, id: str, now: float) -> None:
        """Ask for what usually comes next."""
        if self.successors is None:
            return
        self.successors.learn(id)
        for other in self.successors.after(id):
            if other in self.migration and self.migration.tier(other) != WORKING:
                self.migration.promote(other, WORKING, Trigger.PREDICTED_USE, now)

    def _note(self, event: Moved | LimitReached) -> None:
        if isinstance(event, Moved):
            self.moves.append(event)
        else:
            self.record(event)


class _State(msgspec.Struct, forbid_unknown_fields=True):
    policy: dict[str, Any]
    tokens: dict[str, int]
    out: list[str]


class ByPolicy(Replacement):
    """The policy sees what it would see in a cache of its own: accesses, and evictions one by one, with all that it
    remembers of them. Its capacity is the tier's hard limit.

    Between its eviction and its move an item is out: the policy no longer holds it, and the tier still has it. If it is
    used meanwhile the policy takes it back, as if it were loaded. What could not be moved stays out, and so does what a
    policy evicts unasked (`w_tiny_lfu` turns newcomers away): such items are the first to leave.

    Departs from a cache in one thing: room is made before the policy knows for whom. So ARC and 2Q adapt to an item
    that they remember after the eviction that it causes, not before.
    """

    __slots__ = ("_out", "_tokens", "policy")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._tokens: dict[str, int] = {}
        """Of all that is in the tier."""
        self._out: dict[str, None] = {}
        """Those that are out, the first to leave first."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        self._tokens[id] = tokens
        found = (self.policy.access if used else self.policy.preload)(id, tokens, now)
        self._out.update(dict.fromkeys(found.evicted))

    def use(self, id: str, now: float) -> None:
        self._out.pop(id, None)
        found = self.policy.access(id, self._tokens[id], now)
        self._out.update(dict.fromkeys(found.evicted))

    def gone(self, id: str) -> None:
        del self._tokens[id]
        if id in self._out:
            del self._out[id]
        else:
            self.policy.remove(id)

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """A policy knows who is to go first, not who is cold: without need nobody leaves."""
        if cold:
            return
        yield from tuple(self._out)
        while evicted := self.policy.expel(now):
            self._out.update(dict.fromkeys(evicted))
            yield from evicted

    def state(self) -> Any:
        return msgspec.to_builtins(_State(self.policy.state(), self._tokens, list(self._out)))

    def restore(self, state: Any) -> None:
        try:
            found = msgspec.convert(state, _State)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is no state of a policy: {error}") from None
        policy = self.policy.restored(found.policy)
        if policy.tokens.keys() | set(found.out) != found.tokens.keys() or policy.tokens.keys() & set(found.out):
            raise ValueError("this is no state of a policy: its items are not those of its tier")
        self.policy, self._tokens, self._out = policy, found.tokens, dict.fromkeys(found.out)


class MigrationClock:
    """Seconds that never go back. A call that has no time is a second after the one before."""

    __slots__ = ("now",)

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def tick(self, recorded: float | None) -> float:
        """The time of the next call. What goes back stands still."""
        if recorded is None or not math.isfinite(recorded):
            self.now += 1
        else:
            self.now = max(self.now, recorded)
        return self.now
