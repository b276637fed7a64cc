"""Measure how often each way to search finds the evidence of an answer: `ctxbench lab bench-tier rag`.

For every answerable probe, the tier holds the messages before it, and evidence recall@k is the share of its evidence
among the first `k` hits. System messages are always sent, so they are not in the tier: a probe that rests on them alone
is left out, one that also rests on others counts for those. A conversation is added message by message, up to each
probe in turn: the tier measured is one that grew, not one that was built in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.probes import Latency, latency, recall
from ctxbench.metrics.statistics.intervals import Interval, interval, share_interval
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import SetupError
from ctxbench.scenarios.model import Conversation, Probe, independent_units
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.tiers.rag import Embed, Fusion, Rag, RagRules, Retriever, passage
from ctxbench.strategies.tiers.rag.vectors import Index, Vectors

from ..models import Models

K = (5, 10)
RERANKED = 20
"""Passages that are ranked again, in the ways that rerank."""


class Way(NamedTuple):
    """One way to search: its retrievers, and how their rankings are fused."""

    name: str
    by: tuple[Retriever, ...]
    fusing: Fusion = Fusion()


class SearchOutcome(NamedTuple):
    """The hits of one way for one probe."""

    way: str
    conversation: str
    unit: str
    """The independent unit of the conversation."""
    probe: str
    category: str
    recalls: tuple[float, ...]
    """Evidence recall at each of K."""
    seconds: float


class Built(NamedTuple):
    """The size of one conversation's tier, and the time to build it."""

    conversation: str
    passages: int
    seconds: float
    """Seconds to add all passages, without embedding them."""
    embedding: float
    """Seconds to embed them and to index their vectors."""
    entities: int
    edges: int


class RagRow(NamedTuple):
    """The figures of one way over all probes."""

    way: Way
    recalls: tuple[Interval | Missing, ...]
    """Evidence recall at each of K."""
    categories: dict[str, Interval | Missing]
    """Recall at the first K, by the probes' category."""
    latency: Latency | Missing
    """Milliseconds of a search, including the question's embedding."""


def ways(retrievers: Sequence[Retriever]) -> list[Way]:
    """Return each retriever alone, then every combination: fused by ranks, fused by scores, and reranked."""
    ways_to_search = [Way(name, (name,)) for name in retrievers]
    for size in range(2, len(retrievers) + 1):
        for combination in combinations(retrievers, size):
            name = " + ".join(combination)
            ways_to_search += [
                Way(f"{name}, rrf", combination),
                Way(f"{name}, weighted", combination, Fusion(by="weighted")),
                Way(f"{name}, reranked", combination, Fusion(rerank=RERANKED)),
            ]
    return ways_to_search


def searched(
    conversation: Conversation,
    unit: str,
    rules: RagRules,
    every: Sequence[Way],
    models: Models,
    counter: TokenCounter,
    timed: bool = True,
) -> tuple[list[SearchOutcome], Built]:
    """Search for each probe of a conversation, which belongs to an independent unit, in every way.

    For times that compare, each search is `timed` as the first of its question; else it may know what an earlier one
    has worked out.
    """

    def embed(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        try:
            return models.embed(texts, query, counter).vectors
        except ModelError as error:  # without vectors there is nothing to measure
            raise SetupError(
                f"the embedder gave no usable reply: {error}. Once that is mended, the same command goes on: finished "
                "vectors are recorded"
            ) from None

    embedder: Embed = embed if timed else _remembering(embed)
    rag = Rag(rules, embedder if "vector" in rules.retrievers else None)
    passages = [(at, passage(message)) for at, message in enumerate(conversation.messages) if message.role != "system"]
    upcoming = iter([(at, message) for at, message in passages if message.text.strip()])
    next_passage = next(upcoming, None)
    outcomes: list[SearchOutcome] = []
    adding = embedding = 0.0
    for end, probe in _probes(conversation):
        reached = []
        # The probes come in order of their places, so each message is
        # added once and a search sees none that came later.
        while next_passage is not None and next_passage[0] <= end:
            reached.append(next_passage[1])
            next_passage = next(upcoming, None)
        began = perf_counter()
        rag.add(reached)
        between = perf_counter()
        rag.embed()
        adding, embedding = adding + between - began, embedding + perf_counter() - between
        if any(name in rag for name in probe.evidence):
            for way in every:
                if timed:
                    rag.forget()
                outcomes.append(_outcome(way, rag, probe, conversation.id, unit))
    return outcomes, Built(conversation.id, len(rag), adding, embedding, *rag.graph.size)


def _remembering(embed: Embed) -> Embed:
    """Return an embedder that remembers the last question."""
    last: tuple[Sequence[str], NDArray[np.float32]] | None = None

    def remembering(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        nonlocal last
        if not query:
            return embed(texts, query)
        if last is None or last[0] != texts:
            last = texts, embed(texts, query)
        return last[1]

    return remembering


def _outcome(way: Way, rag: Rag, probe: Probe, conversation: str, unit: str) -> SearchOutcome:
    began = perf_counter()
    hits = rag.search(probe.question, max(K), by=way.by, fusing=way.fusing)
    took = perf_counter() - began
    ids = [hit.passage.id for hit in hits]
    evidence = [name for name in probe.evidence if name in rag]
    recalls = tuple(float(recall(ids, evidence, k)) for k in K)  # type: ignore[arg-type]  # something is held
    return SearchOutcome(way.name, conversation, unit, probe.id, probe.category, recalls, took)


def _probes(conversation: Conversation) -> list[tuple[int, Probe]]:
    """Return the answerable probes with evidence, each with the place of the message before it, in order."""
    places = {message.id: at for at, message in enumerate(conversation.messages)}
    last = len(conversation.messages) - 1
    probes = [probe for probe in conversation.probes if probe.answerable and probe.evidence]
    return sorted(((places.get(probe.after, last), probe) for probe in probes), key=lambda placed: placed[0])


def rows(outcomes: Sequence[SearchOutcome], every: Sequence[Way]) -> list[RagRow]:
    """Return the figures of each way."""
    return [_row(way, [outcome for outcome in outcomes if outcome.way == way.name]) for way in every]


def _row(way: Way, outcomes: Sequence[SearchOutcome]) -> RagRow:
    recalls = tuple(_recall(outcomes, at) for at in range(len(K)))
    categories = {
        category: _recall([outcome for outcome in outcomes if outcome.category == category], 0)
        for category in sorted({outcome.category for outcome in outcomes})
    }
    return RagRow(way, recalls, categories, latency([outcome.seconds * 1000 for outcome in outcomes]))


def _recall(outcomes: Sequence[SearchOutcome], at: int) -> Interval | Missing:
    return share_interval([outcome.recalls[at] for outcome in outcomes], [outcome.unit for outcome in outcomes])


class IndexRecall(NamedTuple):
    """An index of vectors beside an exact search of the same vectors, at the first K."""

    kind: Index
    nearest: Interval | Missing
    """Share of the exact nearest messages that the index finds."""
    evidence: Interval | Missing
    """Evidence recall of the index."""
    exact: Interval | Missing
    """Evidence recall of the exact search."""


def index_recall(conversations: Sequence[Conversation], kind: Index, models: Models) -> IndexRecall:
    """Search the messages before each probe by an index of their vectors, and exactly.

    Messages are added as they come, so no search is narrowed to some of them: such a search compares each vector, and
    finds what the exact one finds whatever the index is.
    """
    recalls: list[tuple[Value, ...]] = []
    groups: list[str] = []
    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    for conversation in conversations:
        messages = [message for message in conversation.messages if message.role != "system" and message.text.strip()]
        places = {message.id: at for at, message in enumerate(conversation.messages)}
        held = {message.id: places[message.id] for message in messages}
        came = np.array(list(held.values()), np.int64)
        vectors = models.embed([message.text for message in messages], False, TokenCounter()).vectors
        exact, index = (Vectors(vectors.shape[1], name) for name in ("exact", kind))
        # As in `searched`: evidence that comes after a probe cannot be found by it.
        known = (
            (end, probe, [id for id in probe.evidence if held.get(id, end + 1) <= end])
            for end, probe in _probes(conversation)
        )
        probes = [(end, probe.question, evidence) for end, probe, evidence in known if evidence]
        queries = models.embed([question for _, question, _ in probes], True, TokenCounter()).vectors
        added = 0
        for (end, _, evidence), query in zip(probes, queries, strict=True):
            new = np.arange(added, np.searchsorted(came, end, side="right"))
            added += len(new)
            for store in (exact, index):
                store.add(new, vectors[new])
            found = [store.search(query, K[0]).numbers.tolist() for store in (index, exact)]
            of_index, nearest = ([messages[at].id for at in numbers] for numbers in found)
            recalls.append(
                (recall(of_index, nearest, K[0]), *(recall(ids, evidence, K[0]) for ids in (of_index, nearest)))
            )
            groups.append(units[conversation.id])
    columns = np.array(recalls, np.float64).reshape(-1, 3).T.tolist()
    return IndexRecall(kind, *(share_interval(column, groups) for column in columns))


class RagComparison(NamedTuple):
    """Recall at the first K of the best fusion less that of the best single retriever, in pairs of probes."""

    fusion: str
    single: str
    difference: Interval | Missing


def against(outcomes: Sequence[SearchOutcome], every: Sequence[RagRow]) -> RagComparison | None:
    """Compare the best fusion with the best single retriever; None if there are no two retrievers.

    Both were picked by the same probes. There are more fusions than retrievers, so the fusion is flattered.
    """
    singles = [row for row in every if len(row.way.by) == 1]
    fused = [row for row in every if len(row.way.by) > 1]
    if not singles or not fused or not outcomes:
        return None
    best, single = (max(candidates, key=_first_recall).way.name for candidates in (fused, singles))
    by = {name: [outcome for outcome in outcomes if outcome.way == name] for name in (best, single)}
    pairs = list(zip(by[best], by[single], strict=True))
    differences = [one.recalls[0] - other.recalls[0] for one, other in pairs]
    return RagComparison(best, single, interval(differences, [one.unit for one, _ in pairs]))


def _first_recall(row: RagRow) -> float:
    recall_at_first = row.recalls[0]
    return 0.0 if isinstance(recall_at_first, Missing) else recall_at_first.mean


def measured(
    conversations: Sequence[Conversation],
    retrievers: Sequence[Retriever],
    models: Models,
    done: Callable[[], None] = lambda: None,
    words: bool = True,
    timed: bool = True,
) -> Iterator[tuple[list[SearchOutcome], Built]]:
    """Yield the outcomes and the tier of every conversation that has probes with evidence (`searched`)."""
    counter = TokenCounter()
    rules = RagRules(retrievers=tuple(retrievers), words=words)
    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    for conversation in conversations:
        if _probes(conversation):
            unit = units[conversation.id]
            outcomes, built = searched(conversation, unit, rules, ways(retrievers), models, counter, timed)
            if outcomes:
                yield outcomes, built
        done()


def together(every: Iterable[tuple[list[SearchOutcome], Built]]) -> tuple[list[SearchOutcome], list[Built]]:
    """Return the outcomes of all conversations, and their tiers."""
    parts = list(every)
    return list(chain.from_iterable(outcomes for outcomes, _ in parts)), [built for _, built in parts]
