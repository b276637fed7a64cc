"""What is measured of an archive, as values."""

from __future__ import annotations

from dataclasses import dataclass

from ...metrics.value import Missing, Value
from ...strategies.tiers.archive import Coding
from ...strategies.tiers.archive.coding import Kind

PLAIN = "zstd -9"
"""The coder that the archive is compared with."""


@dataclass(frozen=True, slots=True)
class Size:
    """What one coder makes of a corpus, and whether each block is coded alone or all are coded together."""

    name: str
    bytes: int | Missing
    alone: bool = True
    computed: bool = False
    """A model whose size is computed: no coder wrote it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The same bytes under every coder."""

    name: str
    original: int
    sizes: tuple[Size, ...]

    def of(self, name: str) -> int:
        """What a coder makes of it that cannot be missing."""
        found = next(size.bytes for size in self.sizes if size.name == name)
        assert isinstance(found, int)
        return found


@dataclass(frozen=True, slots=True)
class Taught:
    """The later conversations with a dictionary of the earlier ones."""

    kind: Kind
    bytes: int
    dictionary: int
    """Bytes of the dictionary itself, compressed."""
    earlier: int
    """What the earlier conversations take beside it."""


@dataclass(frozen=True, slots=True)
class Later:
    """Dictionaries made of the first half of the conversations, tested on the others."""

    name: str
    original: int
    plain: int
    """Bytes of the later ones under PLAIN."""
    plain_earlier: int
    taught: tuple[Taught, ...]


@dataclass(frozen=True, slots=True)
class Lossy:
    """Extractive summaries of the blocks, which are kept beside them."""

    tokens: int
    """Of the texts."""
    summary_tokens: int
    original: int
    """Bytes of the texts."""
    stored: int
    """Bytes of the summaries, compressed."""
    values_kept: Value
    """Of the numbers, dates, names, identifiers and paths in each block, the share that its summary has."""


@dataclass(frozen=True, slots=True)
class Coded:
    """Embeddings by product quantisation."""

    vectors: int
    questions: int
    width: int
    bytes_each: int
    kept_bytes_each: int
    """What is kept of a vector to re-rank by, where that is done."""
    recall: tuple[tuple[int, float], ...]
    """Candidates re-ranked (0 = none), and the share of the true nearest 10 that is found."""


@dataclass(frozen=True, slots=True)
class Speed:
    """On this machine at this moment. Bytes are those of the blocks' contents; a second is one of the wall clock."""

    write: float
    """Bytes a second, on disk when it ends."""
    decompress: float
    """Bytes a second: read from the disk, checked, decompressed."""
    bare: float
    """The same frames in memory, decompressed and nothing else."""
    messages: float
    """Bytes a second, made into messages."""
    get: tuple[float, float, float]
    """Seconds for one message of the archive: p50, p99, the longest."""
    open: float
    """Seconds until the archive is open."""


@dataclass(frozen=True, slots=True)
class Archived:
    """All figures of one archive."""

    coding: Coding
    conversations: int
    messages: int
    tokens: int
    archive: int
    """Bytes of all files of the archive."""
    lossless: tuple[Corpus, ...]
    later: tuple[Later, ...] | Missing
    summary: Lossy | Missing
    vectors: Coded | Missing
    speed: Speed
