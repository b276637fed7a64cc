"""Measure sizes and speed of the archive: its own coding, other coders, and a model's bound."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
import zstandard

from ctxbench.metrics.compression import BOUND_ORDER, adaptive_bytes
from ctxbench.metrics.extract import extract
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing, Value
from ctxbench.metrics.values import values
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.tiers.archive import ArchivedMessage, ArchiveTier, BlockTable, Coding, Dictionary, blocks

from ..models.embedding import lexical
from .bench import BenchSetup, fastest

PLAIN = "zstd -9"  # the coder that the archive is compared with
MODEL = f"order-{BOUND_ORDER} model"
SHARE = 0.1  # tokens of a summary as a share of the block's: 10:1 (004 §2.3)
NEAREST = 10
RERANKED = (0, 100, 200)
READS = 1000
RATIO, BITS = 16, 4
"""Compression ratio of embeddings (004 §2.3), and bits of the number of a centroid: 8 are a bit better, far slower."""
LEAST = 39 << BITS  # fewest vectors for quantisation: faiss wants 39 for each centroid


class Size(NamedTuple):
    """The size of a corpus under one coder, each block coded alone or all together."""

    name: str
    bytes: int | Missing
    alone: bool = True
    computed: bool = False  # whether the size is computed from a model: no coder wrote it


class Corpus(NamedTuple):
    """The sizes of the same bytes under every coder."""

    name: str
    original: int
    sizes: tuple[Size, ...]


class Lossy(NamedTuple):
    """Extractive summaries of the blocks: tokens and bytes of the texts, and of the summaries, compressed."""

    tokens: int
    summary_tokens: int
    original: int
    stored: int
    values_kept: Value  # share of the numbers, dates, names, identifiers and paths of each block that its summary has


class Coded(NamedTuple):
    """Embeddings coded by product quantisation."""

    vectors: int
    questions: int
    width: int
    bytes_each: int
    kept_bytes_each: int  # bytes kept of a vector to re-rank by, where that is done
    recall: dict[int, float]
    """Share of the true nearest 10 in the hits, by the number of candidates re-ranked (0 = none)."""


class Speed(NamedTuple):
    """Speed on this machine at this moment, in bytes of the blocks' contents a second of the wall clock.

    They are written to the disk; read, checked and decompressed; the same frames decompressed in memory; and parsed
    into messages. Each read of one message, and opening the archive, is in seconds.
    """

    write: float
    decompress: float
    bare: float
    messages: float
    gets: list[float]
    open: float


class ArchiveMeasurement(NamedTuple):
    """All figures of one archive."""

    coding: Coding
    conversations: int
    messages: int
    tokens: int
    archive: int  # bytes of all files of the archive
    lossless: tuple[Corpus, ...]
    summary: Lossy | Missing
    vectors: Coded | Missing
    speed: Speed


@dataclass(frozen=True, slots=True)
class ArchiveBench:
    """Archive recordings in a temporary folder, and measure sizes, losses and speed."""

    recordings: str | tuple[str, ...] = "standard"
    format: str = ""
    level: Annotated[int, msgspec.Meta(ge=1, le=22)] = 19
    dictionary: Literal["none", "raw"] = "raw"  # raw: the text of earlier blocks

    def measure(self, bench: BenchSetup) -> ArchiveMeasurement:
        """Measure the archive tier on the recordings."""
        conversations, counter = bench.read(self.recordings, self.format), TokenCounter()
        items, coding = items_of(conversations, counter), Coding(level=self.level, dictionary=self.dictionary)
        # Without ids, times, roles and calls the texts have less to repeat.
        corpora = {"messages": as_json, "texts alone": as_text}
        lossless = tuple(corpus(name, coded_blocks(items, coding, write)) for name, write in corpora.items())
        size, speed = measured(items, coding)
        return ArchiveMeasurement(
            coding=coding,
            conversations=len(conversations),
            messages=len(items),
            tokens=sum(item.tokens for item in items),
            archive=size,
            lossless=lossless,
            summary=summarised(items, coding, counter),
            vectors=coded(conversations),
            speed=speed,
        )


def items_of(conversations: Iterable[Conversation], counter: TokenCounter) -> list[ArchivedMessage]:
    """Return every message under the id `conversation/message`."""
    return [
        ArchivedMessage(f"{conversation.id}/{message.id}", counter.message(message), message)
        for conversation in conversations
        for message in conversation.messages
    ]


def as_json(items: Sequence[ArchivedMessage]) -> bytes:
    """Return messages as lines of JSON."""
    return b"\n".join(msgspec.json.encode(item.message) for item in items)


def as_text(items: Sequence[ArchivedMessage]) -> bytes:
    """Return the texts of messages, a line each."""
    return b"\n".join(item.message.text.encode() for item in items)


def coded_blocks(
    items: Sequence[ArchivedMessage], coding: Coding, write: Callable[[Sequence[ArchivedMessage]], bytes] = as_json
) -> list[bytes]:
    """Return the blocks of an archive as bytes, before any compression."""
    return [write(block) for block, _ in blocks(items, coding.block_tokens)]


def corpus(name: str, parts: Sequence[bytes]) -> Corpus:
    """Return the sizes of blocks under every coder."""
    together = b"\n".join(parts)
    long = zstandard.ZstdCompressionParameters.from_level(22, window_log=27, enable_ldm=True)
    sizes = (
        Size(PLAIN, sum(len(zstandard.ZstdCompressor(level=9).compress(part)) for part in parts)),
        *strongest(parts),
        Size("zstd -22 --long", len(zstandard.ZstdCompressor(compression_params=long).compress(together)), alone=False),
        Size(MODEL, sum(map(adaptive_bytes, parts)), computed=True),
        Size(f"{MODEL}, all", adaptive_bytes(together), alone=False, computed=True),
    )
    return Corpus(name, len(together), sizes)


def strongest(parts: Sequence[bytes]) -> tuple[Size, ...]:
    """Return the sizes of blocks, each coded alone, under three coders at their strongest level."""
    brotli: int | Missing = Missing("unsupported", "brotli is not installed: pip install 'ctxbench[tiers]'")
    with suppress(ModuleNotFoundError):
        compress = import_module("brotli").compress
        brotli = sum(len(compress(part, quality=11, lgwin=24)) for part in parts)
    return (
        Size("zstd -19", sum(len(zstandard.ZstdCompressor(level=19).compress(part)) for part in parts)),
        Size("xz -9e", sum(len(lzma.compress(part, preset=9 | lzma.PRESET_EXTREME)) for part in parts)),
        Size("brotli 11", brotli),
    )


def summaries(
    items: Sequence[ArchivedMessage], coding: Coding, counter: TokenCounter
) -> Iterator[tuple[list[str], int, str]]:
    """Yield the texts of each block, their tokens, and an extractive summary of them."""
    for block, _ in blocks(items, coding.block_tokens):
        texts = [item.message.text for item in block if item.message.text]
        size = sum(map(counter.text, texts))
        yield texts, size, extract(texts, int(size * SHARE), counter.text)


def summarised(items: Sequence[ArchivedMessage], coding: Coding, counter: TokenCounter) -> Lossy | Missing:
    """Return the sizes of extractive summaries of all blocks, and what they keep."""
    tokens = summary_tokens = original = stored = values_there = values_kept = 0
    for texts, size, summary in summaries(items, coding, counter):
        tokens, summary_tokens = tokens + size, summary_tokens + counter.text(summary)
        original += sum(len(text.encode()) for text in texts)
        stored += len(Dictionary().compressor(coding.level)(summary.encode()))
        block_values = {value.text for text in texts for value in values(text)}
        values_there += len(block_values)
        values_kept += len(block_values & {value.text for value in values(summary)})
    if not tokens:
        return Missing("undefined", "the messages have no texts")
    kept = values_kept / values_there if values_there else Missing("undefined", "there are no values in the texts")
    return Lossy(tokens, summary_tokens, original, stored, kept)


def coded(conversations: Sequence[Conversation]) -> Coded | Missing:
    """Code the embeddings of all texts by product quantisation, and search them with the probes' questions."""
    questions = [probe.question for conversation in conversations for probe in conversation.probes]
    if not questions:
        return Missing("undefined", "the recordings have no probes to search with")
    texts = [message.text for conversation in conversations for message in conversation.messages if message.text]
    vectors, queries = lexical(texts, False), lexical(questions, True)
    if len(vectors) < LEAST:
        return Missing("undefined", f"{len(texts)} texts are too few to learn centroids from")
    try:
        faiss = import_module("faiss")
    except ModuleNotFoundError:
        raise MissingExtra("faiss-cpu", "tiers") from None
    # On one thread the same vectors give the same codes, and idle threads do not stall a shared machine.
    faiss.omp_set_num_threads(1)
    # Each piece of a vector becomes the number of the nearest of 16 centroids. The codes are searched; their best
    # candidates may be ranked again by vectors in half precision, which can stay on disk.
    width, product = vectors.shape[1], faiss.METRIC_INNER_PRODUCT
    pieces = width * 32 // (RATIO * BITS)
    codes = faiss.IndexPQFastScan(width, pieces, BITS, product)
    originals = faiss.IndexScalarQuantizer(width, faiss.ScalarQuantizer.QT_fp16, product)
    for index in (codes, originals):
        index.train(vectors)
        index.add(vectors)
    nearest = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :NEAREST].tolist()
    recall = {}
    for rerank in RERANKED:
        places = codes.search(queries, max(NEAREST, rerank))[1]
        for row, query in zip(places, queries, strict=True) if rerank else ():
            known = row[row >= 0]
            row[: len(known)] = known[np.argsort(-(originals.reconstruct_batch(known) @ query), kind="stable")]
        hits = places[:, :NEAREST].tolist()
        same = [len(set(one) & set(other)) for one, other in zip(nearest, hits, strict=True)]
        recall[rerank] = float(np.mean(same)) / NEAREST
    return Coded(len(texts), len(questions), width, pieces * BITS // 8, int(originals.code_size), recall)


@contextmanager
def archived(items: Sequence[ArchivedMessage], coding: Coding) -> Iterator[tuple[ArchiveTier, float]]:
    """Yield an archive on the disk, with the seconds that writing it took. Raises AssertionError if it has changed."""
    with TemporaryDirectory(prefix="ctxbench-archive-") as folder:
        archive = ArchiveTier(BlockTable(str(Path(folder) / "archive.db")), coding)
        began = perf_counter()
        archive.put(items)
        archive.seal()
        writing = perf_counter() - began
        if different := [item.id for item, stored in zip(items, archive.items(), strict=True) if item != stored]:
            raise AssertionError(f"{different[0]} did not come back as it was")
        yield archive, writing
        archive.close()


def decompression(archive: ArchiveTier) -> tuple[float, float]:
    """Return bytes of contents a second: read, checked and decompressed; the same frames decompressed in memory."""
    content = sum(part.raw_bytes for part in archive.parts)
    frames = [archive.frame(part) for part in archive.parts]
    decompressing = fastest(lambda: [archive.content(part) for part in archive.parts])
    bare = fastest(lambda: [dictionary.decompress(frame) for dictionary, frame in frames])
    return content / decompressing, content / bare


def reads(archive: ArchiveTier, items: Sequence[ArchivedMessage]) -> list[float]:
    """Return the seconds of each of READS reads of one message."""
    return [fastest(lambda: archive.get(item.id), 1) for item in Random(0).choices(items, k=READS)]  # noqa: B023


def measured(items: Sequence[ArchivedMessage], coding: Coding) -> tuple[int, Speed]:
    """Return the bytes of an archive's files, and its speed. Raises AssertionError."""
    with archived(items, coding) as (archive, writing):
        content = sum(part.raw_bytes for part in archive.parts)
        rates, reading = decompression(archive), fastest(lambda: list(archive.items()), 1)
        gets = reads(archive, items)
        archive.close()
        opening = fastest(lambda: ArchiveTier(BlockTable(archive.store.path)).close())
        return archive.size, Speed(content / writing, *rates, content / reading, gets, opening)
