"""The tiers below Focus as one memory: messages are demoted, searched, read where they are, and promoted.

    tiers = Tiers(TieredSettings(), record)
    now = tiers.tick(seconds)
    tiers.add(message, tokens, now)          # the message is in Focus
    tiers.keep({"m7", "m8"}, now)            # these stay in Focus; all others are demoted
    tiers.search("…", 5)                     # ids below Focus, with scores
    tiers.read("m3", Trigger.CACHE_MISS, now)
    tiers.run(now, used=0.9)                 # execute moves

Each message is in exactly one tier: in Focus, until it is left out for the first time, or in a tier below, where
migration has it. A message below that Focus sends is a loan. The index covers all messages that ever left Focus,
whichever tier has them: it has the text to search, and the content is read from the tier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.values import Spellings, occurs
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt

from ...base import ModelError
from ...events import Compressed, Failed, LimitReached, Moved, TierEvent
from ...parts.language import LanguageSetting
from ..archive import ArchivedMessage, ArchiveTier, BlockTable, Coding
from ..focus import TruncationMode
from ..heat import Coldest, Gauges, Heat, Replacement
from ..jobs import Trigger
from ..migration import Migration, Tier
from ..quota import Quota
from ..rag import Embed, Rag, RagRules, Retriever, passage, relative
from ..rag.vectors import Index
from ..working.hybrid import Hybrid
from ..working.lru import Lfu
from ..working.policies import parse
from ..working.policy import Policy, Successors
from .quotes import Quotes

FOCUS, WORKING, ARCHIVE, RAG = "focus", "working", "archive", "rag"
UNBOUNDED = 1 << 62
ENTRIES = 5_000  # cost of a search: the most texts that the query's words occur in together, the rarest first
FORM = 3  # a value in more messages than this is boilerplate, and refers to none of them
JOBS = 64  # most moves of one call: the rest wait for the next
WORKING_TOKENS, ARCHIVE_TOKENS = 131_072, 1_048_576
POLICY = "lru_k(correlated=100)"
BLOCKS = 16  # blocks of a full Archive tier: 64K tokens each at the document's size
KEPT = 2 * BLOCKS  # blocks that stay decompressed: up to half of each may be deleted messages
DEAD = 0.5  # share of a block's messages that may be deleted before it is rewritten
LEVEL = 9
"""zstd level of the document. 19 saves two points more and takes ten times as long, while a model waits."""
DICTIONARY_BYTES = 1 << 18
"""Size of the raw dictionary. Making it anew writes all blocks again, which takes longer with a larger one."""

Event = TierEvent | Failed


@dataclass(slots=True)
class Loans:
    """Messages below Focus that the current turn sends, and why."""

    turn: str = ""  # id of the message searched for last
    called: dict[str, float | None] = field(default_factory=dict)
    """Messages recalled in this turn, with their search score; None = the message was named."""
    sent: set[str] = field(default_factory=set)  # ids of all messages of the last request


@dataclass(frozen=True, slots=True)
class TieredSettings:
    """Parameters of the strategy `tiered`."""

    tiers: Annotated[int, msgspec.Meta(ge=1, le=4)] = 4
    limit: PositiveInt = 8192
    working: PositiveInt = WORKING_TOKENS
    archive: PositiveInt = ARCHIVE_TOKENS
    rag: PositiveInt | None = None
    policy: str = POLICY
    archive_policy: str = "lru"
    truncation: TruncationMode = "tail_cutoff"
    recall: NonNegativeInt = 2048
    k: PositiveInt = 20
    retrievers: tuple[Retriever, ...] = ("bm25",)
    index: Index = "exact"
    rerank: NonNegativeInt = 0
    preload: bool = False
    tune: bool = False
    collect: bool = False
    language: LanguageSetting = "auto"


class DictStore:
    """Content in a dictionary, for the Working tier and the RAG tier."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[Any, int]] = {}
        self.tokens = 0

    def put(self, id: str, content: Any, tokens: int, now: float) -> None:
        self.delete(id, now)
        self.held[id] = content, tokens
        self.tokens += tokens

    def get(self, id: str) -> Any:
        return self.held[id][0]

    def delete(self, id: str, now: float) -> None:  # noqa: ARG002
        self.tokens -= self.held.pop(id, (None, 0))[1]


class Blocks:
    """Messages in an archive, written a block at a time.

    New messages wait in memory until there are `block` tokens of them. Deleted ones are marked when the next block is
    written, and their bytes removed once half of their own block is deleted.
    """

    def __init__(self, archive: ArchiveTier, block: int) -> None:
        self.archive, self.block = archive, block
        self.sizes: dict[str, int] = {}
        """Tokens by id."""
        self.waiting: dict[str, ArchivedMessage] = {}
        self.written: dict[str, int] = {}
        """Messages in the archive's files, with their bytes as JSON."""
        self.dead: dict[str, int] = {}
        """Deleted messages that are still in the files."""
        self.tokens = 0
        self.saved: float | None = None
        """Share of bytes saved at the last write of the archive; None before the first block."""
        self.unreported: Compressed | None = None
        """Size of the archive, if it was written and nobody has recorded that yet."""

    def put(self, id: str, content: Message, tokens: int, now: float) -> None:
        """Store a message. A deleted one that is still in the files is not written again."""
        self.delete(id, now)
        self.sizes[id] = tokens
        self.tokens += tokens
        if (size := self.dead.pop(id, None)) is not None:
            if self.archive.get(id).message == content:
                self.written[id] = size
                return
            self.archive.delete([id], now)
        self.waiting[id] = ArchivedMessage(id, tokens, content)
        if sum(item.tokens for item in self.waiting.values()) >= self.block:
            self.flush(now)

    def get(self, id: str) -> Message:
        """Return the message of an id. Raises KeyError, Damaged."""
        return (self.waiting.get(id) or self.archive.get(id)).message

    def delete(self, id: str, now: float) -> None:  # noqa: ARG002
        """Delete the message of an id. Its bytes may stay in a block until the block is rewritten."""
        self.tokens -= self.sizes.pop(id, 0)
        self.waiting.pop(id, None)
        if (size := self.written.pop(id, None)) is not None:
            self.dead[id] = size

    def flush(self, now: float) -> None:
        if self.dead:
            self.archive.delete(self.dead, now)
            self.archive.clean(now, delay=0, least=DEAD)
            self.dead = {}
        self.archive.put(self.waiting.values())
        self.written |= {id: len(msgspec.json.encode(item.message)) for id, item in self.waiting.items()}
        self.waiting = {}
        if raw := sum(self.written.values()):
            messages = sum(part.messages for part in self.archive.parts)
            self.saved = 1 - self.archive.size * len(self.written) / messages / raw
        # An archive that nothing was written to has no files.
        self.unreported = Compressed(raw, self.archive.size if self.archive.parts else 0)


def memory_archive(block: int) -> ArchiveTier:
    """Return an empty archive in memory, with blocks of some tokens."""
    return ArchiveTier(BlockTable(), Coding(LEVEL, "raw", DICTIONARY_BYTES, block_tokens=block), keep=KEPT)


class Tiers:
    """Messages of one conversation by id. `run` records the moves of each edge as one event."""

    def __init__(self, rules: TieredSettings, record: Callable[[Event], None], embed: Embed | None = None) -> None:
        self.rules, self.record = rules, record
        self.now, self.gauges = 0.0, Gauges()
        self.focus: dict[str, tuple[Message, int]] = {}
        """Messages only in Focus, with their tokens."""
        self.loans = Loans()
        self.successors = Successors() if rules.preload else None
        heat = Heat()
        cooling = heat if rules.collect else None
        self.by_policy = ByPolicy(parse(rules.policy).sized(rules.working), cooling)
        block = max(1, rules.archive // BLOCKS)
        self.working, self.blocks, self.rag = DictStore(), Blocks(memory_archive(block), block), DictStore()
        of_archive = ByPolicy(parse(rules.archive_policy).sized(rules.archive), cooling)
        of_rag = ByPolicy(Lfu(rules.rag)) if rules.rag else None
        rows = (
            Tier(WORKING, self.working, Quota(rules.working), replacement=self.by_policy),
            Tier(ARCHIVE, self.blocks, Quota(rules.archive), replacement=of_archive),
            Tier(RAG, self.rag, Quota(rules.rag or UNBOUNDED), replacement=of_rag),
        )[: rules.tiers - 1]
        self.moves: list[Moved] = []
        """Moves since the last `run`."""
        self.migration = Migration(rows, self._note, heat, drops=rules.tiers < 4 or rules.rag is not None)
        self.question = ""
        """Query of the last search."""
        self._like: NDArray[np.float64] | None = None
        if isinstance(self.by_policy.policy, Hybrid):
            self.by_policy.policy.similarity = self._likeness
        self.index = Rag(RagRules(retrievers=rules.retrievers, index=rules.index, entries=ENTRIES), embed)
        self.quotes = Quotes()
        """Fingerprints of the same texts, by their numbers in the index."""

    def __contains__(self, id: str) -> bool:
        """Return whether a message is below Focus."""
        return id in self.migration

    def lost(self, id: str) -> bool:
        """Return whether no tier has a message: the lowest one has dropped it."""
        return id not in self.migration and id not in self.focus

    def tick(self, recorded: float | None) -> float:
        """Return the time of the next call, in recorded seconds, which never go back.

        A call without a time is a second after the previous one.
        """
        self.now = self.now + 1 if recorded is None or not math.isfinite(recorded) else max(self.now, recorded)
        return self.now

    def add(self, message: Message, tokens: int, now: float) -> None:
        """Add a message to Focus, unless it is below. A message below with other content is forgotten first."""
        if message.id in self.migration and message.id not in self.focus:
            if self.migration.holds(message.id, message):
                return
            self.migration.forget(message.id, now)
        if message.id:  # without an id it cannot be looked up again
            self.focus[message.id] = message, tokens

    def keep(self, sent: Collection[str], now: float) -> None:
        """Demote all messages that are only in Focus, except for the ids in `sent`."""
        for id in [id for id in self.focus if id not in sent]:
            message, tokens = self.focus.pop(id)
            tier = self.migration.put(id, message, tokens, WORKING, now)
            self._note(Moved((id,), FOCUS, tier, tokens))
            entry = passage(message)
            if tier and entry.text:
                self.index.add([entry])
                self.quotes.add(self.index.numbers[id], entry.text)

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """Return the best `k` messages below Focus for a query, best first, with their scores. Without RAG, none."""
        self.question, self._like = query, None
        if RAG not in self.migration.tiers:
            return []
        try:
            hits = self.index.search(query, k, rerank=self.rules.rerank)
        except ModelError as error:
            others = [name for name in self.rules.retrievers if name != "vector"]
            self.record(Failed("embedding", str(error), "searched by words" if others else "nothing is searched for"))
            hits = self.index.search(query, k, by=others, rerank=self.rules.rerank)
        return [(id, round(score, 4)) for id, score in hits]

    def containing(self, value: Spellings) -> str | None:
        """Return the latest of the messages below that contain a value; None if none or more than `FORM` do."""
        numbers = {
            number
            for spelling in value
            for number in self.index.bm25.containing_all(spelling, 10 * FORM).tolist()
            if occurs(spelling, self.index.at(number).text)
        }
        return self.index.at(max(numbers)).id if 0 < len(numbers) <= FORM else None

    def quoted(self, text: str) -> list[str]:
        return [self.index.at(number).id for number in self.quotes.quoted(text, lambda at: self.index.at(at).text)]

    def read(self, id: str, trigger: Trigger, now: float, asked: bool = True) -> str:
        """Read a message where it is, and return its tier. A look-up (`asked`) counts as a hit or a miss.

        The message is promoted to Working if it was named or is hot. Most search results are never named, and promoting
        them would evict messages that are.
        """
        tier = self.migration.tier(id)
        self.migration.use(id, now)
        if asked:
            self.gauges.look(tier == WORKING)
        hot = self.migration.heat.score(id, now) >= self.migration.tuning.threshold
        if tier != WORKING and (hot or trigger is Trigger.FOCUS_REFERENCE):
            self.migration.promote(id, WORKING, trigger, now)
        if self.successors is not None:  # the messages that usually follow are promoted as well
            self.successors.learn(id)
            for other in self.successors.after(id):
                if other in self.migration and self.migration.tier(other) != WORKING:
                    self.migration.promote(other, WORKING, Trigger.PREDICTED_USE, now)
        return tier

    def run(self, now: float, used: float) -> None:
        """Execute moves and take readings. `used` is the share of the limit that Focus sends."""
        outcomes = self.migration.run(now, JOBS)
        if self.rules.collect:
            # Demotes what has gone cold, and as much as a store holds beyond its tier's limit: moved messages stay
            # there for a while. The moves are made at the next call, and not at all if the message is used before.
            for tier in list(self.migration.tiers.values())[:-1]:
                if (beyond := tier.store.tokens - tier.quota.hard) > 0:
                    self.migration.collect(tier.name, beyond, now)
            self.migration.decay(now)
        archive = self.migration.tiers.get(ARCHIVE)
        pressure = None if archive is None else archive.store.tokens / archive.quota.hard
        readings = self.gauges.read(now, used, self.blocks.saved, pressure, outcomes, RAG)
        if self.rules.tune and self.gauges.due():
            tuning, coding = self.migration.tune(readings), self.blocks.archive.coding
            self.blocks.archive.coding = replace(coding, level=tuning.level)
            if isinstance(self.by_policy.policy, Hybrid):
                self.by_policy.policy.weights = (*tuning.weights,)
        for source, to in dict.fromkeys((move.source, move.to) for move in self.moves):
            moves = [move for move in self.moves if (move.source, move.to) == (source, to)]
            ids = tuple(id for move in moves for id in move.sources)
            tokens, queue_time = sum(move.tokens for move in moves), sum(move.queue_time for move in moves)
            self.record(Moved(ids, source, to, tokens, queue_time))
        self.moves = []
        if self.blocks.unreported is not None:
            self.record(self.blocks.unreported)
            self.blocks.unreported = None
        self.gauges.judge(readings, self.record)

    def _likeness(self, id: str) -> float:
        """Return the BM25 score of a message for the last query, as a share of the best."""
        number = self.index.numbers.get(id)
        if self._like is None or len(self._like) < len(self.index.passages):
            scores = self.index.bm25.score(self.question, np.arange(len(self.index.passages)))
            self._like = relative(scores)
        return 0.0 if number is None else float(self._like[number])

    def _note(self, event: Moved | LimitReached) -> None:
        if not isinstance(event, Moved):
            self.record(event)
            return
        self.moves.append(event)
        for id in () if event.to else event.sources:
            if id in self.index:
                number = self.index.numbers[id]
                self.quotes.delete(number, self.index.at(number).text)
                self.index.delete([id])


class ByPolicy(Replacement):
    """A cache policy as the replacement policy of a tier.

    The policy sees the accesses and evictions that it would see in a cache of its own, whose capacity is the tier's
    hard limit. Between its eviction and its move an item is out: the policy does not have it, the tier still does. If
    it is used meanwhile, the policy admits it again. Items that could not be moved stay out, and so do items that a
    policy rejects (`w_tiny_lfu` rejects new items): they are the first victims.

    Departs from a cache in one thing: room is made before the policy knows for which item. So ARC adapts to an
    item in a ghost queue after the eviction that it causes, not before.
    """

    def __init__(self, policy: Policy, heat: Heat | None = None) -> None:
        """With the `heat` of the items, cold ones leave before room is needed, whatever the policy."""
        self.policy = policy
        self._tokens: dict[str, int] = {}  # of all items in the tier
        self._coldest = None if heat is None else Coldest(heat, self._tokens)
        self._out: dict[str, None] = {}  # evicted items still in the tier, the first victim first

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        self._tokens[id] = tokens
        self._out.update(dict.fromkeys(self.policy.access(id, tokens, now, used).evicted))

    def use(self, id: str, now: float) -> None:
        self._out.pop(id, None)
        self._out.update(dict.fromkeys(self.policy.access(id, self._tokens[id], now).evicted))

    def gone(self, id: str) -> None:
        del self._tokens[id]
        if id in self._out:
            del self._out[id]
        else:
            self.policy.remove(id)

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """Yield victims; with `cold` none without a heat, because a policy does not know which items are cold."""
        if cold:
            yield from () if self._coldest is None else self._coldest.leaving(now, cold)
            return
        yield from tuple(self._out)
        while evicted := self.policy.expel(now):
            self._out.update(dict.fromkeys(evicted))
            yield from evicted

    def state(self) -> Any:
        return {"policy": self.policy.state(), "tokens": self._tokens, "out": list(self._out)}

    def restore(self, state: Any) -> None:
        self.policy.restore(state["policy"])
        self._out = dict.fromkeys(state["out"])
        self._tokens.update(state["tokens"])
