"""The probes of a run in figures: what each strategy sends of what answers rest on, without any model.

Strategies are compared over the conversations that all of them finished and had a context for every probe of. Bounds
stand apart and are never ranked: `last_turn` is the floor, `evidence_only`, which is told the evidence, the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from ..harness.folder.run import Run
from ..harness.probes.ask import CEILING, FLOOR
from ..metrics.figures import METRICS, OF_PROBES
from ..metrics.probes import MEASURES, ranked
from ..metrics.statistics.bootstrap import interval
from ..metrics.statistics.intervals import Ends, Interval, of_share
from ..metrics.value import Missing, Value
from .render import Table, count, percent, reasons, shares

COLUMNS = [
    *("conversation", "strategy", "probe", "category", "failed", "evidence", "recalled", "tokens_sent"),
    *("evidence_state", "evidence_tokens", "evidence_place", "answer"),
]
"""What the figures are made of: the texts of the contexts are left where they are."""

NO_KIND = "(no kind)"
"""For probes whose recording does not say what kind they are."""


@dataclass(frozen=True, slots=True)
class ProbeFigures:
    """One strategy, over all probes that are compared or those of one kind."""

    probes: int
    values: dict[str, Value]
    """By the names of `figures.OF_PROBES`."""
    normalised_gain: Value
    """Of what the ceiling sends of the evidence and the floor does not, the share that is sent."""


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """The probes of a run."""

    asked: int
    conversations: int
    compared: int
    """Conversations that are compared: all figures are over their probes."""
    without_evidence: int
    """Of the probes compared, those that rest on nothing that was said: most of them cannot be answered."""
    strategies: dict[str, ProbeFigures]
    bounds: dict[str, ProbeFigures]
    """The floor and the ceiling, whether or not the floor is among the strategies as well."""
    intervals: dict[str, Interval | Missing]
    """Of `context_recall` over all probes, over whole conversations."""
    kinds: dict[str, dict[str, ProbeFigures]] = field(default_factory=dict)
    """By kind, then by strategy, bounds last."""
    retrieval: dict[str, dict[str, dict[str, Value]]] = field(default_factory=dict)
    """Of the strategies that recall messages: by strategy, then by kind (empty = all), each measure."""
    failed: list[dict[str, str]] = field(default_factory=list)
    """Probes for which nothing was sent: conversation, strategy, probe, detail."""


def probes_of(run: Run, uneven: frozenset[str], lost: Sequence[str]) -> ProbeSummary | None:
    """The figures of a run's probes; None if none were asked.

    `uneven` are conversations that some strategy did not finish, `lost` the strategies that finished none.
    """
    rows = run.arrow("probes").select(COLUMNS).to_pandas()
    if rows.empty:
        return None
    rows = rows.assign(strategy=rows.strategy.astype(str), category=rows.category.astype(str).replace("", NO_KIND))
    names = [name for name in run.manifest["plan"]["strategies"] if name not in lost]
    asked = rows[rows.strategy == CEILING]
    broken = rows[rows.failed != ""]
    never = {name for name in names if (rows.strategy == name).sum() == (broken.strategy == name).sum()}
    names = [name for name in names if name not in never]
    out = uneven | set(broken.conversation[broken.strategy.isin([*names, FLOOR, CEILING])].astype(str))
    common = rows[~rows.conversation.isin(out)]
    everyone = [*names, *(name for name in (FLOOR, CEILING) if name not in names)]
    whole = _by_strategy(common, everyone)
    ceiling = common[common.strategy == CEILING]
    kinds = sorted(set(ceiling.category)) if len(set(ceiling.category)) > 1 else []
    return ProbeSummary(
        asked=len(asked),
        conversations=asked.conversation.nunique(),
        compared=ceiling.conversation.nunique(),
        without_evidence=int((ceiling.evidence.map(len) == 0).sum()),
        strategies={name: whole[name] for name in names},
        bounds={name: whole[name] for name in (FLOOR, CEILING)},
        intervals={name: _interval(common[common.strategy == name]) for name in everyone},
        kinds={kind: _by_strategy(common[common.category == kind], everyone) for kind in kinds},
        retrieval=_retrieval(common, names, kinds),
        failed=[
            {
                "conversation": str(row.conversation),
                "strategy": str(row.strategy),
                "probe": str(row.probe),
                "detail": str(row.failed),
            }
            for row in broken.itertuples()
        ],
    )


def _by_strategy(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, ProbeFigures]:
    found = {name: rows[rows.strategy == name] for name in names}
    values = {name: {each: METRICS[each].of(of) for each in OF_PROBES} for name, of in found.items()}
    floor, ceiling = (values[name]["context_recall"] for name in (FLOOR, CEILING))
    return {
        name: ProbeFigures(len(of), values[name], normalised_gain(values[name]["context_recall"], floor, ceiling))
        for name, of in found.items()
    }


def _interval(rows: pd.DataFrame) -> Interval | Missing:
    pairs = [
        (sum(state == "verbatim" for state in states) / len(states), name)
        for states, name in zip(rows.evidence_state, rows.conversation, strict=True)
        if states is not None and len(states)
    ]
    found = interval([share for share, _ in pairs], [name for _, name in pairs])
    if isinstance(found, Missing) or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return found
    ends = of_share(found.mean, Ends(found.low, found.high), len({name for _, name in pairs}))
    return found if isinstance(ends, Missing) else Interval(found.mean, *ends)


def normalised_gain(value: Value, floor: Value, ceiling: Value) -> Value:
    """(value − floor) / (ceiling − floor): 0 = no better than no memory at all, 1 = nothing that matters is lost."""
    match value, floor, ceiling:
        case (Missing(), _, _):
            return value
        case (_, Missing(), _):
            return floor
        case (_, _, Missing()):
            return ceiling
        case _:
            pass
    if ceiling == floor:
        return Missing("undefined", "the floor sends all that the ceiling does")
    return float((value - floor) / (ceiling - floor))


def _retrieval(
    rows: pd.DataFrame, names: Sequence[str], kinds: Sequence[str]
) -> dict[str, dict[str, dict[str, Value]]]:
    """The measures of the strategies that recalled anything, over the probes with evidence."""
    made: dict[str, dict[str, dict[str, Value]]] = {}
    for name in names:
        here = rows[rows.strategy == name]
        if not here.recalled.notna().any():
            continue
        here = here[here.evidence.map(len) > 0]
        rankings = [[] if found is None else list(found) for found in here.recalled]
        scores = pd.DataFrame(ranked(rankings, [set(each) for each in here.evidence]), columns=list(MEASURES))
        by_kind = {kind: scores[(here.category == kind).to_numpy()] for kind in kinds}
        made[name] = {kind: _means(of) for kind, of in {"": scores, **by_kind}.items()}
    return made


def _means(scores: pd.DataFrame) -> dict[str, Value]:
    if scores.empty:
        return dict.fromkeys(MEASURES, Missing("undefined", "no probe rests on what was said"))
    return {name: float(scores[name].mean()) for name in MEASURES}


def as_json(found: ProbeSummary | None) -> dict[str, object] | None:
    """The same for `--json`."""
    if found is None:
        return None
    return {
        **{name: getattr(found, name) for name in ("asked", "conversations", "compared", "without_evidence")},
        "strategies": _json(found.strategies),
        "evidence_sent_between": {
            name: of if isinstance(of, Missing) else {"low": of.low, "high": of.high}
            for name, of in found.intervals.items()
        },
        "bounds": _json(found.bounds),
        "kinds": {kind: _json(of) for kind, of in found.kinds.items()},
        "retrieval": {
            name: {"all": of[""], "kinds": {kind: values for kind, values in of.items() if kind}}
            for name, of in found.retrieval.items()
        },
        "failed": found.failed,
    }


def _json(figures: Mapping[str, ProbeFigures]) -> dict[str, object]:
    return {
        name: {
            "probes": of.probes,
            **of.values,
            "normalised_gain": of.normalised_gain,
        }
        for name, of in figures.items()
    }


TITLES = {
    "context_recall": "verbatim",
    "evidence_partial": "in part",
    "evidence_summary": "summary",
    "evidence_loadable": "loadable",
    "evidence_absent": "absent",
    "answer_in_context": "answer there",
    "evidence_place": "place",
    "evidence_density": "evidence_density",
}
"""The columns, and what stands over them."""
RETAINED, BETWEEN = "retained", "95 %"
SPARE = ("place", "absent", "evidence_density", BETWEEN, "loadable", "answer there")
"""What a narrow terminal does without, the first to go first."""
MOST_FAILED = 10


def tables(found: ProbeSummary, by_kind: bool = False) -> Iterator[Table]:
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


def _title(found: ProbeSummary) -> str:
    return f"Evidence of {count(found.asked, 'probe')} in {count(found.conversations, 'conversation')}"


def _heads(*between: str) -> tuple[str, ...]:
    first, *others = TITLES.values()
    return (first, *between, RETAINED, *others)


def _all(found: ProbeSummary) -> Iterator[Value]:
    """Every figure of the strategies, for the reasons of the missing ones."""
    for name, of in found.strategies.items():
        interval = found.intervals[name]
        ends = (interval,) if isinstance(interval, Missing) else interval[1:]
        yield from (*(of.values[each] for each in TITLES), of.normalised_gain, *ends)


def _rows(found: ProbeSummary, figures: Mapping[str, ProbeFigures]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *_cells(of, _between(found.intervals[name]))) for name, of in figures.items())


def _cells(of: ProbeFigures, *between: str) -> tuple[str, ...]:
    first, *others = (percent(of.values[name]) for name in TITLES)
    return (first, *between, percent(of.normalised_gain), *others)


def _between(found: Interval | Missing) -> str:
    """An interval, cut at what a share can be. Where there is none, why."""
    match found:
        case Missing(why=why):
            return f"({why})"
        case (_, Missing(why=why), _) | (_, _, Missing(why=why)):
            return f"({why})"
        case (_, low, high):
            return shares(max(low, 0.0), min(high, 1.0))


def _notes(found: ProbeSummary) -> Iterator[str]:
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


def _by_kind(kinds: Mapping[str, Mapping[str, ProbeFigures]]) -> Table:
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


def _failed(found: ProbeSummary) -> Table:
    why: dict[tuple[str, str], list[str]] = {}
    for row in found.failed:
        why.setdefault((row["strategy"], row["detail"]), []).append(f"{row['conversation']} {row['probe']}")
    rows = tuple(
        (strategy, f"{len(where):,}", where[0], detail) for (strategy, detail), where in list(why.items())[:MOST_FAILED]
    )
    more = len(why) - MOST_FAILED
    notes = (f"{count(more, 'more reason')}: all are in --json.",) if more > 0 else ()
    return Table("Failed probes", ("strategy", "probes", "for example", "why"), rows, notes, prose=True)
