"""Measure how often each way to search finds the evidence of an answer: `ctxbench lab tiers rag`.

For every answerable probe, the tier holds the messages before it, and evidence recall@k is the share of its evidence
among the first `k` hits. System messages are always sent, so they are not in the tier: a probe that rests on them alone
is left out, one that also rests on others counts for those. A conversation is added message by message, up to each
probe in turn: the tier measured is one that grew, not one that was built in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray

from ctxbench.metrics.probes import Latency, latency, placed, recall
from ctxbench.metrics.statistics.intervals import Interval, interval, share_interval
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError, SetupError
from ctxbench.scenarios.model import Conversation, independent_units
from ctxbench.scenarios.spec import PositiveInt
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.tiers.rag import RETRIEVERS, Rag, RagRules, Retriever, passage
from ctxbench.strategies.tiers.rag.vectors import Index

from ..models import Models
from .bench import BenchSetup, Counting, uncounted

RERANKED = 20  # passages that are ranked again, in the ways that rerank


class SearchOutcome(NamedTuple):
    """The hits of one way to search for one probe."""

    way: str
    conversation: str
    unit: str  # the independent unit of the conversation
    category: str
    recall: float  # of the evidence, at k
    recall_at_twice: float
    milliseconds: float


class Built(NamedTuple):
    """The size of one conversation's tier, and the time to build it."""

    conversation: str
    passages: int
    seconds: float  # seconds to add all passages, without embedding them
    embedding: float  # seconds to embed them and to index their vectors
    entities: int
    edges: int


class RagRow(NamedTuple):
    """The figures of one way over all probes."""

    name: str
    retrievers: tuple[Retriever, ...]
    recall: Interval | Missing  # of the evidence, at k
    recall_at_twice: Interval | Missing
    categories: dict[str, Interval | Missing]  # recall at k, by the probes' category
    milliseconds: Latency | Missing  # of a search, including the question's embedding


class RagComparison(NamedTuple):
    """Recall at k of the best fusion less that of the best single retriever, in pairs of probes."""

    best: str
    single: str
    difference: Interval | Missing


class RagMeasurement(NamedTuple):
    """Evidence recall and latency of every way to search."""

    k: int
    probes: int
    ways: list[RagRow]
    fusion: RagComparison | None  # None if there are no two retrievers
    conversations: list[Built]


@dataclass(frozen=True, slots=True)
class RagBench:
    """Search the RAG tier for the evidence of every probe, and measure recall and latency.

    Each retriever alone, every two and all three are tested: fused by ranks, and ranked again.
    """

    recordings: str | tuple[str, ...] = "standard"
    format: str = ""  # for LoCoMo with its audited evidence: "locomo(corrections='errors.json')"
    retrievers: tuple[Retriever, ...] = RETRIEVERS
    k: PositiveInt = 5  # hits that are looked at; a second figure is of twice as many
    index: Index = "exact"  # index of the vectors; hnsw needs the extra `hnswlib`
    embedder: str = "offline"

    def measure(self, bench: BenchSetup) -> RagMeasurement:
        """Search for every probe. Raises RunError if no conversation has a probe with evidence."""
        conversations = bench.read(self.recordings, self.format)
        models = Models(replace(bench.models, embedder=self.embedder).checked())
        retrievers = tuple(name for name in RETRIEVERS if name in self.retrievers)
        rules = RagRules(retrievers=retrievers, index=self.index)
        outcomes, built = searched(conversations, rules, models, self.k, bench.counting)
        if outcomes.empty:
            raise RunError("no conversation has a probe with evidence: there is nothing to look for")
        found = rows(outcomes, retrievers)
        return RagMeasurement(self.k, len(outcomes) // len(found), found, against(outcomes, found), built)


def ways(retrievers: Sequence[Retriever]) -> dict[str, tuple[tuple[Retriever, ...], int]]:
    """Map each way to search to its retrievers, whose rankings are fused by ranks, and to how many passages are ranked
    again by the exact scores of all: each retriever alone, then every combination.
    """
    several = [some for size in range(2, len(retrievers) + 1) for some in combinations(retrievers, size)]
    again = {"rrf": 0, "reranked": RERANKED}
    fused = {f"{' + '.join(some)}, {how}": (some, rerank) for some in several for how, rerank in again.items()}
    return {**{name: ((name,), 0) for name in retrievers}, **fused}


def searched(
    conversations: Sequence[Conversation],
    rules: RagRules,
    models: Models,
    k: int = 5,
    counting: Counting = uncounted,
    *,
    timed: bool = True,
) -> tuple[pd.DataFrame, list[Built]]:
    """Return a SearchOutcome for every way and each probe with evidence, and the tiers. Raises SetupError.

    To be timed as the first of its question each search forgets what the one before knew of it.
    """
    counter, units = TokenCounter(), independent_units({each.id: each.meta for each in conversations})

    def embed(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        try:
            return models.embed(texts, query, counter).vectors
        except ModelError as error:  # without vectors there is nothing to measure
            raise SetupError(
                f"the embedder gave no usable reply: {error}. Once that is mended, the same command goes on: finished "
                "vectors are recorded"
            ) from None

    outcomes, built = list[SearchOutcome](), list[Built]()
    with counting(len(conversations), "conversations") as done:
        for conversation in conversations:
            rag, before = Rag(rules, embed if "vector" in rules.retrievers else None), len(outcomes)
            unit, added, adding, embedding = units[conversation.id], 0, 0.0, 0.0
            for asked in placed(conversation):
                probe, stop = asked.probe, asked.stop
                if not (probe.answerable and probe.evidence):
                    continue
                # Probes come in order of their places: each message is added once, and a search sees none that came
                # later.
                some = conversation.messages[added:stop]
                reached = [passage(message) for message in some if message.role != "system"]
                began = perf_counter()
                rag.add([message for message in reached if message.text.strip()])
                between = perf_counter()
                rag.embed()
                added, adding, embedding = stop, adding + between - began, embedding + perf_counter() - between
                evidence = [name for name in probe.evidence if name in rag]
                for way, (by, rerank) in ways(rules.retrievers).items() if evidence else ():
                    if timed:
                        rag.forget()
                    began = perf_counter()
                    hits = rag.search(probe.question, 2 * k, by=by, rerank=rerank)
                    took, ids = 1000 * (perf_counter() - began), [id for id, _ in hits]
                    near, far = (float(recall(ids, evidence, size)) for size in (k, 2 * k))  # type: ignore[arg-type]
                    outcomes.append(SearchOutcome(way, conversation.id, unit, probe.category, near, far, took))
            if len(outcomes) > before:
                built.append(Built(conversation.id, len(rag), adding, embedding, *rag.graph.size))
            done()
    return pd.DataFrame(outcomes, columns=list(SearchOutcome._fields)), built


def rows(outcomes: pd.DataFrame, retrievers: Sequence[Retriever]) -> list[RagRow]:
    """Return the figures of each way."""

    def share(part: pd.DataFrame, name: str = "recall") -> Interval | Missing:
        return share_interval(part[name].tolist(), part.unit.tolist())

    every = {name: (by, outcomes[outcomes.way == name]) for name, (by, _) in ways(retrievers).items()}
    return [
        RagRow(
            name,
            by,
            share(part),
            share(part, "recall_at_twice"),
            {str(category): share(of_category) for category, of_category in part.groupby("category")},
            latency(part.milliseconds.to_numpy()),
        )
        for name, (by, part) in every.items()
    ]


def against(outcomes: pd.DataFrame, every: Sequence[RagRow]) -> RagComparison | None:
    """Compare the best fusion with the best single retriever; None if there are no two retrievers.

    Both were picked by the same probes. There are more fusions than retrievers, so the fusion is flattered.
    """
    known = [(row.recall.mean, row) for row in every if isinstance(row.recall, Interval)]
    singles, fused = ([pair for pair in known if (len(pair[1].retrievers) > 1) == several] for several in (False, True))
    if not singles or not fused:
        return None
    best, single = (max(group, key=itemgetter(0))[1].name for group in (fused, singles))
    ours, base = (outcomes[outcomes.way == name] for name in (best, single))
    differences = (ours.recall.to_numpy() - base.recall.to_numpy()).tolist()
    return RagComparison(best, single, interval(differences, ours.unit.tolist(), -1.0, 1.0))
