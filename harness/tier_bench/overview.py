"""Measure all tiers on loads that fill the sizes of design document 004: `ctxbench lab tiers`.

A few figures of the other measurements: Working on MEM-002, Archive on MEM-003, and a shorter MEM-002 for RAG and for
the strategy `tiered`, whose Working and Archive have the least sizes of the document there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import msgspec
import pandas as pd

from ctxbench.metrics.figures import figures
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.spec import PositiveInt
from ctxbench.strategies.tiers.archive import Coding
from ctxbench.strategies.tiers.rag.vectors import Index
from ctxbench.strategies.tiers.tiered.tiers import POLICY

from .. import cache
from ..folder.run import steps_of
from .archive import Size, archived, coded_blocks, items_of, strongest
from .bench import BenchSetup
from .rag import RagBench
from .working import Working, WorkingMeasurement

LOAD = "mem_002"
ARCHIVED = "mem_003"
PEERS = ("lru_k_document", "lru", "w_tiny_lfu", "belady")
"""Cache policies beside ours: the document's own LRU-K, the usual one, a strong one, and the optimum."""
TIERED = "tiered(working=8192, archive=131072)"
"""The least sizes of the document, as `ctxbench run` has them by default."""


class ArchiveSizes(NamedTuple):
    """Bytes of an archive, of its messages as JSON lines, and of these lines under other coders."""

    archive: int  # of all files
    bytes: int
    coders: Sequence[Size]


@dataclass(frozen=True, slots=True)
class IndexRecall:
    """Evidence recall at 5 by an index of vectors, and by an exact search of them."""

    index: Index
    evidence: Interval | Missing
    exact: Interval | Missing


class OverviewMeasurement(NamedTuple):
    """A few figures of each tier. Of `tiered` they are its spec (`strategy`), metrics and events."""

    working: WorkingMeasurement  # our policy first, then its peers
    archive: ArchiveSizes
    rag: IndexRecall
    strategy: str
    figures: dict[str, Value]
    events: pd.DataFrame


_Parts = tuple[WorkingMeasurement, ArchiveSizes, IndexRecall]


@dataclass(frozen=True, slots=True)
class Overview:
    """Measure all tiers on loads that fill them, a line each, beside the best known alternatives."""

    index: Index = "exact"  # index of the RAG tier; hnsw needs the extra `hnswlib`
    strategy: str = TIERED
    turns: PositiveInt = 480
    """User turns of the load of RAG and `tiered`: some 160K tokens in each language, more than Working and Archive
    hold."""

    def measure(self, bench: BenchSetup) -> OverviewMeasurement:
        """Measure all tiers. Nothing of it is timed, so what was measured before is found again."""
        key, load = cache.key(cache.basis("overview", self.index, f"{self.turns}")), f"{LOAD}(turns={self.turns})"
        if (data := cache.results().get(key)) is None:
            data = msgspec.msgpack.encode(self._parts(load, bench))
            cache.results().put({key: data})
        working, archive, rag = msgspec.msgpack.decode(data, type=_Parts)
        run = bench.run(bench.read(load), [self.strategy])
        strategy = run.manifest.plan.strategies[0]
        return OverviewMeasurement(working, archive, rag, strategy, figures(steps_of(run)), run.table("events"))

    def _parts(self, load: str, bench: BenchSetup) -> _Parts:
        items, coding = items_of(islice(scenario(ARCHIVED), 2), TokenCounter()), Coding()
        blocks = coded_blocks(items, coding)

        def recall(index: Index) -> Interval | Missing:
            return RagBench(load, retrievers=("vector",), index=index).measure(bench).ways[0].recall

        exact = recall("exact")
        rag = IndexRecall(self.index, exact if self.index == "exact" else recall(self.index), exact)
        with archived(items, coding) as (archive, _):
            sizes = ArchiveSizes(archive.size, sum(map(len, blocks)), strongest(blocks))
        return Working(LOAD, (POLICY, *PEERS), seeds=1).measure(bench), sizes, rag
