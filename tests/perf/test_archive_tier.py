"""The Archive tier beside its targets: sizes below zstd -9, decompression beside `zstd -b`, one of a million tokens.

Sizes are of the sample recordings and the same on every machine. Times are the best of many, so that others on the
machine do not count; for the same reason a message's p99 is printed in processor time too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.harness.tier_bench.archive import READS, Coded, Lossy, archived, as_json, gets, items_of
from ctxbench.metrics.compression import saving
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.tiers.archive import ArchivedMessage, ArchiveTier, BlockTable, Coding
from ctxbench.strategies.tiers.archive.archive import blocks

zstandard: Any = pytest.importorskip("zstandard")
pytestmark = pytest.mark.perf

MILLION = 1_000_000
ROUNDS = 400


def items(folder: Path) -> list[ArchivedMessage]:
    """The messages of a folder of recordings. System messages are left out: the same policy repeated flatters."""
    found = RunInputs((str(folder),)).open(Problems()).conversations()
    return [item for item in items_of(found, TokenCounter()) if item.message.role != "system"]


@pytest.mark.parametrize(("name", "least"), [("locomo", 0.15), ("tau-bench", 0.30)])
def test_below_zstd_9(recordings: Path, name: str, least: float) -> None:
    """The whole archive, its dictionary, tables and index counted, beside zstd -9 of the same blocks as JSON."""
    said, coding = items(recordings / name), Coding()
    plain = sum(
        len(zstandard.ZstdCompressor(level=9).compress(as_json(block)))
        for block, _ in blocks(said, coding.block_tokens)
    )
    archive = ArchiveTier(BlockTable(), coding)
    archive.put(said)
    archive.seal()
    assert list(archive.items()) == said
    below = 1 - archive.size / plain
    print(f"\n{name}: {archive.size:,} bytes, zstd -9 {plain:,}: {below:.1%} below")
    assert below >= least


@pytest.mark.parametrize("name", ["locomo", "tau-bench"])
@pytest.mark.parametrize("dictionary", ["none", "raw"])
def test_decompression_beside_zstd_b(recordings: Path, tmp_path: Path, name: str, dictionary: Any) -> None:
    """Reading, checking and decompressing a block, beside the benchmark of zstd's own command on the same block."""
    if shutil.which("zstd") is None:
        pytest.skip("no zstd command here")
    coding = Coding(dictionary=dictionary)
    archive = ArchiveTier(BlockTable(str(tmp_path / "archive.db")), coding)
    archive.put(items(recordings / name))
    part = max((part for part in archive.parts if part.sealed and not part.taught), key=lambda part: part.number)
    content = archive.content(part)
    (tmp_path / "block").write_bytes(content)
    ours = max(_once(archive, part, len(content)) for _ in range(ROUNDS))
    told = subprocess.run(
        ["zstd", f"-b{coding.level}", "-i1", str(tmp_path / "block")], capture_output=True, text=True, check=True
    )
    theirs = max(map(float, re.findall(r"([\d.]+) MB/s", told.stdout + told.stderr)))
    print(f"\n{name}, {dictionary}: {ours:,.0f} MB/s, {ours / theirs:.2f} of zstd -b's {theirs:,.0f} (asked: 500, 0.9)")


def _once(archive: ArchiveTier, part: Any, size: int) -> float:
    began = perf_counter()
    archive.content(part)
    return size / (perf_counter() - began) / 1e6


def test_one_message_of_a_million_tokens(corpus: list[Conversation], tmp_path: Path) -> None:
    """One message of it: 5 ms are asked for at p99."""
    said, tokens = list[ArchivedMessage](), 0
    for item in items_of(corpus, TokenCounter()):
        said.append(item)
        tokens += item.tokens
        if tokens >= MILLION:
            break
    archive = ArchiveTier(BlockTable(str(tmp_path / "archive.db")), Coding(level=9))
    archive.put(said)
    wall, spent = (sorted(gets(archive, said, clock)) for clock in (perf_counter, thread_time))
    half, most, longest = (spent[at] * 1e3 for at in (READS // 2, READS * 99 // 100, -1))
    print(f"\n{tokens:,} tokens, {len(said):,} messages: p50 {half:.2f}, p99 {most:.2f}, longest {longest:.2f} ms")
    print(f"by the wall clock: p50 {wall[READS // 2] * 1e3:.2f}, p99 {wall[READS * 99 // 100] * 1e3:.2f} ms")


def test_mem_003(recordings: Path) -> None:
    """100K tokens of dialogue: all of it comes back; above 90 % is saved by summaries only; re-ranking loses below 2
    %."""
    conversations: list[Conversation] = []
    counter = TokenCounter()
    for each in RunInputs((str(recordings / "locomo"),)).open(Problems()).conversations():
        conversations.append(each)
        if sum(item.tokens for item in items_of(conversations, counter)) >= 100_000:
            break
    found = archived(conversations, Coding(), counter, lambda _: None)  # compares every message that it reads back
    whole, summary, vectors = found.lossless[0], found.summary, found.vectors
    assert isinstance(summary, Lossy)
    assert isinstance(vectors, Coded)
    lossless, lossy = saving(whole.original, found.archive), saving(summary.original, summary.stored)
    print(f"\n{found.tokens:,} tokens: lossless {lossless:.1%}, of that many bytes {whole.original:,}")
    print(f"bound, all at once: {saving(whole.original, whole.of('order-5 model, all')):.1%}")
    print(f"summaries {lossy:.1%}, by tokens {saving(summary.tokens, summary.summary_tokens):.1%}")
    print(f"recall@10 by candidates re-ranked: {vectors.recall}")
    assert lossless < 0.9 < lossy
    assert min(recall for rerank, recall in vectors.recall if rerank) > 0.98
