"""Context recall: how much of the evidence for the probes of a run each strategy sends, without any model.

Strategies are compared over the conversations that all of them finished and had a context for every probe of. Bounds
stand apart and are never ranked: `last_turn` is the floor, `evidence_only`, which is given the evidence, the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ctxbench.harness.folder.run import Run
from ctxbench.harness.probes.ask import CEILING, FLOOR
from ctxbench.metrics.figures import METRICS, OF_PROBES, bounds_are_alike, recall_interval, units_of
from ctxbench.metrics.probes import MEASURES, ranked
from ctxbench.metrics.statistics.intervals import WITHIN_NOISE, Interval
from ctxbench.metrics.value import Missing, Ratio, Value

from .render import Table, count, percent, reasons, sample, shares

# Columns that the figures need; the texts of the contexts are not read.
_COLUMNS = [
    *("conversation", "strategy", "probe", "category", "failed", "evidence", "recalled", "tokens_sent"),
    *("evidence_state", "evidence_tokens", "evidence_place", "answer"),
]

# Category of probes whose recording does not say what kind they are.
_NO_KIND = "(no kind)"


@dataclass(frozen=True, slots=True)
class ProbeFigures:
    """Figures of one strategy, over all compared probes or those of one kind."""

    probes: int
    values: dict[str, Value]
    """Values by the names of `figures.OF_PROBES`."""
    normalised_gain: Value
    """(context recall − floor) / (ceiling − floor). It may leave 0 to 1; missing if ceiling − floor is within noise."""


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """Figures of the probes of a run."""

    asked: int
    conversations: int
    units: int
    """Number of independent units among them."""
    compared: int
    """Number of conversations that are compared: all figures cover their probes."""
    without_evidence: int
    """Number of compared probes without evidence; most of them cannot be answered."""
    strategies: dict[str, ProbeFigures]
    bounds: dict[str, ProbeFigures]
    """Figures of the floor and the ceiling, even if the floor is among the strategies as well."""
    intervals: dict[str, Interval | Missing]
    """95 % intervals of `context_recall`, by resampling independent units."""
    kinds: dict[str, dict[str, ProbeFigures]] = field(default_factory=dict)
    """Figures by kind of probe, then by strategy, bounds last."""
    retrieval: dict[str, dict[str, dict[str, Value]]] = field(default_factory=dict)
    """Ranking measures of the strategies that recall messages: by strategy, then by kind (empty = all)."""
    failed: list[dict[str, str]] = field(default_factory=list)
    """Probes without a context: conversation, strategy, probe, detail."""


def probes_of(run: Run, uneven: frozenset[str], lost: Sequence[str]) -> ProbeSummary | None:
    """Return the figures of a run's probes, or None if it has none.

    `uneven` are conversations that some strategy did not finish, `lost` the strategies that finished none.
    """
    rows = run.arrow("probes").select(_COLUMNS).to_pandas()
    if rows.empty:
        return None
    rows = rows.assign(strategy=rows.strategy.astype(str), category=rows.category.astype(str).replace("", _NO_KIND))
    names = [name for name in run.manifest.plan.strategies if name not in lost]
    ceiling_rows = rows[rows.strategy == CEILING]
    broken = rows[rows.failed != ""]
    never = {name for name in names if (rows.strategy == name).sum() == (broken.strategy == name).sum()}
    names = [name for name in names if name not in never]
    out = uneven | set(broken.conversation[broken.strategy.isin([*names, FLOOR, CEILING])].astype(str))
    common = rows[~rows.conversation.isin(out)]
    everyone = [*names, *(name for name in (FLOOR, CEILING) if name not in names)]
    sums = _ProbeSums(common, run.units)
    whole = sums.by_strategy(everyone)
    ceiling = common[common.strategy == CEILING]
    kinds = sorted(set(ceiling.category)) if len(set(ceiling.category)) > 1 else []
    return ProbeSummary(
        asked=len(ceiling_rows),
        conversations=ceiling_rows.conversation.nunique(),
        units=len(set(units_of(ceiling_rows, run.units))),
        compared=ceiling.conversation.nunique(),
        without_evidence=int((ceiling.evidence.map(len) == 0).sum()),
        strategies={name: whole[name] for name in names},
        bounds={name: whole[name] for name in (FLOOR, CEILING)},
        intervals={name: recall_interval(common[common.strategy == name], name, run.units) for name in everyone},
        kinds={kind: sums.by_strategy(everyone, kind) for kind in kinds},
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


class _ProbeSums:
    """Adds up each probe's part of every figure, by strategy and kind. The parts are found once."""

    def __init__(self, rows: pd.DataFrame, units: Mapping[str, str]) -> None:
        self._rows, self._units = rows, units
        self._strategies, self._kinds = rows.strategy.to_numpy(), rows.category.to_numpy()
        self._ratios = {name: _ratio(name) for name in OF_PROBES}
        self._parts = {name: of.parts(rows) for name, of in self._ratios.items()}

    def by_strategy(self, names: Sequence[str], kind: str | None = None) -> dict[str, ProbeFigures]:
        """Return the figures of some strategies, over the probes of one kind; None = all."""
        of_kind = True if kind is None else self._kinds == kind
        rows = {name: np.flatnonzero((self._strategies == name) & of_kind) for name in names}
        values = {name: self._values(of_strategy) for name, of_strategy in rows.items()}
        floor, ceiling = (values[name]["context_recall"] for name in (FLOOR, CEILING))
        gains = {name: normalised_gain(values[name]["context_recall"], floor, ceiling) for name in names}
        floor_rows, ceiling_rows = (self._rows.iloc[rows[name]] for name in (FLOOR, CEILING))
        if bounds_are_alike(floor_rows, ceiling_rows, self._units):
            gains = {name: gain if isinstance(gain, Missing) else WITHIN_NOISE for name, gain in gains.items()}
        return {name: ProbeFigures(len(rows[name]), values[name], gains[name]) for name in names}

    def _values(self, rows: NDArray[np.intp]) -> dict[str, Value]:
        return {name: self._ratios[name].over(top[rows], bottom[rows]) for name, (top, bottom) in self._parts.items()}


def _ratio(name: str) -> Ratio:
    """Return the formula of a metric over probes. Raises TypeError for one that is not made of two sums."""
    formula = METRICS[name].of
    if not isinstance(formula, Ratio) or formula.has is not None:
        raise TypeError(f"{name}: a metric over probes is a ratio of two sums over all of them")
    return formula


def normalised_gain(value: Value, floor: Value, ceiling: Value) -> Value:
    """Return (value − floor) / (ceiling − floor): 0 is no better than no memory, 1 loses nothing that matters."""
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
    """Return the ranking measures of the strategies that recalled anything, over the probes with evidence."""
    measures: dict[str, dict[str, dict[str, Value]]] = {}
    for name in names:
        here = rows[rows.strategy == name]
        if not here.recalled.notna().any():
            continue
        here = here[here.evidence.map(len) > 0]
        rankings = [[] if recalled is None else list(recalled) for recalled in here.recalled]
        scores = pd.DataFrame(ranked(rankings, [set(evidence) for evidence in here.evidence]), columns=list(MEASURES))
        by_kind = {kind: scores[(here.category == kind).to_numpy()] for kind in kinds}
        measures[name] = {kind: _means(part) for kind, part in {"": scores, **by_kind}.items()}
    return measures


def _means(scores: pd.DataFrame) -> dict[str, Value]:
    if scores.empty:
        return dict.fromkeys(MEASURES, Missing("undefined", "no probe has evidence"))
    return {name: float(scores[name].mean()) for name in MEASURES}


def as_json(summary: ProbeSummary | None) -> dict[str, object] | None:
    """Return the exact figures for `--json`."""
    if summary is None:
        return None
    return {
        **{name: getattr(summary, name) for name in ("asked", "conversations", "compared", "without_evidence")},
        "strategies": _json(summary.strategies),
        "context_recall_interval": {
            name: of if isinstance(of, Missing) else {"low": of.low, "high": of.high}
            for name, of in summary.intervals.items()
        },
        "bounds": _json(summary.bounds),
        "kinds": {kind: _json(of) for kind, of in summary.kinds.items()},
        "retrieval": {
            name: {"all": of[""], "kinds": {kind: values for kind, values in of.items() if kind}}
            for name, of in summary.retrieval.items()
        },
        "failed": summary.failed,
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


# Column heads: the names of the metrics, and shorter words for what became of the evidence.
_HEADS = {
    "context_recall": METRICS["context_recall"].name,
    "evidence_partial": "partial",
    "evidence_summary": "in a summary",
    "evidence_loadable": "loadable",
    "evidence_absent": "absent",
    "answer_in_context": METRICS["answer_in_context"].name,
    "evidence_place": "position",
    "evidence_density": METRICS["evidence_density"].name,
}
_INTERVAL = "95 %"
# Columns that a narrow terminal leaves out, the first to go first.
_SPARE = ("position", "absent", "evidence density", _INTERVAL, "loadable", "answer in context")
_MOST_FAILED = 10


def tables(summary: ProbeSummary, by_kind: bool = False) -> Iterator[Table]:
    """Yield the tables of the strategies, bounds, rankings and failures; `by_kind` splits them by kind of probe too."""
    heads = ("strategy", *_heads(_INTERVAL))
    notes = (*_notes(summary), *filter(None, [reasons(_all(summary))]))
    yield Table(_title(summary), heads, _rows(summary, summary.strategies), notes, spare=_SPARE)
    yield Table(
        "What are the bounds of context recall?",
        ("bound", *_heads(_INTERVAL)),
        _rows(summary, summary.bounds),
        ("last_turn has no memory at all; evidence_only is given the evidence, and sends nothing else.",),
        spare=_SPARE,
    )
    if by_kind and summary.kinds:
        yield _by_kind(summary.kinds)
    if summary.retrieval:
        yield _ranking(summary.retrieval, by_kind)
    if summary.failed:
        yield _failed(summary)


def _title(summary: ProbeSummary) -> str:
    return f"Is the evidence sent? {count(summary.asked, 'probe')} in {sample(summary.conversations, summary.units)}"


def _heads(*between: str) -> tuple[str, ...]:
    first, *others = _HEADS.values()
    return (first, *between, "normalised gain", *others)


def _all(summary: ProbeSummary) -> Iterator[Value]:
    """Yield every figure of the strategies, for the reasons of the missing ones."""
    for name, of in summary.strategies.items():
        interval = summary.intervals[name]
        ends = (interval,) if isinstance(interval, Missing) else interval[1:]
        yield from (*(of.values[metric] for metric in _HEADS), of.normalised_gain, *ends)


def _rows(summary: ProbeSummary, figures: Mapping[str, ProbeFigures]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *_cells(of, _between(summary.intervals[name]))) for name, of in figures.items())


def _cells(of: ProbeFigures, *between: str) -> tuple[str, ...]:
    first, *others = (percent(of.values[name]) for name in _HEADS)
    return (first, *between, percent(of.normalised_gain), *others)


def _between(ends: Interval | Missing) -> str:
    """Return an interval within 0 to 1, or the reason why there is none."""
    match ends:
        case Missing(why=why):
            return f"({why})"
        case (_, Missing(why=why), _) | (_, _, Missing(why=why)):
            return f"({why})"
        case (_, low, high):
            return shares(max(low, 0.0), min(high, 1.0))


def _notes(summary: ProbeSummary) -> Iterator[str]:
    yield (
        "Context recall is the share of the evidence messages sent word for word when the question is asked; partial, "
        "in a summary, loadable and absent say what became of the rest. Normalised gain puts last_turn at 0 % and "
        "evidence_only at 100 %."
    )
    yield (
        "Means over probes, with 95 % intervals from resampling independent units. `ctxbench list metrics` explains "
        "every column."
    )
    if summary.compared < summary.conversations:
        yield (
            f"Over the {summary.compared:,} of {count(summary.conversations, 'conversation')} in which every strategy "
            "finished and had a context for every probe."
        )
    if summary.without_evidence:
        yield (
            f"{count(summary.without_evidence, 'probe has', 'probes have')} no evidence, as those that cannot be "
            "answered: they count in no figure here."
        )


def _by_kind(kinds: Mapping[str, Mapping[str, ProbeFigures]]) -> Table:
    rows = tuple(
        (kind, name, f"{of.probes:,}", *_cells(of)) for kind, figures in kinds.items() for name, of in figures.items()
    )
    return Table(
        "Which kinds of probes lose their evidence?",
        ("kind", "strategy", "probes", *_heads()),
        rows,
        names=2,
        spare=_SPARE,
    )


def _ranking(retrieval: Mapping[str, Mapping[str, Mapping[str, Value]]], by_kind: bool) -> Table:
    rows = tuple(
        (name, *([kind or "all"] if by_kind else []), *(percent(values[measure]) for measure in MEASURES))
        for name, kinds in retrieval.items()
        for kind, values in kinds.items()
        if by_kind or not kind
    )
    heads = ("strategy", *(["kind"] if by_kind else []), *MEASURES)
    note = (
        "Ranking of the messages that the strategy recalled for the question. A message that is sent anyway, such as "
        "the last turn, need not be recalled and counts as missed."
    )
    return Table("How well is the evidence ranked?", heads, rows, (note,), names=2 if by_kind else 1)


def _failed(summary: ProbeSummary) -> Table:
    why: dict[tuple[str, str], list[str]] = {}
    for row in summary.failed:
        why.setdefault((row["strategy"], row["detail"]), []).append(f"{row['conversation']} {row['probe']}")
    rows = tuple(
        (strategy, f"{len(where):,}", where[0], detail)
        for (strategy, detail), where in list(why.items())[:_MOST_FAILED]
    )
    more = len(why) - _MOST_FAILED
    notes = (f"{count(more, 'more reason')}: all are in --json.",) if more > 0 else ()
    return Table("Probes without a context", ("strategy", "probes", "for example", "why"), rows, notes, prose=True)
