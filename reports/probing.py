"""The probes of a run in figures: what each strategy sends of what answers rest on, without any model.

Strategies are compared over the conversations that all of them finished and had a context for every probe of. Bounds
stand apart and are never ranked: `last_turn` is the floor, `evidence_only`, which is told the evidence, the ceiling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from ..harness.loading import Run
from ..harness.probing import CEILING, FLOOR
from ..metrics.figures import METRICS, OF_PROBES
from ..metrics.ranking import MEASURES, ranked
from ..metrics.statistics.bootstrap import Ends, interval
from ..metrics.statistics.interval import Interval
from ..metrics.statistics.shares import of_share
from ..metrics.value import Missing, Value

COLUMNS = [
    *("conversation", "strategy", "probe", "category", "failed", "evidence", "recalled", "tokens_sent"),
    *("evidence_state", "evidence_tokens", "evidence_place", "answer"),
]
"""What the figures are made of: the texts of the contexts are left where they are."""

NO_KIND = "(no kind)"
"""For probes whose recording does not say what kind they are."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One strategy, over all probes that are compared or those of one kind."""

    probes: int
    values: dict[str, Value]
    """By the names of `figures.OF_PROBES`."""
    retention: Value
    """Of what the ceiling sends of the evidence and the floor does not, the share that is sent."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of a run."""

    asked: int
    conversations: int
    compared: int
    """Conversations that are compared: all figures are over their probes."""
    without_evidence: int
    """Of the probes compared, those that rest on nothing that was said: most of them cannot be answered."""
    strategies: dict[str, Figures]
    bounds: dict[str, Figures]
    """The floor and the ceiling, whether or not the floor is among the strategies as well."""
    intervals: dict[str, Interval | Missing]
    """Of `evidence_sent` over all probes, over whole conversations."""
    kinds: dict[str, dict[str, Figures]] = field(default_factory=dict)
    """By kind, then by strategy, bounds last."""
    retrieval: dict[str, dict[str, dict[str, Value]]] = field(default_factory=dict)
    """Of the strategies that recall messages: by strategy, then by kind (empty = all), each measure."""
    failed: list[dict[str, str]] = field(default_factory=list)
    """Probes for which nothing was sent: conversation, strategy, probe, detail."""


def probes_of(run: Run, uneven: frozenset[str], lost: Sequence[str]) -> Probes | None:
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
    return Probes(
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


def _by_strategy(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, Figures]:
    found = {name: rows[rows.strategy == name] for name in names}
    values = {name: {each: METRICS[each].of(of) for each in OF_PROBES} for name, of in found.items()}
    floor, ceiling = (values[name]["evidence_sent"] for name in (FLOOR, CEILING))
    return {
        name: Figures(len(of), values[name], retention(values[name]["evidence_sent"], floor, ceiling))
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


def retention(value: Value, floor: Value, ceiling: Value) -> Value:
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


def as_json(found: Probes | None) -> dict[str, object] | None:
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


def _json(figures: Mapping[str, Figures]) -> dict[str, object]:
    return {
        name: {
            "probes": of.probes,
            **of.values,
            "effective_retention": of.retention,
        }
        for name, of in figures.items()
    }
