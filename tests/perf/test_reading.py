"""Reading recorded formats, beside the bound: msgspec's parser over the same bytes. Goal: 100 MB a second and core.

Times are the processor's: what else runs on the machine does not count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxbench.scenarios.read import Batch, find, read
from ctxbench.scenarios.source import Problems, objects, records

pytestmark = [pytest.mark.perf, pytest.mark.benchmark(timer=time.process_time)]
FOLDERS = (
    *("claude-code", "codex", "copilot-cli", "kdconv-zh", "locomo", "mini-swe-agent", "mtrag", "openhands", "opencode"),
    *("pi-sessions", "oh-my-pi", "tau-bench"),
)
"""Sample recordings of over a megabyte of JSON."""


@pytest.fixture(scope="module", params=FOLDERS)
def batches(request: pytest.FixtureRequest, recordings: Path) -> Iterator[tuple[str, list[Batch], int]]:
    """A format's files, found beforehand, with their size in bytes."""
    found = find([recordings / request.param], Problems())
    return request.param, found, sum(os.path.getsize(path) for batch in found for path in batch.files)


def decode(batches: list[Batch]) -> int:
    """Parse every record into plain values."""
    problems = Problems()
    paths = [path for batch in batches for path in batch.files]
    # A session's line may hold two objects, as recorded.
    each = (objects(path, problems) if path.suffix == ".jsonl" else records(path, problems) for path in paths)
    return sum(msgspec.json.decode(raw) is not None for found in each for _, raw in found)


def read_all(batches: list[Batch]) -> int:
    return sum(len(conversation.messages) for conversation in read(batches, Problems()))


@pytest.mark.parametrize("does", [decode, read_all], ids=["floor, msgspec alone", "conversations"])
def test_reading(benchmark: Any, batches: tuple[str, list[Batch], int], does: Any) -> None:
    """Decode and check every message of files that are in the system's cache."""
    name, found, size = batches
    benchmark.group = f"reading {name}, {size / 1e6:.1f} MB"
    done = benchmark.pedantic(does, (found,), rounds=7, warmup_rounds=1)
    assert done
    benchmark.extra_info["MB/s"] = round(size / 1e6 / benchmark.stats.stats.min, 1)
