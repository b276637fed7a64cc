"""The stores of the tiers below Focus: messages as JSON, in a dictionary or in the blocks of an archive."""

from __future__ import annotations

import msgspec

from ctxbench.scenarios.model import Message

from ...events import Compressed
from ..archive import ArchivedMessage, ArchiveTier, BlockTable, Coding
from ..migration.migration import Sum, content_sum

DEAD = 0.5
"""Share of a block's messages that may be deleted before it is rewritten."""
_decode = msgspec.json.Decoder(Message).decode


def content_of(message: Message) -> bytes:
    """Encode a message: equal messages have equal bytes. Raises UnicodeEncodeError for half a character."""
    return msgspec.json.encode(message)


def message_of(content: bytes) -> Message:
    """Decode a message."""
    return _decode(content)


class DictStore:
    """Content in a dictionary, for the Working tier and the RAG tier."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[bytes, int]] = {}
        self.tokens = 0

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        """Store content."""
        self.delete(id, now)
        self.held[id] = content, tokens
        self.tokens += tokens

    def get(self, id: str) -> bytes:
        """Return the content of an id."""
        return self.held[id][0]

    def delete(self, id: str, now: float) -> None:  # noqa: ARG002
        """Delete the content of an id, if there is any."""
        self.tokens -= self.held.pop(id, (b"", 0))[1]


class Blocks:
    """Content in an archive, written a block at a time.

    New messages wait in memory until there are `block` tokens of them (0 = they never wait). Deleted ones are marked
    when the next block is written, and their bytes removed once half of their own block is deleted.
    """

    def __init__(self, archive: ArchiveTier, block: int) -> None:
        self.archive, self.block = archive, block
        self.sizes: dict[str, int] = {}
        """Tokens by id."""
        self.waiting: dict[str, ArchivedMessage] = {}
        self.written: dict[str, Sum] = {}
        """Checksums of content in the archive's files."""
        self.dead: dict[str, Sum] = {}
        """Checksums of deleted content that is still in the files."""
        self.tokens = 0
        self.saved: float | None = None
        """Share of bytes saved at the last write of the archive; None before the first block."""
        self.unreported: Compressed | None = None
        """Size of the archive, if it was written and nobody has recorded that yet."""

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        """Store content. Deleted content that is still in the files is not written again. Raises ArchiveError."""
        self.delete(id, now)
        self.sizes[id] = tokens
        self.tokens += tokens
        if (before := self.dead.pop(id, None)) is not None:
            if before == content_sum(content):
                self.written[id] = before
                return
            self.archive.delete([id], now)
        self.waiting[id] = ArchivedMessage(id, tokens, message_of(content))
        if sum(item.tokens for item in self.waiting.values()) >= self.block:
            self.flush(now)

    def get(self, id: str) -> bytes:
        """Return the content of an id. Raises KeyError, Damaged."""
        if id not in self.sizes:
            raise KeyError(id)
        item = self.waiting.get(id) or self.archive.get(id)
        return content_of(item.message)

    def delete(self, id: str, now: float) -> None:  # noqa: ARG002
        """Delete the content of an id. Its bytes may stay in a block until the block is rewritten."""
        self.tokens -= self.sizes.pop(id, 0)
        self.waiting.pop(id, None)
        if (written := self.written.pop(id, None)) is not None:
            self.dead[id] = written

    def flush(self, now: float) -> None:
        """Write the messages that wait, and remove deleted ones."""
        if self.dead:
            self.archive.delete(self.dead, now)
            self.archive.clean(now, delay=0, least=DEAD)
            self.dead = {}
        self.archive.put(self.waiting.values())
        self.written |= {id: content_sum(content_of(item.message)) for id, item in self.waiting.items()}
        self.waiting = {}
        raw = sum(size for size, _ in self.written.values())
        if raw:
            messages = sum(part.messages for part in self.archive.parts)
            self.saved = 1 - self.archive.size * len(self.written) / messages / raw
        # An archive that nothing was written to has no files.
        self.unreported = Compressed(raw, self.archive.size if self.archive.parts else 0)


WORKING_TOKENS, ARCHIVE_TOKENS = 131_072, 1_048_576
POLICY = "lru_k(correlated=100)"
BLOCKS = 16
"""Blocks of a full Archive tier: 64K tokens each at the document's size."""
KEPT = 2 * BLOCKS
"""Blocks that stay decompressed: up to half of each may be deleted messages."""


LEVEL = 9
"""zstd level of the document. 19 saves two points more and takes ten times as long, while a model waits."""
DICTIONARY_BYTES = 1 << 18
"""Size of the raw dictionary. Making it anew writes all blocks again, which takes longer with a larger one."""


def memory_archive(block: int) -> ArchiveTier:
    """Return an empty archive in memory, with blocks of some tokens."""
    return ArchiveTier(BlockTable(), Coding(LEVEL, "raw", DICTIONARY_BYTES, block_tokens=block), keep=KEPT)
