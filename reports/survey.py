"""The survey of libraries' strategies: a row per strategy, then the recordings, digests and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.harness.compare.figures import MeasuredRun
from ctxbench.harness.folder.run import Run
from ctxbench.metrics.figures import METRICS, fixed
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION, Ends, by_unit, resampled
from ctxbench.metrics.value import Form, Missing, Value, value

from .render import MARKS, Table, count, figure, percent, shares

_LACKS, _FAILED = MARKS
_BILLED = ("cache_hit_rate", "cost_saving")
_SHARES = ("grounding", "constraint_recall")
_COUNTS = ("rejected_openai", "rejected_anthropic", "latency_p50")
REFETCHED = "cost_saving_with_refetch"
"""The share of the whole history's cost that is not spent, with `cost_with_refetch` for `cost`."""


@dataclass(frozen=True)
class Survey:
    """A run of the strategies of a survey, measured."""

    run: Run
    measured: MeasuredRun
    model: str
    """The model under which costs are."""
    brought_by: Mapping[str, str]
    """By strategy: what brings it, with its version."""
    inputs: Sequence[str]
    """Names of the recordings' folders."""
    left_out: Sequence[str]
    """Strategies that cannot run here, a line each with the reason."""

    def figure(self, strategy: str, metric: str) -> SurveyFigure:
        """Return a figure over the conversations that the strategy finished, with its 95 % interval."""
        sums, form = self._sums(strategy, metric)
        if isinstance(sums, Missing):
            return SurveyFigure(sums, sums)
        units = [self.run.units.get(name, name) for name in self.measured.digests]
        finished = np.flatnonzero(~np.isnan(sums).any(axis=1))
        if not len(finished):
            return SurveyFigure(Missing("failed", "in every conversation"), Missing("failed"))
        top, bottom = (float(total) for total in sums[finished].sum(axis=0))
        if form != "total" and not bottom:
            return SurveyFigure(Missing("undefined", "nothing to measure"), Missing("undefined"))
        if fixed(metric, strategy) is not None:
            return SurveyFigure(value(form, top, bottom), BY_CONSTRUCTION)
        units_finished = [units[at] for at in finished.tolist()]
        drawn = resampled(by_unit(sums[finished], units_finished), lambda drawn: _of(form, drawn))
        return SurveyFigure(value(form, top, bottom), drawn if isinstance(drawn, Missing) else drawn.interval())

    def _sums(self, strategy: str, metric: str) -> tuple[NDArray[np.float64] | Missing, Form]:
        figures = self.measured.sums[strategy]
        if metric == REFETCHED:
            spent, base = (figures.get(f"{name}({self.model})") for name in ("cost_with_refetch", "cost_saving"))
            if spent is None or base is None:
                return Missing("undefined", "nothing to measure"), "saving"
            return np.stack([spent[:, 0], base[:, 1]], axis=1), "saving"
        name = f"{metric}({self.model})" if metric in _BILLED else metric
        sums = figures.get(name)
        if sums is None:
            return Missing("undefined", "nothing to measure"), "ratio"
        return sums, self.measured.metrics[name].form


class SurveyFigure(NamedTuple):
    """A figure and its 95 % interval."""

    value: Value
    interval: Ends | Missing


def _of(form: Form, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        shares: NDArray[np.float64] = sums[..., 0] / sums[..., 1]
    return 1 - shares if form == "saving" else sums[..., 0] if form == "total" else shares


def tables(survey: Survey) -> list[Table]:
    """Return the table of strategies, then what it was measured on and by which versions."""
    return [_strategies(survey), _recordings(survey)]


def as_json(survey: Survey) -> dict[str, Any]:
    """Return the exact figures of the survey."""
    manifest = survey.run.manifest
    return {
        "model": survey.model,
        "strategies": {
            name: {
                "brought_by": survey.brought_by[name],
                "failed": dict(survey.measured.failed.get(name, {})),
                **{metric: _exact(survey.figure(name, metric)) for metric in _METRICS},
            }
            for name in manifest.plan.strategies
        },
        "recordings": [
            {"name": name, "conversations": conversations, "calls": calls, "digest": digest}
            for name, conversations, calls, digest in _sources(survey)
        ],
        "versions": manifest.versions,
        "left_out": list(survey.left_out),
    }


_METRICS = ("saving", "prefix_reuse", *_BILLED, REFETCHED, *_SHARES, *_COUNTS, "without_newest")


def _exact(shown: SurveyFigure) -> dict[str, Any]:
    number = None if isinstance(shown.value, Missing) else shown.value
    interval = None if isinstance(shown.interval, Missing) else list(shown.interval)
    return {"value": number, "interval": interval}


def _strategies(survey: Survey) -> Table:
    heads = (
        *(
            "strategy",
            "brought by",
            "saved",
            "95 %",
            METRICS["prefix_reuse"].name,
            "cache hit rate",
            "cost saved",
            "95 %",
        ),
        *("cost saved with re-fetching (model)", *(METRICS[name].name for name in _SHARES)),
        *("rejected by OpenAI, Anthropic", METRICS["latency_p50"].name),
    )
    rows = tuple(_row(survey, name) for name in survey.run.manifest.plan.strategies)
    notes = [
        "Saved: share of the whole history's tokens that is not sent. Cost saved: share of its bill under "
        f"{survey.model}, cached as well, that is not spent, the strategy's own model calls included; what `offline` "
        "summarised is charged at that model's price. 95 %: intervals over conversations.",
        "With re-fetching is a model, no measurement: each call whose context lacks what the recorded model used next "
        "is charged a further call that reads it again (docs/metrics.md).",
        "Grounding recall: values that the recorded model used next and that are still in the context. Constraint "
        "recall: rules of system and user that are. Rejected: calls that the provider's rules forbid.",
    ]
    if any(_lacks(survey, name) for name in survey.run.manifest.plan.strategies):
        notes.append(f"{_LACKS} Part of this saving comes from calls that lack the newest message.")
    for name, failed in survey.measured.failed.items():
        why = next(iter(failed.values()))
        notes.append(f"{_FAILED} {name} failed in {count(len(failed), 'conversation')}: {why}")
    calls = sum(calls for _, _, calls, _ in _sources(survey))
    title = f"{count(len(survey.measured.digests), 'conversation')}, {count(calls, 'model call')}"
    return Table(title, heads, rows, (*notes, *survey.left_out), names=2, spare=(heads[1], heads[4], heads[-1]))


def _row(survey: Survey, name: str) -> tuple[str, ...]:
    figures = {metric: survey.figure(name, metric) for metric in _METRICS}
    saved, cost = figures["saving"], figures["cost_saving"]
    rejected = " / ".join(figure(key, _whole(figures[key].value)) for key in _COUNTS[:2])
    return (
        name + f" {_FAILED}" * (name in survey.measured.failed),
        survey.brought_by[name],
        percent(saved.value) + _LACKS * _lacks(survey, name),
        _range(saved.interval),
        percent(figures["prefix_reuse"].value),
        percent(figures["cache_hit_rate"].value),
        percent(cost.value) + _LACKS * _lacks(survey, name),
        _range(cost.interval),
        percent(figures[REFETCHED].value),
        *(percent(figures[key].value) for key in _SHARES),
        rejected,
        figure("latency_p50", figures["latency_p50"].value),
    )


def _whole(number: Value) -> Value:
    return number if isinstance(number, Missing) else int(number)


def _lacks(survey: Survey, name: str) -> bool:
    lacking = survey.figure(name, "without_newest").value
    return not isinstance(lacking, Missing) and lacking > 0


def _range(interval: Ends | Missing) -> str:
    return "–" if isinstance(interval, Missing) else shares(*interval)


def _recordings(survey: Survey) -> Table:
    manifest = survey.run.manifest
    rows = [
        (name, f"{conversations:,}", f"{calls:,}", digest) for name, conversations, calls, digest in _sources(survey)
    ]
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items() if " " not in name)
    command = "`ctxbench lab survey`, with CTXBENCH_RECORDINGS set to the folder of the recordings"
    return Table(
        "What was it measured on?",
        ("recordings", "conversations", "model calls", "SHA-256 of the conversations"),
        tuple(rows),
        (f"Versions: {versions}.", f"Command: {command}."),
    )


def _sources(survey: Survey) -> Iterator[tuple[str, int, int, str]]:
    """Yield for each folder of recordings its name, conversations, model calls and the start of a digest of them."""
    rows = survey.run.table("conversations")
    folders = [next((name for name in survey.inputs if f"{name}/" in f"/{source}/"), "") for source in rows.source]
    for name in dict.fromkeys(folders):
        inside = rows[[folder == name for folder in folders]]
        digest = sha256("\n".join(inside.digest.astype(str)).encode()).hexdigest()
        yield name or ", ".join(survey.inputs), len(inside), int(inside.calls.sum()), digest[:16]
