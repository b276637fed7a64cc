"""A run as trackers log it: a bench, and in it an entry for each strategy.

MLflow, Weights & Biases and TensorBoard write these rows. Figures are those of `ctxbench compare`, made of the same
sums in the same order, so that both agree to the last digit. As in the report they are over the conversations that
every strategy finished. A missing figure is no number: it is named with its reason.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd
from msgspec.structs import replace

from ctxbench.metrics.figures import growth
from ctxbench.metrics.prices import BUNDLED, Prices
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.secrets import without_secrets
from ctxbench.scenarios.spec import calls
from ctxbench.strategies.plugins import quote_files

from ..compare.figures import About, measured, overall
from ..folder.run import Run, uneven
from ..folder.schema import Manifest
from ..folder.steps import Rows
from ..folder.store import TABLES

GROWTH = ("tokens_full", "tokens_sent", "saving", "conversations")


class MetricPoint(NamedTuple):
    """One point of a curve."""

    name: str
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class LoggedStrategy:
    """One strategy as it is logged."""

    strategy: str
    parameters: Mapping[str, str]
    figures: Mapping[str, Value]
    curves: tuple[MetricPoint, ...]
    failed: Mapping[str, str]
    """Conversations in which it failed, and why."""

    @property
    def missing(self) -> dict[str, str]:
        """The missing figures, each with the reason."""
        missing = {name: value for name, value in self.figures.items() if isinstance(value, Missing)}
        return {
            name: f"{figure.why}: {figure.detail}" if figure.detail else figure.why for name, figure in missing.items()
        }

    @property
    def numbers(self) -> dict[str, float]:
        """The figures that are numbers."""
        return {name: value for name, value in self.figures.items() if not isinstance(value, Missing)}


@dataclass(frozen=True, slots=True)
class Data:
    """The recordings that were replayed."""

    name: str
    digest: str
    source: tuple[str, ...]
    profile: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bench:
    """A run as it is logged."""

    name: str
    identity: str
    """SHA-256 of all measurements, times included: a copy of a run is that run, and measuring again is another."""
    parameters: Mapping[str, str]
    versions: Mapping[str, str]
    sizes: Mapping[str, int]
    data: Data
    metrics: Mapping[str, About]
    entries: tuple[LoggedStrategy, ...]
    manifest: str
    """The run's manifest, as JSON."""
    is_private: bool
    """Whether a strategy has a secret parameter: files that show its text must not be logged."""


def bench(run: Run, rows: Rows, models: Sequence[str] = (), prices: Prices = BUNDLED) -> Bench:
    """Return what is logged of a run, billed under `models`. Raises RunError for a model without a price."""
    run_figures = measured(run, models, clock=True, prices=prices)
    conversations = run.table("conversations")
    strategies = run.manifest.plan.strategies
    left_out = uneven(run_figures.failed, len(conversations))
    figures = overall(run_figures)
    steps = rows(run, "steps")
    survival = rows(run, "survival")
    curves = _growth(steps[~steps.conversation.isin(left_out)])
    rounds = _rounds(survival[~survival.conversation.isin(left_out)])
    entries = []
    for name in strategies:
        failed = run_figures.failed.get(name, {})
        points = (*curves.get(name, ()), *rounds.get(name, ())) if len(failed) < len(conversations) else ()
        entries.append(LoggedStrategy(name, parameters(name), figures[name], points, failed))
    sizes = {
        "conversations": len(conversations),
        "compared": len(conversations) - len(left_out),
        "messages": int(conversations.messages.sum()),
        "calls": int(conversations.calls.sum()),
        "tokens": int(conversations.tokens.sum()),
        "strategies": len(strategies),
        "failed": sum(map(len, run_figures.failed.values())),
    }
    return Bench(
        run.folder.resolve().name,
        identity(run.folder),
        _plan(run.manifest),
        {name: without_secrets(version) for name, version in run.manifest.versions.items()},
        sizes,
        _data(run.manifest, sizes),
        run_figures.metrics,
        tuple(entries),
        _manifest(run.manifest, entries),
        any(HIDDEN in entry.parameters["strategy"] for entry in entries),
    )


def identity(folder: Path) -> str:
    """Return the SHA-256 of a run's bytes, without the files made of it later."""
    digest = hashlib.sha256((folder / "manifest.json").read_bytes())
    for table in TABLES:
        for path in sorted((folder / table).glob("*.*")):
            digest.update(f"{table}/{path.name}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _growth(steps: pd.DataFrame) -> dict[str, list[MetricPoint]]:
    """Return the tokens of a call by turn, for each strategy."""
    points: dict[str, list[MetricPoint]] = {}
    curve = growth(steps)
    for name in GROWTH:
        columns = (curve[column].tolist() for column in ("strategy", "turn", name))
        for strategy, turn, number in zip(*columns, strict=True):
            points.setdefault(str(strategy), []).append(MetricPoint(f"growth/{name}", int(turn), float(number)))
    return points


def _rounds(survival: pd.DataFrame) -> dict[str, list[MetricPoint]]:
    """Return the share of facts still in the summary after so many rounds of summarising, for each strategy."""
    sums = survival.groupby(["strategy", "age"], observed=True)[["values", "kept"]].sum()
    points: dict[str, list[MetricPoint]] = {}
    flat = sums.reset_index()
    columns = (flat[name].tolist() for name in ("strategy", "age", "values", "kept"))
    for strategy, age, values, surviving in zip(*columns, strict=True):
        if values:
            points.setdefault(str(strategy), []).append(MetricPoint("survival/by_round", int(age), surviving / values))
    return points


def _plan(manifest: Manifest) -> dict[str, str]:
    """Return the plan, without the strategies."""
    plan = {
        name: value
        for name, value in msgspec.to_builtins(manifest.plan).items()
        if name != "strategies" and value is not None
    }
    plan["recordings"] = ", ".join(plan.pop("names", ())) or "-"
    return {name: without_secrets(str(value)) for name, value in {**plan, "window": manifest.window}.items()}


def _manifest(manifest: Manifest, entries: Sequence[LoggedStrategy]) -> str:
    strategies = tuple(entry.parameters["strategy"] for entry in entries)
    shown = replace(manifest, plan=replace(manifest.plan, strategies=strategies))
    text = msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    return without_secrets(text) + "\n"


def _data(manifest: Manifest, sizes: Mapping[str, int]) -> Data:
    names = tuple(without_secrets(str(name)) for name in manifest.plan.names)
    profile = {name: sizes[name] for name in ("conversations", "messages", "calls", "tokens")}
    name = Path(names[0]).name + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else "recordings"
    return Data(name, manifest.digest, names, profile)


def exact(entry: LoggedStrategy, metrics: Mapping[str, About]) -> str:
    """Return the figures of a strategy as JSON, each described, and the reasons of the missing ones."""
    figures = {name: {"value": value, **msgspec.structs.asdict(metrics[name])} for name, value in entry.numbers.items()}
    content = {
        "strategy": entry.parameters["strategy"],
        "figures": figures,
        "missing": entry.missing,
        "failed": {name: without_secrets(why) for name, why in entry.failed.items()},
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


_NOT_IN_NAMES = re.compile(r"[^\w\-./ :]")


# The figures that a tracker shows first: those of the table that every run ends with. One of the last three is there.
_MEASURES = ("net_saving", "cost_saving", "cache_hit_rate", "compression_ratio", "lru_k_hit_rate")
_QUALITIES = ("answer_quality", "context_recall", "grounding")


def measures(metrics: Iterable[str]) -> list[str]:
    """Return the figures that a run is judged by, in order: what is saved, how, and the best measure of quality.

    Those of the bill are of the first model, as it is the one that counts.
    """
    names: dict[str, str] = {}
    for name in metrics:
        names.setdefault(name.partition("(")[0], name)
    quality = [name for name in _QUALITIES if name in names][:1]
    return [names[key] for key in (*_MEASURES, *quality) if key in names]


def name_of(metric: str) -> str:
    """Return a figure's name as MLflow takes it: `cost(MODEL)` is `cost/MODEL`, in a group of its own."""
    grouped = re.sub(r"^([\w.]+)\((.*)\)$", r"\1/\2", metric).replace(", ", "/")
    return _NOT_IN_NAMES.sub("_", grouped)[:250]


_PROMPT = re.compile(r"(?P<before>, )?\bprompt='(?P<digest>[^']*)'(?(before)|(, )?)")


def metric_keys(metrics: Iterable[str]) -> dict[str, str]:
    """Return the name of each figure in MLflow: without the digest of a prompt, so a chart goes on when that changes.

    Figures that differ in the prompt alone keep it.
    """
    short = {metric: name_of(_PROMPT.sub("", metric)) for metric in metrics}
    times = Counter(short.values())
    return {metric: key if times[key] == 1 else name_of(metric) for metric, key in short.items()}


def prompts(metrics: Iterable[str]) -> dict[str, str]:
    """Return the digest of the prompt behind each figure that has one, by the figure's name in MLflow."""
    keys = metric_keys(metrics)
    return {key: found["digest"] for metric, key in keys.items() if (found := _PROMPT.search(metric)) is not None}


HIDDEN = "***"
# Names of parameters whose values are nobody's business.
_PRIVATE = re.compile(r"(^|_)(key|token|secret|password|passwd|authorization|headers?)$", re.IGNORECASE)


def parameters(strategy: str) -> Mapping[str, str]:
    """Return a strategy's text, and each parameter that it names as STAGE.PARAMETER; a second `window` is `window.2`.

    Parameters at their defaults are not in the text, so they are not here either: another version may have others.
    """
    logged: dict[str, str] = {"strategy": strategy}
    secrets: list[str] = []
    times: Counter[str] = Counter()
    try:
        stages = calls(quote_files(strategy), "strategy")
    except SpecError:
        stages = []
    for stage in stages:
        times[stage.name] += 1
        place = stage.name if times[stage.name] == 1 else f"{stage.name}.{times[stage.name]}"
        for name, value in stage.parameters.items():
            private = bool(value) and isinstance(value, str) and _PRIVATE.search(name) is not None
            if private:
                secrets.append(str(value))
            logged[f"{place}.{name}"] = HIDDEN if private else without_secrets(str(value))
    for secret in secrets:
        logged["strategy"] = logged["strategy"].replace(secret, HIDDEN)
    logged["strategy"] = without_secrets(logged["strategy"])
    return logged
