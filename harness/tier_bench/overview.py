"""Measure all tiers on loads that fill the sizes of design document 004: `ctxbench lab bench-tier all`.

A few figures of the other measurements: Working on MEM-002, Archive on MEM-003, and a shorter MEM-002 for RAG and for
the strategy `tiered`, whose Working and Archive have the least sizes of the document there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ctxbench.metrics.figures import figures
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.tiers.archive import Coding
from ctxbench.strategies.tiers.rag.vectors import Index
from ctxbench.strategies.tiers.tiered.tiers import POLICY, WORKING_TOKENS
from ctxbench.strategies.tiers.working.policies import parse
from ctxbench.strategies.tiers.working.traces import TRACES

from ..engine.plan import Plan, RunInputs, Watcher, execute
from ..folder.run import load
from ..folder.steps import steps_of
from ..models import Models, Settings
from .archive import Size, archive_of, items_of, json_blocks, strongest
from .rag import IndexRecall, index_recall
from .working import Bounds, Load, PolicyRow, bounds, measured

LOAD = "mem_002"
ARCHIVED = "mem_003"
PEERS = ("lru_k_document", "lru", "w_tiny_lfu", "belady")
"""Cache policies beside ours: the document's own LRU-K, the usual one, a strong one, and the optimum."""
TIERED = "tiered(working=8192, archive=131072)"
"""The least sizes of the document, as `ctxbench run` has them by default."""
TURNS = 480
"""User turns of the load of RAG and `tiered`: some 160K tokens in each language, more than Working and Archive hold."""


@dataclass(frozen=True, slots=True)
class Overview:
    """A few figures of each tier."""

    load: Load
    policies: Sequence[PolicyRow]
    """Hit rates of our policy first, then of its peers."""
    bound: Bounds
    archive: int
    """Bytes of all files of the archive."""
    archived: int
    """Bytes of its messages as lines of JSON."""
    coders: Sequence[Size]
    index: IndexRecall
    strategy: str
    """The spec of `tiered`."""
    turns: int
    """User turns of the load of the index and of `tiered`."""
    figures: dict[str, Value]
    """Metrics of `tiered`."""
    events: pd.DataFrame
    """Events of `tiered`."""


def overview(
    folder: Path, watcher: Watcher | None = None, strategy: str = TIERED, turns: int = TURNS, index: Index = "exact"
) -> Overview:
    """Measure all tiers, with an index of vectors. The run of `tiered` is written to a folder."""
    counter = TokenCounter()
    trace = Load(LOAD, [TRACES[LOAD](0)], "seed")
    policies = list(measured(trace, WORKING_TOKENS, [parse(text) for text in (POLICY, *PEERS)]))
    items, coding = items_of(scenario(ARCHIVED), counter), Coding()
    blocks = json_blocks(items, coding)
    with archive_of(items, coding) as archive:
        size = archive.size
    execute(Plan(RunInputs((LOAD,), turns=turns), (strategy,), probes=False), folder, watcher=watcher)
    run = load(folder)
    return Overview(
        load=trace,
        policies=policies,
        bound=bounds(trace, WORKING_TOKENS),
        archive=size,
        archived=sum(map(len, blocks)),
        coders=strongest(blocks),
        index=index_recall(list(scenario(LOAD, turns)), index, Models(Settings().checked())),
        strategy=run.manifest.plan.strategies[0],
        turns=turns,
        figures=figures(steps_of(run)),
        events=run.table("events"),
    )
