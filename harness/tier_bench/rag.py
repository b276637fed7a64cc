"""How often each way to search finds what an answer rests on: what `ctxbench bench-tier rag` shows.

For every answerable probe, the messages said until it is asked are in the tier, and evidence recall@k is the share of
its evidence among the first `k` found. System messages are not in the tier, since they are always sent: what rests on
them alone is not asked, and what rests on them too is asked for the rest. A conversation is added as it was said, up to
each probe in turn, so what is measured is the tier that was added to, not one that was built in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...metrics.probes import Latency, latency, recall
from ...metrics.statistics.bootstrap import interval
from ...metrics.statistics.intervals import Interval
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing, Value
from ...scenarios.model import Conversation, Probe
from ...strategies.tiers.rag import Fusing, Rag, RagRules, Retriever, passage
from ..models import Models

K = (5, 10)
RERANKED = 20
"""Passages that are ranked again, where they are."""


class Way(NamedTuple):
    """One way to search: which retrievers, and how their rankings become one."""

    name: str
    by: tuple[Retriever, ...]
    fusing: Fusing = Fusing()


class SearchOutcome(NamedTuple):
    """What one way found for one probe."""

    way: str
    conversation: str
    probe: str
    category: str
    recalls: tuple[float, ...]
    """At each of K."""
    seconds: float


class Built(NamedTuple):
    """What one conversation's tier took, and holds."""

    conversation: str
    passages: int
    seconds: float
    """To add all its passages, without embedding them."""
    embedding: float
    """Seconds to embed them, and to index their vectors."""
    entities: int
    edges: int


class RagRow(NamedTuple):
    """One way over all probes."""

    way: Way
    recalls: tuple[Interval | Missing, ...]
    """At each of K."""
    categories: dict[str, Value]
    """Recall at the first K by the probes' category."""
    latency: Latency | Missing
    """Milliseconds of a search, the question's embedding among them."""


def ways(retrievers: Sequence[Retriever]) -> list[Way]:
    """Each retriever alone, then every two and more of them: by ranks, by scores, and ranked again."""
    made = [Way(name, (name,)) for name in retrievers]
    for size in range(2, len(retrievers) + 1):
        for some in combinations(retrievers, size):
            name = " + ".join(some)
            made += [
                Way(f"{name}, rrf", some),
                Way(f"{name}, weighted", some, Fusing(by="weighted")),
                Way(f"{name}, reranked", some, Fusing(rerank=RERANKED)),
            ]
    return made


def asked(
    conversation: Conversation, rules: RagRules, every: Sequence[Way], models: Models, counter: TokenCounter
) -> tuple[list[SearchOutcome], Built]:
    """What every way finds for each probe of a conversation."""

    def embed(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        return models.embed(texts, query, counter).vectors

    rag = Rag(rules, embed if "vector" in rules.retrievers else None)
    said = [(at, passage(each)) for at, each in enumerate(conversation.messages) if each.role != "system"]
    waiting = iter([(at, each) for at, each in said if each.text.strip()])
    ahead = next(waiting, None)
    found: list[SearchOutcome] = []
    adding = embedding = now = 0.0
    for end, probe in _probes(conversation):
        new = []
        while ahead is not None and ahead[0] <= end:
            new.append(ahead[1])
            ahead = next(waiting, None)
        began = perf_counter()
        rag.add(new, now)
        between = perf_counter()
        rag.embed()
        adding, embedding = adding + between - began, embedding + perf_counter() - between
        now = max([now, *(each.time for each in new if each.time is not None)])
        if any(name in rag for name in probe.evidence):
            found += [_found(way, rag, probe, conversation.id, now) for way in every]
    return found, Built(conversation.id, len(rag), adding, embedding, *rag.graph.size)


def _found(way: Way, rag: Rag, probe: Probe, conversation: str, now: float) -> SearchOutcome:
    rag.forget()
    began = perf_counter()
    hits = rag.search(probe.question, max(K), now=now, by=way.by, fusing=way.fusing)
    took = perf_counter() - began
    ids = [hit.passage.id for hit in hits]
    held = [name for name in probe.evidence if name in rag]
    recalls = tuple(float(recall(ids, held, k)) for k in K)  # type: ignore[arg-type]  # something is held
    return SearchOutcome(way.name, conversation, probe.id, probe.category, recalls, took)


def _probes(conversation: Conversation) -> list[tuple[int, Probe]]:
    """The answerable probes with evidence, and after which message each is asked, in that order."""
    places = {each.id: at for at, each in enumerate(conversation.messages)}
    last = len(conversation.messages) - 1
    asked = [each for each in conversation.probes if each.answerable and each.evidence]
    return sorted(((places.get(each.after, last), each) for each in asked), key=lambda each: each[0])


def rows(found: Sequence[SearchOutcome], every: Sequence[Way]) -> list[RagRow]:
    """The figures of each way."""
    return [_row(way, [each for each in found if each.way == way.name]) for way in every]


def _row(way: Way, found: Sequence[SearchOutcome]) -> RagRow:
    groups = [each.conversation for each in found]
    recalls = tuple(interval([each.recalls[at] for each in found], groups) for at in range(len(K)))
    categories: dict[str, Value] = {}
    for category in sorted({each.category for each in found}):
        categories[category] = float(np.mean([each.recalls[0] for each in found if each.category == category]))
    return RagRow(way, recalls, categories, latency([each.seconds * 1000 for each in found]))


class RagComparison(NamedTuple):
    """The best fusion less the best single retriever, by recall at the first K, in pairs."""

    fusion: str
    single: str
    difference: Interval | Missing


def against(found: Sequence[SearchOutcome], every: Sequence[RagRow]) -> RagComparison | None:
    """Whether fusion pays; None if there are no two retrievers. Both were picked by the same probes, so the fusion, of
    which there are more, is flattered."""
    singles = [each for each in every if len(each.way.by) == 1]
    fused = [each for each in every if len(each.way.by) > 1]
    if not singles or not fused or not found:
        return None
    best, single = (max(some, key=_first_recall).way.name for some in (fused, singles))
    by = {name: [each for each in found if each.way == name] for name in (best, single)}
    pairs = list(zip(by[best], by[single], strict=True))
    differences = [one.recalls[0] - other.recalls[0] for one, other in pairs]
    return RagComparison(best, single, interval(differences, [one.conversation for one, _ in pairs]))


def _first_recall(row: RagRow) -> float:
    found = row.recalls[0]
    return 0.0 if isinstance(found, Missing) else found.mean


def measured(
    conversations: Iterable[Conversation],
    retrievers: Sequence[Retriever],
    models: Models,
    done: Callable[[], None] = lambda: None,
    words: bool = True,
) -> Iterator[tuple[list[SearchOutcome], Built]]:
    """Every conversation that has probes with evidence."""
    counter = TokenCounter()
    rules = RagRules(retrievers=tuple(retrievers), words=words)
    for conversation in conversations:
        if _probes(conversation):
            found, built = asked(conversation, rules, ways(retrievers), models, counter)
            if found:
                yield found, built
        done()


def together(every: Iterable[tuple[list[SearchOutcome], Built]]) -> tuple[list[SearchOutcome], list[Built]]:
    """What was found in all conversations, and what their tiers took."""
    parts = list(every)
    return list(chain.from_iterable(found for found, _ in parts)), [built for _, built in parts]
