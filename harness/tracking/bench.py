"""What is logged of a run: a bench, and in it an entry for each strategy. Nothing here knows of MLflow.

Figures are those of `ctxbench compare`, made of the same sums in the same order, so that both agree to the last digit.
As in the report they are over the conversations that every strategy finished. What could not be measured is no number:
it is named with its reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from ...metrics.figures import growth
from ...metrics.value import Missing, Value
from ..frames import overall, uneven
from ..gating.measured import About, Rows, measured
from ..loading import Run
from ..models.failures import without_secrets
from ..store import TABLES
from .texts import HIDDEN, parameters

GROWTH = ("tokens_full", "tokens_sent", "saving", "conversations")


class Point(NamedTuple):
    """One place of a curve."""

    name: str
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One strategy."""

    strategy: str
    parameters: Mapping[str, str]
    figures: Mapping[str, Value]
    curves: tuple[Point, ...]
    failed: Mapping[str, str]
    """Conversations in which it failed, and why."""

    @property
    def missing(self) -> dict[str, str]:
        """The figures that there are not, each with the reason."""
        found = {name: each for name, each in self.figures.items() if isinstance(each, Missing)}
        return {name: f"{each.why}: {each.detail}" if each.detail else each.why for name, each in found.items()}

    @property
    def numbers(self) -> dict[str, float]:
        """The figures that there are."""
        return {name: each for name, each in self.figures.items() if not isinstance(each, Missing)}


@dataclass(frozen=True, slots=True)
class Data:
    """What was replayed."""

    name: str
    digest: str
    source: tuple[str, ...]
    profile: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bench:
    """A run as it is logged."""

    name: str
    identity: str
    """SHA-256 of all that was measured, times too: a copy of a run is that run, and measuring again is another."""
    parameters: Mapping[str, str]
    versions: Mapping[str, str]
    sizes: Mapping[str, int]
    data: Data
    metrics: Mapping[str, About]
    entries: tuple[Entry, ...]
    manifest: str
    """What the run says of itself, as JSON."""
    is_private: bool
    """Whether a strategy has a parameter that is nobody's business: what shows its text is not to be logged."""


def bench(run: Run, rows: Rows, models: Sequence[str] = ()) -> Bench:
    """All that is logged of a run. `models`: those that it is billed under. Raises RunError for one without a price."""
    found = measured(run, rows, models, clock=True)
    conversations = run.table("conversations")
    strategies: list[str] = run.manifest["plan"]["strategies"]
    apart = uneven(found.failed, len(conversations))
    figures = overall(found)
    steps = rows(run, "steps")
    survival = rows(run, "survival")
    curves = _growth(steps[~steps.conversation.isin(apart)])
    rounds = _rounds(survival[~survival.conversation.isin(apart)])
    entries = []
    for name in strategies:
        failed = found.failed.get(name, {})
        points = (*curves.get(name, ()), *rounds.get(name, ())) if len(failed) < len(conversations) else ()
        entries.append(Entry(name, parameters(name), figures[name], points, failed))
    sizes = {
        "conversations": len(conversations),
        "compared": len(conversations) - len(apart),
        "messages": int(conversations.messages.sum()),
        "calls": int(conversations.calls.sum()),
        "tokens": int(conversations.tokens.sum()),
        "strategies": len(strategies),
        "failed": sum(map(len, found.failed.values())),
    }
    return Bench(
        run.folder.resolve().name,
        identity(run.folder),
        _plan(run.manifest),
        {name: without_secrets(each) for name, each in run.manifest["versions"].items()},
        sizes,
        _data(run.manifest, sizes),
        found.metrics,
        tuple(entries),
        _manifest(run.manifest, entries),
        any(HIDDEN in entry.parameters["strategy"] for entry in entries),
    )


def identity(folder: Path) -> str:
    """SHA-256 of a run's bytes, but for what was made of it later."""
    made = hashlib.sha256((folder / "manifest.json").read_bytes())
    for table in TABLES:
        for path in sorted((folder / table).glob("*.*")):
            made.update(f"{table}/{path.name}\0".encode())
            made.update(hashlib.sha256(path.read_bytes()).digest())
    return made.hexdigest()


def _growth(steps: pd.DataFrame) -> dict[str, list[Point]]:
    """By strategy: the tokens of a call by turn."""
    found: dict[str, list[Point]] = {}
    curve = growth(steps)
    for name in GROWTH:
        columns = (curve[column].tolist() for column in ("strategy", "turn", name))
        for strategy, turn, number in zip(*columns, strict=True):
            found.setdefault(str(strategy), []).append(Point(f"growth/{name}", int(turn), float(number)))
    return found


def _rounds(survival: pd.DataFrame) -> dict[str, list[Point]]:
    """By strategy: of the facts that a summary replaced, the share still there after so many rounds of summarising."""
    sums = survival.groupby(["strategy", "age"], observed=True)[["values", "kept"]].sum()
    found: dict[str, list[Point]] = {}
    flat = sums.reset_index()
    columns = (flat[name].tolist() for name in ("strategy", "age", "values", "kept"))
    for strategy, age, wanted, kept in zip(*columns, strict=True):
        if wanted:
            found.setdefault(str(strategy), []).append(Point("survival/by_round", int(age), kept / wanted))
    return found


def _plan(manifest: Mapping[str, Any]) -> dict[str, str]:
    """What was asked for, but for the strategies."""
    plan = {name: each for name, each in manifest["plan"].items() if name != "strategies" and each is not None}
    plan["recordings"] = ", ".join(plan.pop("names", ())) or "-"
    return {name: without_secrets(str(each)) for name, each in {**plan, "window": manifest["window"]}.items()}


def _manifest(manifest: Mapping[str, Any], entries: Sequence[Entry]) -> str:
    plan = {**manifest["plan"], "strategies": [entry.parameters["strategy"] for entry in entries]}
    text = msgspec.json.format(msgspec.json.encode({**manifest, "plan": plan}), indent=2).decode()
    return without_secrets(text) + "\n"


def _data(manifest: Mapping[str, Any], sizes: Mapping[str, int]) -> Data:
    names = tuple(without_secrets(str(each)) for each in manifest["plan"]["names"])
    profile = {name: sizes[name] for name in ("conversations", "messages", "calls", "tokens")}
    name = Path(names[0]).name + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else "recordings"
    return Data(name, manifest["digest"], names, profile)


def exact(entry: Entry, metrics: Mapping[str, About]) -> str:
    """The figures of a strategy as JSON, with what each is, and the reasons of those that there are not."""
    figures = {name: {"value": each, **msgspec.structs.asdict(metrics[name])} for name, each in entry.numbers.items()}
    made = {
        "strategy": entry.parameters["strategy"],
        "figures": figures,
        "missing": entry.missing,
        "failed": {name: without_secrets(why) for name, why in entry.failed.items()},
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"
