"""Where the tiers below Focus keep content: messages as JSON, in a dictionary, or in an archive's blocks."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ....scenarios.errors import SpecError
from ....scenarios.model import Message
from ...parts.units import at_least
from ..archive import ArchivedMessage, ArchiveTier
from ..migration.store import Sum, summed
from ..rag import Retriever
from ..rag.rules import RagRules
from ..working.belady import Belady
from ..working.policies import POLICIES, parse

DEAD = 0.5
"""The share of a block's messages that may be deleted before it is written anew."""
_decode = msgspec.json.Decoder(Message).decode


def content_of(message: Message) -> bytes:
    """A message as it is stored: equal messages have equal bytes. Raises UnicodeEncodeError for half a character."""
    return msgspec.json.encode(message)


def message_of(content: bytes) -> Message:
    """The message again."""
    return _decode(content)


class DictStore:
    """A dictionary: the Working tier and the RAG tier."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[bytes, int]] = {}
        self.tokens = 0

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        """Store content."""
        self.delete(id, now)
        self.held[id] = content, tokens
        self.tokens += tokens

    def get(self, id: str) -> bytes:
        """The content."""
        return self.held[id][0]

    def __contains__(self, id: str) -> bool:
        return id in self.held

    def delete(self, id: str, now: float) -> None:  # noqa: ARG002
        """Forget it."""
        self.tokens -= self.held.pop(id, (b"", 0))[1]


class Blocks:
    """An archive. What comes waits until there are `block` tokens of it, and is written together; 0 = it never waits.

    What is deleted is marked when the next block is written, and cleaned away when half of its own block is.
    """

    def __init__(self, archive: ArchiveTier, block: int) -> None:
        self.archive, self.block = archive, block
        self.sizes: dict[str, int] = {}
        """Tokens of all that is there."""
        self.waiting: dict[str, ArchivedMessage] = {}
        self.written: dict[str, Sum] = {}
        """Of what is there and in the archive's files, what its content is."""
        self.dead: dict[str, Sum] = {}
        """The same of what is in the files and not there any more."""
        self.tokens = 0
        self.saved: float | None = None
        """The share of the bytes that the archive saved when it was written last; None before the first block."""

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        """Store content. What was deleted and is still in the files need not be written again. Raises ArchiveError."""
        self.delete(id, now)
        self.sizes[id] = tokens
        self.tokens += tokens
        if (before := self.dead.pop(id, None)) is not None:
            if before == summed(content):
                self.written[id] = before
                return
            self.archive.delete([id], now)
        self.waiting[id] = ArchivedMessage(id, tokens, message_of(content))
        if sum(item.tokens for item in self.waiting.values()) >= self.block:
            self.flush(now)

    def get(self, id: str) -> bytes:
        """The content. Raises KeyError, Damaged."""
        if id not in self.sizes:
            raise KeyError(id)
        item = self.waiting.get(id) or self.archive.get(id)
        return content_of(item.message)

    def __contains__(self, id: str) -> bool:
        return id in self.sizes

    def delete(self, id: str, now: float) -> None:  # noqa: ARG002
        """It is not there any more; its bytes may be."""
        self.tokens -= self.sizes.pop(id, 0)
        self.waiting.pop(id, None)
        if (written := self.written.pop(id, None)) is not None:
            self.dead[id] = written

    def flush(self, now: float) -> None:
        """Write what waits, and clean."""
        if self.dead:
            self.archive.delete(self.dead, now)
            self.archive.clean(now, delay=0, least=DEAD)
            self.dead = {}
        self.archive.put(self.waiting.values())
        self.written |= {id: summed(content_of(item.message)) for id, item in self.waiting.items()}
        self.waiting = {}
        raw, there = sum(size for size, _ in self.written.values()), sum(part.messages for part in self.archive.parts)
        if raw:
            self.saved = 1 - self.archive.size * len(self.written) / there / raw


WORKING, ARCHIVE = 131_072, 1_048_576
POLICY = "lru_k(correlated=100)"
BLOCKS = 16
"""Of the Archive tier, when it is full: 64K tokens each at the document's size."""
KEPT = 2 * BLOCKS
"""Blocks that stay decompressed: up to half of each may be messages that have left."""


@dataclass(frozen=True, slots=True)
class TierRules:
    """The tiers below Focus. Their parameters are those of `Tiered`, which says what they mean."""

    working: int = WORKING
    archive: int = ARCHIVE
    policy: str = POLICY
    retrievers: tuple[Retriever, ...] = ("bm25",)
    preload: bool = False
    tune: bool = False

    def __post_init__(self) -> None:
        at_least(1, working=self.working, archive=self.archive)
        try:
            recipe = parse(self.policy)
        except SpecError as error:
            raise ValueError(f"policy: {error}") from None
        recipe.sized(self.working)
        if issubclass(POLICIES[recipe.name], Belady):
            raise ValueError(f"policy={self.policy!r} must know the future: a strategy does not")
        RagRules(retrievers=self.retrievers)

    @property
    def block(self) -> int:
        """Tokens of a block of the Archive tier."""
        return max(1, self.archive // BLOCKS)
