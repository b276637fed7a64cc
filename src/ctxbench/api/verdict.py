"""The verdict on a run and the answer of its gate, as objects that print, show in notebooks and stand in assertions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import isnan, nan
from pathlib import Path

import pandas as pd

from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.compare.compare import Rules, RunComparison, compare, usual_rules
from ctxbench.harness.compare.compare import strategies as on_one_side
from ctxbench.harness.compare.figures import MeasuredRun, billed_model, measured_by_name, worst_step
from ctxbench.harness.compare.gate import Gate, GatePolicy, Result, gate, read_baseline, read_policy
from ctxbench.harness.folder.run import Run
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Missing, Value
from ctxbench.reports.compare import Look, as_json, gate_tables
from ctxbench.reports.render import Table, html, percent, plain
from ctxbench.reports.tables import incomplete
from ctxbench.reports.verdict import FEWEST, SURE, WHOLE, RunVerdict
from ctxbench.reports.verdict_text import accepted_points, answer, five_measures, less, too_few
from ctxbench.scenarios.errors import RunError, SpecError
from ctxbench.scenarios.spec import nearest, suggestion

from .names import find_strategy

MORE = "report() of the run writes it as a page"
"""How to see all figures of a run in a temporary folder, which no command will find."""


class _Shown:
    """Something that prints as tables, and that a notebook shows as such."""

    @property
    def tables(self) -> list[Table]:
        """The tables that the command prints."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain(self.tables)

    def _repr_html_(self) -> str:
        return html(self.tables)


class BenchmarkVerdict(_Shown):
    """Verdict on a run: the strategy to ship, and how sure that is.

    `print(verdict)` prints what `ctxbench report` prints; a notebook shows the same as tables. In a test:

        assert not run.verdict().objections("retrieval")
    """

    def __init__(self, places: RunVerdict, more: str = "") -> None:
        self._places, self._more = places, more

    @property
    def ship(self) -> str | None:
        """The strategy to ship; None where no strategy is sure to keep the quality for less."""
        return self._places.shipped

    @property
    def model(self) -> str:
        """The model whose bill counts."""
        return self._places.model

    @property
    def quality(self) -> str:
        """Display name of the measure of quality, the best that the run has."""
        return self._places.quality.name

    @property
    def frontier(self) -> tuple[str, ...]:
        """Strategies worth choosing, the most expensive first: every other one costs more without being better."""
        return tuple(self._places.best)

    @property
    def breaks(self) -> Mapping[str, Sequence[str]]:
        """Map from each strategy that breaks more than the whole history to what it breaks; others are left out.

        `breaks["window(max_tokens=8000)"]` is `["newest message missing: 22"]`.
        """
        return self._places.broken

    @cached_property
    def figures(self) -> pd.DataFrame:
        """One row per strategy, in the order of the run.

        cost            US dollars under `model`, with the strategy's own calls
        quality         share, of the measure `quality`
        cost_saved      share of the whole history's bill that is saved
        tokens_saved    share of the whole history's tokens that is saved, own model calls included
        quality_gain    quality less that of the whole history: 0.02 is two points more
        sure            share of the resamples in which it costs less and loses no more than accepted
        on_frontier     whether it is worth choosing
        breaks          what it breaks, in words; an empty text for nothing

        `cost_saved`, `tokens_saved` and `quality_gain` have columns `_low` and `_high` with their 95 % interval. NaN
        where a figure is not known, and in the row of the whole history.
        """
        names = self._places.results.strategies
        return pd.DataFrame([self._row(name) for name in names], index=pd.Index(names, name="strategy"))

    def _row(self, name: str) -> dict[str, object]:
        places = self._places
        is_compared = {name, WHOLE} <= places.points.keys() and name != WHOLE
        row: dict[str, object] = {"cost": places.cost(name), "quality": _number(places.values[name])}
        for key, change, sign in (
            ("cost_saved", places.cost_change, -1),
            ("tokens_saved", places.token_change, -1),
            ("quality_gain", lambda name: places.gain(name, WHOLE), 1),
        ):
            found = change(name) if is_compared else None
            ends = found.shown if found is not None and not isinstance(found.shown, Missing) else (nan, nan)
            low, high = [0.0 + sign * end for end in ends][::sign]
            row[key] = nan if found is None else 0.0 + sign * _number(found.value)
            row |= {f"{key}_low": low, f"{key}_high": high}
        return row | {
            "sure": places.keeps.get(name, nan),
            "on_frontier": name in self.frontier,
            "breaks": "; ".join(places.broken.get(name, ())),
        }

    def objections(self, strategy: str) -> list[str]:
        """Return what speaks against shipping a strategy in place of the whole history; an empty list if nothing does.

        That is what it breaks, and that it is not sure to cost less and to lose no more quality than accepted: at most
        5 points, and a tenth of what the whole history has. Raises RunError for a strategy that is not in the run.
        """
        places = self._places
        if strategy not in places.results.strategies:
            close = nearest(strategy, dict.fromkeys(places.results.strategies))
            known = close or f"; it has {', '.join(places.results.strategies)}"
            raise RunError(f"{strategy!r} is not in the run{known}")
        objections = list(places.broken.get(strategy, ()))
        if strategy == WHOLE:
            return objections
        if places.units < FEWEST:
            return [*objections, too_few(places)]
        sure, value = places.keeps.get(strategy, nan), places.values[strategy]
        if isnan(sure):
            why = "one conversation has no interval"
            if WHOLE not in places.results.strategies:
                why = "the whole history was not run"
            elif isinstance(value, Missing):
                why = f"{self.quality} is not known ({value.detail or value.why})"
            objections.append(f"it cannot be compared with {WHOLE}: {why}")
        elif sure < SURE:
            shown = f"cheaper, and at most {accepted_points(places)} worse, in {percent(sure)} of the resamples"
            objections.append(f"{shown}: {100 * SURE:g} % are needed")
        elif not places.is_cheaper(strategy):
            objections.append(f"few conversations decide its bill: it saves {less(places.cost_change(strategy))}")
        return objections

    @property
    def tables(self) -> list[Table]:
        """The tables that `ctxbench report` prints."""
        places = self._places
        return [answer(places, self._more), five_measures(places), *incomplete(places.results.summary)]

    def __repr__(self) -> str:
        return f"<BenchmarkVerdict: {answer(self._places).title}>"


def _number(value: Value) -> float:
    return nan if isinstance(value, Missing) else float(value)


class BenchmarkGate(_Shown):
    """The answer of the gate: whether a run is as good as its baseline."""

    def __init__(self, decision: Gate, look: Look) -> None:
        self.decision, self.look = decision, look

    @property
    def result(self) -> Result:
        """`passes` or `fails`."""
        return self.decision.result

    @property
    def passes(self) -> bool:
        """Whether the gate passes."""
        return self.result == "passes"

    @property
    def comparisons(self) -> pd.DataFrame:
        """One row per strategy and metric (`comparison_frame`)."""
        return comparison_frame(self.decision.compared)

    @property
    def tables(self) -> list[Table]:
        """The tables that `ctxbench gate` prints."""
        return list(gate_tables(self.decision, self.look))

    def __repr__(self) -> str:
        failing = ", ".join(f"{each.strategy}: {each.metric}" for each in self.decision.failing[:4])
        return f"<BenchmarkGate: {self.result}{' · ' * bool(failing)}{failing}>"


def gate_of(run: Run, baseline: Path, policy: Path | None = None) -> BenchmarkGate:
    """Compare a run with a baseline file under a policy file, as `ctxbench gate` does."""
    before = read_baseline(baseline)
    texts = {run.manifest.name_of(text): text for text in run.manifest.plan.strategies}
    rules = GatePolicy() if policy is None else read_policy(policy, before.metrics, [*before.sums, *texts])
    models = {name: billed_model(name) for name in before.metrics}
    guarded = [model for name, model in models.items() if model and rules.rule(name, before.metrics[name])]
    after = measured_by_name(run, list(dict.fromkeys(guarded)))  # a bill that nothing guards is not made

    def look(metric: str, conversation: str, strategy: str) -> int | None:
        return worst_step(run, metric, conversation, texts[strategy])

    return BenchmarkGate(gate(before, after, rules), look)


def compared_models(run: Run, named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the models whose bill is compared: those named, by default `billed_models`; `none` stands for no bill."""
    return () if list(named) == ["none"] else billed_models(run, named)


def comparison_of(
    before: Run,
    after: Run | None = None,
    against: str = WHOLE,
    strategies: Sequence[str] = (),
    metrics: Sequence[str] = (),
    models: Sequence[str] = (),
    clock: bool = False,
) -> tuple[RunComparison, tuple[str, str]]:
    """Compare two runs, or without another one the strategies of a run; return the titles of both sides too.

    Raises RunError for a strategy that was not run, SpecError for an unknown metric.
    """
    later = before if after is None else after
    texts = [find_strategy(later, name) for name in strategies] or later.manifest.plan.strategies
    names = list(dict.fromkeys(map(later.manifest.name_of, texts)))
    one = measured_by_name(before, compared_models(before, models), clock)
    if after is None:
        base = before.manifest.name_of(find_strategy(before, against))
        pairs = [(name, base) for name in names if name != base]
        if not pairs:
            raise RunError(f"{before.folder}: {base} alone has nothing to be compared with: name another run")
        return compare(one, one, pairs, _rules(one, metrics)), (base, "this")
    two = measured_by_name(after, compared_models(after, models), clock)
    compared = compare(one, two, [(name, name) for name in names if name in one.sums], _rules(two, metrics))
    # A strategy that only one run has is no news to who named the strategies to compare.
    apart = [] if strategies else on_one_side(one, two)
    return replace(compared, unpaired=(*apart, *compared.unpaired)), ("before", "after")


def _rules(figures: MeasuredRun, metrics: Sequence[str]) -> Rules:
    """Return the usual margins of some metrics, by default of all. Raises SpecError for an unknown one."""
    known = dict.fromkeys([*figures.metrics, *METRICS])
    for name in metrics:
        if name not in known:
            raise SpecError(f"unknown metric {name!r}{suggestion(name, known)}")
    return usual_rules(metrics)


def comparison_frame(compared: RunComparison) -> pd.DataFrame:
    """Return a comparison as a data frame: a row per strategy and metric, with its verdict, figures and difference.

    `low` and `high` are the 95 % interval of `difference`, which is a share of `before` where `relative` says so.
    `attrs["unpaired"]` names the conversations and strategies that only one side has.
    """
    rows, about = [], ("strategy", "against", "metric", "unit", "verdict", "why")
    for row in as_json(compared)["comparisons"]:
        interval = row.get("interval_95")
        ends = interval if isinstance(interval, dict) else {"low": nan, "high": nan}
        figures = {name: _number(row.get(name, nan)) for name in ("before", "after", "difference")}
        changes = {"relative": row.get("relative", False), **ends, "p": _number(row.get("p_adjusted", nan))}
        rows.append({name: row[name] for name in about} | figures | changes)
    frame = pd.DataFrame(rows)
    frame.attrs["unpaired"] = [f"{group.word}: {group.what} {', '.join(group.names)}" for group in compared.unpaired]
    return frame
