"""Tables of the probes: what is sent of what answers rest on, by strategy and by kind, and how it is ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..metrics.ranking import MEASURES
from ..metrics.statistics.interval import Interval
from ..metrics.value import Missing, Value
from .main_table import reasons
from .probing import Figures, Probes
from .render import Table
from .words import count, percent, shares

TITLES = {
    "evidence_sent": "verbatim",
    "evidence_part": "in part",
    "evidence_summary": "summary",
    "evidence_loadable": "loadable",
    "evidence_absent": "absent",
    "answer_sent": "answer there",
    "evidence_place": "place",
    "dilution": "dilution",
}
"""The columns, and what stands over them."""
RETAINED, BETWEEN = "retained", "95 %"
SPARE = ("place", "absent", "dilution", BETWEEN, "loadable", "answer there")
"""What a narrow terminal does without, the first to go first."""
MOST_FAILED = 10


def tables(found: Probes, by_kind: bool = False) -> Iterator[Table]:
    """The table of the strategies, the bounds, the rankings, what failed; all by kind as well if that is wanted."""
    heads = ("strategy", *_heads(BETWEEN))
    notes = (*_notes(found), *filter(None, [reasons(_all(found))]))
    yield Table(_title(found), heads, _rows(found, found.strategies), notes, spare=SPARE)
    yield Table(
        "Bounds of the probes",
        ("bound", *_heads(BETWEEN)),
        _rows(found, found.bounds),
        ("last_turn: no memory at all. evidence_only: told what each probe rests on, so that nothing else is sent.",),
        spare=SPARE,
    )
    if by_kind and found.kinds:
        yield _by_kind(found.kinds)
    if found.retrieval:
        yield _ranking(found.retrieval, by_kind)
    if found.failed:
        yield _failed(found)


def _title(found: Probes) -> str:
    return f"Evidence of {count(found.asked, 'probe')} in {count(found.conversations, 'conversation')}"


def _heads(*between: str) -> tuple[str, ...]:
    first, *others = TITLES.values()
    return (first, *between, RETAINED, *others)


def _all(found: Probes) -> Iterator[Value]:
    """Every figure of the strategies, for the reasons of the missing ones."""
    for name, of in found.strategies.items():
        interval = found.intervals[name]
        ends = (interval,) if isinstance(interval, Missing) else interval[1:]
        yield from (*(of.values[each] for each in TITLES), of.retention, *ends)


def _rows(found: Probes, figures: Mapping[str, Figures]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *_cells(of, _between(found.intervals[name]))) for name, of in figures.items())


def _cells(of: Figures, *between: str) -> tuple[str, ...]:
    first, *others = (percent(of.values[name]) for name in TITLES)
    return (first, *between, percent(of.retention), *others)


def _between(found: Interval | Missing) -> str:
    """An interval, cut at what a share can be. Where there is none, why."""
    match found:
        case Missing(why=why):
            return f"({why})"
        case (_, Missing(why=why), _) | (_, _, Missing(why=why)):
            return f"({why})"
        case (_, low, high):
            return shares(max(low, 0.0), min(high, 1.0))


def _notes(found: Probes) -> Iterator[str]:
    yield (
        "Each question is asked where it belongs, and no model answers. Of the messages that the answer rests on: sent "
        "verbatim; in part; only through a summary or a fact made of them; only loadable from an archive or a tier; "
        "absent. Retained: of what evidence_only sends of them and last_turn does not, the share sent verbatim. Answer "
        "there: probes with an accepted answer, word for word, of those where it had been said so. Place: of what is "
        "sent of them, 0 % = start, 100 % = end. Dilution: their tokens of all tokens sent."
    )
    yield "Means over probes; 95 % intervals by drawing whole conversations."
    if found.compared < found.conversations:
        yield (
            f"Over the {found.compared:,} of {count(found.conversations, 'conversation')} in which every strategy "
            "finished, and had a context for every probe."
        )
    if found.without_evidence:
        yield (
            f"{count(found.without_evidence, 'probe rests', 'probes rest')} on nothing that was said, as those that "
            "cannot be answered do: they are in no figure of evidence."
        )


def _by_kind(kinds: Mapping[str, Mapping[str, Figures]]) -> Table:
    rows = tuple(
        (kind, name, f"{of.probes:,}", *_cells(of)) for kind, figures in kinds.items() for name, of in figures.items()
    )
    return Table("Evidence by kind of probe", ("kind", "strategy", "probes", *_heads()), rows, names=2, spare=SPARE)


def _ranking(found: Mapping[str, Mapping[str, Mapping[str, Value]]], by_kind: bool) -> Table:
    rows = tuple(
        (name, *([kind or "all"] if by_kind else []), *(percent(values[each]) for each in MEASURES))
        for name, kinds in found.items()
        for kind, values in kinds.items()
        if by_kind or not kind
    )
    heads = ("strategy", *(["kind"] if by_kind else []), *MEASURES)
    note = (
        "Of the strategies that recall messages: how what was recalled for the question is ranked, by score. Messages "
        "that are sent anyway, as the last turns are, need not be recalled, and count as missed."
    )
    return Table("Recalled for the probes", heads, rows, (note,), names=2 if by_kind else 1)


def _failed(found: Probes) -> Table:
    why: dict[tuple[str, str], list[str]] = {}
    for row in found.failed:
        why.setdefault((row["strategy"], row["detail"]), []).append(f"{row['conversation']} {row['probe']}")
    rows = tuple(
        (strategy, f"{len(where):,}", where[0], detail) for (strategy, detail), where in list(why.items())[:MOST_FAILED]
    )
    more = len(why) - MOST_FAILED
    notes = (f"{count(more, 'more reason')}: all are in --json.",) if more > 0 else ()
    return Table("Failed probes", ("strategy", "probes", "for example", "why"), rows, notes, prose=True)
