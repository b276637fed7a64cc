"""What the RAG tier finds, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..harness.retrieving import RERANKED, Against, Built, K, Row
from ..metrics.statistics.interval import Interval
from ..metrics.value import Missing, Value
from .render import Table
from .words import count, percent, shares

WANTED = 0.85
"""The share of questions that design document 004 asks for among the first five."""


def tables(rows: Sequence[Row], built: Sequence[Built], probes: int, best: Against | None) -> list[Table]:
    """Evidence recall by way, by category, and what the tier took."""
    title = f"Evidence recall of {count(probes, 'probe')} in {count(len(built), 'conversation')}"
    heads = ("retrievers", f"@{K[0]}", "95 % interval", f"@{K[1]}", "95 % interval ", "p50", "p95", "p99")
    cells = tuple((row.way.name, *_intervals(row), *_latency(row)) for row in rows)
    found = [Table(title, heads, cells, (_verdict(best), *_asked_for(rows)), spare=("p50", "p99", "95 % interval "))]
    return [*found, _categories(rows), _took(built), Table("How to read it", (), (), (_HOW,))]


_HOW = (
    f"Recall: the share of a probe's evidence among the first {K[0]} and the first {K[1]} messages found, the mean of "
    "the probes; the bootstrap interval is over conversations. rrf: reciprocal rank fusion. weighted: scores, each "
    f"divided by its retriever's best, added. reranked: the first {RERANKED} by rrf, ordered by exact weighted scores. "
    "p50, p95, p99: a search in one conversation, the embedding of the question with it. `vector` is as good as its "
    "embedder: `offline` compares words, and between texts that share none its cosines are noise around 0."
)


def _intervals(row: Row) -> tuple[str, ...]:
    return tuple(text for each in row.recalls for text in (_mean(each), _between(each)))


def _mean(found: Interval | Missing) -> str:
    return percent(found if isinstance(found, Missing) else found.mean)


def _between(found: Interval | Missing) -> str:
    if isinstance(found, Missing) or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return "–"
    return shares(found.low, found.high)


def _latency(row: Row) -> tuple[str, ...]:
    return ("–",) * 3 if isinstance(row.latency, Missing) else tuple(f"{each:.2f} ms" for each in row.latency)


def _verdict(best: Against | None) -> str:
    """Whether fusion beats the best single retriever, decided by the interval."""
    if best is None:
        return "One retriever alone: nothing is fused."
    found = best.difference
    if isinstance(found, Missing) or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return f"Whether fusion beats the best single retriever, {best.single}, cannot be told from one conversation."
    mean, low, high = found.mean, found.low, found.high
    word = "beats" if low > 0 else "does worse than" if high < 0 else "is not told apart from"
    return (
        f"The best fusion ({best.fusion}) {word} the best single retriever ({best.single}): {_points(mean)} points at "
        f"{K[0]}, {_points(low)} to {_points(high)}, in pairs. It is the best of several, seen on the same probes."
    )


def _points(share: float) -> str:
    return f"{share * 100:+.1f}".replace("-", "−")


def _asked_for(rows: Sequence[Row]) -> list[str]:
    """Whether what the document asks for is reached."""
    found = [row.recalls[0] for row in rows]
    highs = [each.high for each in found if not isinstance(each, Missing) and not isinstance(each.high, Missing)]
    if not highs or max(highs) >= WANTED:
        return []
    return [f"Design document 004 asks for more than {percent(WANTED)} at 5: no way reaches that here."]


def _categories(rows: Sequence[Row]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row.categories))
    cells = tuple((row.way.name, *(percent(row.categories[name]) for name in names)) for row in rows)
    return Table(f"Evidence recall@{K[0]} by category", ("retrievers", *names), cells)


def _took(built: Sequence[Built]) -> Table:
    passages = sum(each.passages for each in built)
    adding, embedding = sum(each.seconds for each in built), sum(each.embedding for each in built)
    cells = (
        ("passages", f"{passages:,}"),
        ("added, words and entities", _each(adding, passages)),
        ("embedded and indexed", _each(embedding, passages)),
        ("entities", f"{sum(each.entities for each in built):,}"),
        ("edges", f"{sum(each.edges for each in built):,}"),
    )
    return Table("What the tiers took and hold", ("figure", "all conversations"), cells)


def _each(seconds: float, passages: int) -> str:
    return f"{seconds:.2f} s, {seconds / max(passages, 1) * 1000:.2f} ms each"


def as_json(rows: Sequence[Row], built: Sequence[Built], probes: int, best: Against | None) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "probes": probes,
        "ways": [
            {
                "retrievers": list(row.way.by),
                "name": row.way.name,
                "recall": {f"@{k}": _plain(each) for k, each in zip(K, row.recalls, strict=True)},
                "categories": {name: _value(value) for name, value in row.categories.items()},
                "milliseconds": None if isinstance(row.latency, Missing) else row.latency._asdict(),
            }
            for row in rows
        ],
        "fusion": None
        if best is None
        else {"best": best.fusion, "single": best.single, "difference": _plain(best.difference)},
        "conversations": [each._asdict() for each in built],
    }


def _plain(found: Interval | Missing) -> dict[str, float | None]:
    three = (found,) * 3 if isinstance(found, Missing) else found
    return {name: _value(value) for name, value in zip(Interval._fields, three, strict=True)}


def _value(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)
