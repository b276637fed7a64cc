"""Context recall: how much of the evidence for the probes of a run each strategy sends, without any model.

Strategies are compared over the conversations that all of them finished and had a context for every probe of. Bounds
stand apart and are never ranked: `last_turn` is the floor, `evidence_only`, which is given the evidence, the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ctxbench.harness.folder.run import KEYS, Run
from ctxbench.harness.probes import CEILING, FLOOR
from ctxbench.metrics.figures import METRICS, OF_PROBES, recall_interval, units_of
from ctxbench.metrics.probes import MEASURES, ranked
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing, Ratio, Value

from .render import (
    STRATEGY,
    Column,
    Table,
    about,
    count,
    integer,
    metric_column,
    percent,
    sample,
    share_range,
    table_of,
)

# Columns that the figures need; the texts of the contexts are not read.
_COLUMNS = [
    *("conversation", "strategy", "probe", "category", "failed", "evidence", "recalled", "tokens_sent"),
    *("evidence_state", "evidence_tokens", "evidence_place", "answer"),
]

_NO_KIND = "(no kind)"  # category of probes whose recording does not say what kind they are

ProbeFigures = dict[str, Value]
"""Figures of a strategy over some probes: their number `probes`, mean `tokens`, and the metrics `OF_PROBES`."""


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """Figures of the probes of a run."""

    asked: int
    conversations: int
    units: int  # number of independent units among them
    compared: int  # number of conversations that are compared: all figures cover their probes
    without_evidence: int  # number of compared probes without evidence; most of them cannot be answered
    strategies: dict[str, ProbeFigures]
    bounds: dict[str, ProbeFigures]
    """Figures of the floor and the ceiling, even if the floor is among the strategies as well."""
    context_recall_interval: dict[str, Interval | Missing]
    """95 % intervals of `context_recall`, by resampling independent units."""
    kinds: dict[str, dict[str, ProbeFigures]]
    """Figures by kind of probe, then by strategy, bounds last; empty with one kind only."""
    retrieval: dict[str, dict[str, dict[str, Value]]]
    """Ranking measures of the strategies that recall messages: by strategy, then by kind, `all` first."""
    failed: list[dict[str, str]]  # probes without a context: conversation, strategy, probe, detail


def probes_of(run: Run, uneven: frozenset[str], lost: Sequence[str]) -> ProbeSummary | None:
    """Return the figures of a run's probes, or None if it has none.

    `uneven` are conversations that some strategy did not finish, `lost` the strategies that finished none.
    """
    rows = run.arrow("probes").select(_COLUMNS).to_pandas()
    if rows.empty:
        return None
    rows = rows.assign(strategy=rows.strategy.astype(str), category=rows.category.astype(str).replace("", _NO_KIND))
    broken = rows[rows.failed != ""]
    tried, failed = rows.strategy.value_counts(), broken.strategy.value_counts()
    taking_part = [name for name in run.manifest.plan.strategies if name not in lost]
    names = [name for name in taking_part if tried.get(name, 0) != failed.get(name, 0)]
    out = uneven | set(broken.conversation[broken.strategy.isin([*names, FLOOR, CEILING])].astype(str))
    common = rows[~rows.conversation.isin(out)]
    everyone = list(dict.fromkeys((*names, FLOOR, CEILING)))
    ceiling, ceiling_rows = common[common.strategy == CEILING], rows[rows.strategy == CEILING]
    kinds = sorted(set(ceiling.category)) if len(set(ceiling.category)) > 1 else []
    figures = _figures(common, everyone)
    whole, of = figures(None), {name: common[common.strategy == name] for name in everyone}
    return ProbeSummary(
        asked=len(ceiling_rows),
        conversations=ceiling_rows.conversation.nunique(),
        units=len(set(units_of(ceiling_rows, run.units))),
        compared=ceiling.conversation.nunique(),
        without_evidence=int((ceiling.evidence.map(len) == 0).sum()),
        strategies={name: whole[name] for name in names},
        bounds={name: whole[name] for name in (FLOOR, CEILING)},
        context_recall_interval={name: recall_interval(of[name], name, run.units) for name in everyone},
        kinds={kind: figures(kind) for kind in kinds},
        retrieval={name: _ranking(of[name], kinds) for name in names if of[name].recalled.notna().any()},
        failed=broken.rename(columns={"failed": "detail"})[[*KEYS, "probe", "detail"]].astype(str).to_dict("records"),
    )


def _figures(rows: pd.DataFrame, names: Sequence[str]) -> Callable[[str | None], dict[str, ProbeFigures]]:
    """Return a function from a kind of probe, None = all, to each strategy's figures. Their parts are found once."""
    ratios = {name: of for name in OF_PROBES if isinstance(of := METRICS[name].of, Ratio)}
    parts = {name: of.parts(rows) for name, of in ratios.items()}

    def by_strategy(kind: str | None) -> dict[str, ProbeFigures]:
        of_kind = True if kind is None else rows.category.to_numpy() == kind
        places = {name: np.flatnonzero((rows.strategy.to_numpy() == name) & of_kind) for name in names}
        figures: dict[str, ProbeFigures] = {
            name: {"probes": len(at)}
            | {key: ratios[key].over(top[at], below[at]) for key, (top, below) in parts.items()}
            | {"tokens": float(rows.tokens_sent.iloc[at].mean()) if len(at) else Missing("undefined", "no probe")}
            for name, at in places.items()
        }
        return figures

    return by_strategy


def _ranking(rows: pd.DataFrame, kinds: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Return the ranking measures of a strategy, over its probes with evidence, by kind."""
    rows = rows[rows.evidence.map(len) > 0]
    rankings = [[] if recalled is None else list(recalled) for recalled in rows.recalled]
    scores = pd.DataFrame(ranked(rankings, [set(evidence) for evidence in rows.evidence]), columns=list(MEASURES))
    by_kind = {"all": scores, **{kind: scores[(rows.category == kind).to_numpy()] for kind in kinds}}
    none = Missing("undefined", "no probe has evidence")
    return {
        kind: {name: float(part[name].mean()) if len(part) else none for name in MEASURES}
        for kind, part in by_kind.items()
    }


_INTERVAL = Column("95 % interval", "interval", share_range, spare=4)
# Shorter words than the names of the metrics, for what became of the evidence.
_FIGURES = (
    metric_column("evidence_partial", "partial"),
    metric_column("evidence_summary", "in a summary"),
    metric_column("evidence_loadable", "loadable", spare=5),
    metric_column("evidence_absent", "absent", spare=2),
    metric_column("answer_in_context", spare=6),
    metric_column("evidence_place", "position", spare=1),
    metric_column("evidence_density", spare=3),
)
_RECALL = metric_column("context_recall")
_MOST_FAILED = 10


def tables(summary: ProbeSummary) -> Iterator[Table]:
    """Yield the tables of the strategies, bounds, kinds of probes, rankings and failures."""

    def rows(figures: Mapping[str, ProbeFigures]) -> list[dict[str, object]]:
        intervals = summary.context_recall_interval
        return [{"strategy": name, "interval": intervals[name], **of} for name, of in figures.items()]

    columns = (_RECALL, _INTERVAL, *_FIGURES)
    title = f"Is the evidence sent? {count(summary.asked, 'probe')} in {sample(summary.conversations, summary.units)}"
    notes = [about("probes_recall"), about("probes_means")]
    if summary.compared < summary.conversations:
        whole = count(summary.conversations, "conversation")
        notes.append(about("probes_compared", compared=summary.compared, whole=whole))
    if number := summary.without_evidence:
        notes.append(about("probes_without", probes=count(number, "probe has", "probes have")))
    yield table_of(title, (STRATEGY, *columns), rows(summary.strategies), notes)
    bounds, of_bounds = (Column("bound", "strategy"), *columns), rows(summary.bounds)
    yield table_of("What are the bounds of context recall?", bounds, of_bounds, [about("probes_bounds")])
    if summary.kinds:
        of_kinds = [{"kind": kind, **row} for kind, figures in summary.kinds.items() for row in rows(figures)]
        of_kinds = [row for row in of_kinds if not isinstance(row["context_recall"], Missing)]
        names = (Column("kind", "kind"), STRATEGY, Column("probes", "probes", integer))
        yield table_of("Which kinds of probes lose their evidence?", (*names, _RECALL, *_FIGURES), of_kinds, names=2)
    if summary.retrieval:
        rankings = [
            {"strategy": name, "kind": kind, **values}
            for name, of in summary.retrieval.items()
            for kind, values in of.items()
            if not all(isinstance(value, Missing) for value in values.values())
        ]
        ranked_by = (STRATEGY, Column("kind", "kind"), *(Column(name, name, percent) for name in MEASURES))
        yield table_of("How well is the evidence ranked?", ranked_by, rankings, [about("probes_ranking")], names=2)
    if summary.failed:
        failed = [(row["strategy"], row["detail"], f"{row['conversation']} {row['probe']}") for row in summary.failed]
        yield failures_table("Probes without a context", "probes", failed, _MOST_FAILED)


def failures_table(title: str, what: str, failed: Iterable[tuple[str, str, str]], most: int | None = None) -> Table:
    """Return how often each strategy failed, by reason, with an example; `failed` is strategy, reason, example."""
    groups: dict[tuple[str, str], list[str]] = {}
    for strategy, why, one in failed:
        groups.setdefault((strategy, why), []).append(one)
    rows = [(strategy, integer(len(which)), which[0], why) for (strategy, why), which in groups.items()]
    shown = tuple(rows[:most])
    notes = [f"{count(len(rows) - len(shown), 'more reason')}: all are in --json."] * (len(shown) < len(rows))
    return Table(title, ("strategy", what, "for example", "why"), shown, tuple(notes), prose=True)
