"""The verdict on a run and the answer of its gate, as objects that print, show in notebooks and stand in assertions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from ctxbench.harness.answers.figures import WHOLE
from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.compare.compare import Rules, RunComparison, compare, on_one_side, usual_rules
from ctxbench.harness.compare.figures import MeasuredRun, billed_model, measured_by_name, worst_step
from ctxbench.harness.compare.gate import Gate, GatePolicy, Result, gate, read_baseline, read_policy, update_command
from ctxbench.harness.folder.run import Run
from ctxbench.harness.folder.schema import with_recipe_names
from ctxbench.harness.live import MEASURES, LiveRuns
from ctxbench.metrics.figures import METRICS, OWN, OWN_VERSION, metric_of
from ctxbench.metrics.statistics.intervals import FEWEST
from ctxbench.metrics.value import Missing, Value
from ctxbench.reports.compare import Look, as_json, gate_tables
from ctxbench.reports.live import live_tables
from ctxbench.reports.render import Table, html, plain
from ctxbench.reports.results import Results
from ctxbench.reports.tables import incomplete
from ctxbench.reports.verdict import ROUNDING, Place, RunVerdict, verdict
from ctxbench.reports.verdict_text import first_screen, how_sure, if_live, points_in_words, tags, too_few, why_placed
from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.chain import StrategyLike

from .names import MetricLike, check_known, find_strategy, metric_keys, short_traces

MORE = "report() of the run writes it as a page"
"""How to see all figures of a run in a temporary folder, which no command will find."""


class _Shown:
    """Something that prints as tables, and that a notebook shows as such."""

    @property
    def tables(self) -> list[Table]:
        """The tables that the command prints."""
        raise NotImplementedError

    @property
    def headline(self) -> str:
        """The answer in one sentence, with its figures."""
        return self.tables[0].title

    def __str__(self) -> str:
        return plain(self.tables)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def _repr_html_(self) -> str:
        return html(self.tables)


@short_traces
class BenchmarkVerdict(_Shown):
    """Verdict on a run: the strategy to ship, and how sure that is.

    `print(verdict)` prints what `ctxbench report` prints; a notebook shows the same as tables. In a test:

        assert not run.verdict().objections("retrieval")
    """

    def __init__(self, places: RunVerdict, more: str = "") -> None:
        self._places, self._more = places, more

    @property
    def ship(self) -> str | None:
        """The strategy to use; None where no strategy that can be counted on costs less and loses little enough."""
        return self._places.shipped

    @property
    def is_sure(self) -> bool:
        """Whether that strategy surely (95 %) loses no more than accepted elsewhere too, at a cost not open there.

        It is not sure either where published live runs of its family made more calls than leave a saving.
        """
        return self._places.is_sure

    @property
    def places(self) -> Mapping[str, Place]:
        """The one place of each strategy: chosen, frontier, beaten, doubtful, broken, bound or unknown."""
        return self._places.places

    def choice(self, points: float) -> str:
        """Return the strategy to choose if so many points of quality may be lost: the cheapest, else the whole history.

        With too few units it is what was cheapest here. Raises RunError where nothing is comparable with the history.
        """
        if not self._places.is_comparable:
            raise RunError("no strategy can be compared with the whole history: print the verdict to see why")
        return self._places.choice(points)

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
        """The cheapest strategies for their quality, the most expensive first: the chosen one is among them."""
        return tuple(self._places.best)

    @property
    def breaks(self) -> Mapping[str, Sequence[str]]:
        """Map from each strategy that breaks more than the whole history to what it breaks; others are left out.

        `breaks["window(max_tokens=8000)"]` is `["newest dropped: 22"]`.
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
        cheaper_in      number of conversations in which it costs less than the whole history
        place           its place (`places`)
        on_frontier     whether it is among `frontier`
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
            "cheaper_in": places.cheaper_in(name) if is_compared else nan,
            "place": places.places[name],
            "on_frontier": name in self.frontier,
            "breaks": "; ".join(places.broken.get(name, ())),
        }

    def objections(self, strategy: StrategyLike) -> list[str]:
        """Return what speaks against using a strategy in place of the whole history; an empty list if nothing does.

        That is what it breaks, that it did not cost less here, or not without a single unit, that it lost more than
        accepted here, that it may elsewhere, and that published live runs of its family made more calls than leave a
        saving. Raises RunError for a strategy that is not in the run.
        """
        places = self._places
        if strategy not in places.results.strategies:
            strategy = find_strategy(places.results.run, strategy)
        if strategy == WHOLE:
            return []
        objections = list(places.broken.get(strategy, ()))
        if not {WHOLE, strategy} <= places.points.keys():
            value, why = places.values[strategy], f"it is a {places.places[strategy]}"
            if WHOLE not in places.results.strategies:
                why = "the whole history was not run"
            elif isinstance(value, Missing):
                why = f"{self.quality} is not known ({value.detail or value.why})"
            elif isnan(places.cost(strategy)):
                why = f"its bill under {self.model} is not known"
            return [*objections, f"it cannot be compared with {WHOLE}: {why}"]
        if places.units < FEWEST:
            return [*objections, too_few(places)]
        point, whole = places.points[strategy], places.points[WHOLE]
        if point.cost >= whole.cost and not point.dominates(whole):
            objections.append("it did not cost less here")
        if strategy in places.doubts:
            objections.append(why_placed(places, strategy))
        if (lost := whole.quality - point.quality) > places.accepted + ROUNDING:
            accepted = points_in_words(places.results.lose)
            objections.append(f"it lost {100 * lost:.1f} points here: {accepted} are accepted")
        elif not places.is_sure_of(strategy):
            objections.append(f"elsewhere: {how_sure(places, strategy)}")
        if condition := if_live(places, strategy):
            objections.append(condition)
        return [*map(with_recipe_names, objections)]

    @property
    def tables(self) -> list[Table]:
        """The tables that `ctxbench report` prints."""
        places = self._places
        return [*first_screen(places, self._more), *incomplete(places.results.summary)]

    @staticmethod
    def logged(results: Results) -> tuple[dict[str, str], str]:
        """Return the verdict on a run as a tracker has it: as tags and as text."""

        def make() -> bytes:
            places = verdict(results)
            return msgspec.msgpack.encode((tags(places), str(BenchmarkVerdict(places, "report/report.html"))))

        return msgspec.msgpack.decode(results.kept("verdict", make), type=tuple[dict[str, str], str])


def _number(value: Value) -> float:
    return nan if isinstance(value, Missing) else float(value)


class BenchmarkGate(_Shown):
    """Answer of the gate: whether a run is as good as its baseline, as in `assert run.gate("baseline.json").passes`."""

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


class BenchmarkLive(_Shown):
    """Comparison of an agent's live runs before and after a change; it prints what `ctxbench live` prints."""

    def __init__(self, found: LiveRuns) -> None:
        self.found = found

    @property
    def figures(self) -> pd.DataFrame:
        """One row per measure: before, after, change with its 95 % interval, tasks needed; NaN where it is not known.

        The change is a share of `before`, but for counts (`repeated`) and shares (`solved`) the plain difference.
        """
        named = {tuple(name.split("/")[1:]): value for name, value in self.found.numbers().items()}
        frame = pd.Series({name: value for name, value in named.items() if len(name) == 2}).unstack()
        return frame.reindex([*MEASURES], columns=["before", "after", "change", "low", "high", "tasks_needed"])

    @property
    def tables(self) -> list[Table]:
        """The tables that `ctxbench live` prints."""
        return live_tables(self.found)


def gate_of(run: Run, baseline: Path, policy: Path | None = None, metrics: Sequence[str] = ()) -> BenchmarkGate:
    """Compare a run with a baseline file, which has `metrics`, under a policy file, as `ctxbench gate` does."""
    before = read_baseline(baseline)
    own = [name for name, about in before.metrics.items() if about.version.startswith(OWN_VERSION)]
    keys = [name.partition("(")[0] for name in before.metrics]
    if unguarded := [name for name in metrics if name not in keys]:
        how = update_command(baseline, str(run.folder))
        raise RunError(f"{baseline}: {', '.join(unguarded)} is not in it, so it is not guarded: {how}")
    if lacking := [name for name in own if metric_of(name) is None]:
        how = f"define it with @ctxbench.metric, or give its file: --metric FILE.py:{lacking[0]}"
        raise RunError(f"{baseline}: {', '.join(lacking)} is a metric of your own that is not known here: {how}")
    texts = {run.manifest.name_of(text): text for text in run.manifest.plan.strategies}
    rules = GatePolicy() if policy is None else read_policy(policy, before.metrics, [*before.sums, *texts])
    models = {name: billed_model(name) for name in before.metrics}
    guarded = [model for name, model in models.items() if model and rules.rule(name, before.metrics[name])]
    after = measured_by_name(run, list(dict.fromkeys(guarded)), named=keys)  # a bill that nothing guards is not made

    def look(metric: str, conversation: str, strategy: str) -> int | None:
        return worst_step(run, metric, conversation, texts[strategy])

    return BenchmarkGate(gate(before, after, rules), look)


def compared_models(run: Run, named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the models whose bill is compared: those named, by default `billed_models`; `none` stands for no bill."""
    return () if list(named) == ["none"] else billed_models(run, named)


def comparison_of(
    before: Run,
    after: Run | None = None,
    against: StrategyLike = WHOLE,
    strategies: Sequence[StrategyLike] = (),
    metrics: Sequence[MetricLike] = (),
    models: Sequence[str] = (),
    clock: bool = False,
) -> tuple[RunComparison, tuple[str, str]]:
    """Compare two runs, or without another one the strategies of a run; return the titles of both sides too.

    Raises RunError for a strategy that was not run, SpecError for an unknown metric.
    """
    later, keys = before if after is None else after, metric_keys(metrics)
    texts = [find_strategy(later, name) for name in strategies] or later.manifest.plan.strategies
    names = list(dict.fromkeys(map(later.manifest.name_of, texts)))
    one = measured_by_name(before, compared_models(before, models), clock, keys)
    if after is None:
        base = before.manifest.name_of(find_strategy(before, against))
        pairs = [(name, base) for name in names if name != base]
        if not pairs:
            raise RunError(f"{before.folder}: {base} alone has nothing to be compared with: name another run")
        return compare(one, one, pairs, _rules(one, keys)), (base, "with it")
    two = measured_by_name(after, compared_models(after, models), clock, keys)
    compared = compare(one, two, [(name, name) for name in names if name in one.sums], _rules(two, keys))
    # A strategy that only one run has is no news to who named the strategies to compare.
    apart = [] if strategies else on_one_side("strategy", one, two)
    return replace(compared, unpaired=(*apart, *compared.unpaired)), ("before", "after")


def _rules(figures: MeasuredRun, metrics: Sequence[str]) -> Rules:
    """Return usual margins of some metrics, `cost` under each model, or of all. Raises SpecError for an unknown one."""
    names = [name for key in metrics for name in [of for of in figures.metrics if of.startswith(f"{key}(")] or [key]]
    check_known(names, [*figures.metrics, *METRICS, *OWN])
    return usual_rules(names)


class ComparisonFrame(pd.DataFrame):
    """A comparison as a data frame, of which a terminal and a notebook show what decides."""

    def __repr__(self) -> str:
        return str(self._deciding.to_string(**_LOOK))

    def _repr_html_(self) -> str:
        return str(self._deciding.to_html(**_LOOK))

    @property
    def _deciding(self) -> pd.DataFrame:
        columns = ["strategy", "metric", "before", "after", "difference", "low", "high", "verdict"]
        return pd.DataFrame(self).filter(items=columns)


_LOOK: Any = {"index": False, "max_rows": 60, "float_format": lambda of: f"{of:,.{3 * (abs(of) < 1000)}f}"}


def comparison_frame(compared: RunComparison) -> pd.DataFrame:
    """Return a comparison as a data frame: a row per strategy and metric, with its verdict, figures and difference.

    `better_in` and `worse_in` count conversations here; the verdict and the interval are for others.
    `low` and `high` are the 95 % interval of `difference`, which is a share of `before` where `relative` says so.
    `attrs["unpaired"]` names the conversations and strategies that only one side has.
    """
    rows, about = [], ("strategy", "against", "metric", "unit", "verdict", "why", "better_in", "worse_in")
    for row in as_json(compared)["comparisons"]:
        interval = row.get("interval_95")
        ends = interval if isinstance(interval, dict) else {"low": nan, "high": nan}
        figures = {name: _number(row.get(name, nan)) for name in ("before", "after", "difference")}
        changes = {"relative": row.get("relative", False), **ends, "p": _number(row.get("p_adjusted", nan))}
        rows.append({name: row[name] for name in about} | figures | changes)
    frame = ComparisonFrame(rows)
    frame.attrs["unpaired"] = [f"{group.word}: {group.what} {', '.join(group.names)}" for group in compared.unpaired]
    return frame
