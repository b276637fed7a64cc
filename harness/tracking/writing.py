"""A bench written to MLflow: a parent run, and a child run for each strategy.

A parent has the run's digest as a tag, by which it is found again. What is the same is left as it is. What has changed
(answers were added, other models are billed) is written anew, and only then is the old one deleted: MLflow's parameters
cannot be changed, and its metrics would keep their old values beside the new. What was broken off is not yet tagged as
whole, and gives way to the next that is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from .bench import Bench, Entry, exact
from .place import EXPERIMENT, Place, client, trouble

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run

RUN, CONTENT, KIND = "ctxbench.run", "ctxbench.content", "ctxbench.kind"
PARENT = "mlflow.parentRunId"
MOST_METRICS, MOST_PARAMETERS, LONGEST, LONGEST_TAG = 1000, 100, 6000, 5000
"""What MLflow takes at once, and of one text."""
_NOT_IN_NAMES = re.compile(r"[^\w\-./ :]")


@dataclass(frozen=True, slots=True)
class Written:
    """What came of it."""

    word: Literal["logged", "updated", "unchanged"]
    experiment: str
    experiment_id: str
    run_id: str
    """Of the parent."""


def name_of(metric: str) -> str:
    """A figure's name as MLflow takes it: `cost(claude-sonnet-5)` is `cost/claude-sonnet-5`, in a group of its own."""
    grouped = re.sub(r"^([\w.]+)\((.*)\)$", r"\1/\2", metric).replace(", ", "/")
    return _NOT_IN_NAMES.sub("_", grouped)[:250]


def write(bench: Bench, where: Place, measured: int, report: Path | None, experiment: str = EXPERIMENT) -> Written:
    """Write a bench to MLflow, unless it is there. `measured`: when, in ms since 1970. `report`: a folder of files.

    Raises NotLogged if MLflow cannot be written to.
    """
    content = _content(bench, report)
    into = client(where)
    with trouble(where):
        found = _experiment(into, experiment, where)
        old = _parents(into, found, bench.identity)
        for each in old:
            if each.data.tags.get(CONTENT) == content:
                return Written("unchanged", experiment, found, each.info.run_id)
        made = _Writing(into, found, bench, measured).all(report)
        into.set_tag(made, CONTENT, content)
        into.set_terminated(made, "FINISHED", measured)
        for each in old:
            _delete(into, found, each.info.run_id)
    was_whole = any(CONTENT in each.data.tags for each in old)
    return Written("updated" if was_whole else "logged", experiment, found, made)


def reach(where: Place, experiment: str) -> None:
    """Raise NotLogged if MLflow cannot be written to: before work is done for it."""
    into = client(where)
    with trouble(where):
        _experiment(into, experiment, where)


class _Writing:
    """One bench on its way into MLflow."""

    def __init__(self, into: MlflowClient, experiment: str, bench: Bench, measured: int) -> None:
        self.into, self.experiment, self.bench, self.measured = into, experiment, bench, measured

    def all(self, report: Path | None) -> str:
        """Write it all; the parent's id."""
        bench = self.bench
        tags = {KIND: "bench", "mlflow.note.content": _note(bench, report), **self._tags()}
        parent = self._run(bench.name, tags, bench.parameters, self._metrics(bench.sizes))
        for entry in bench.entries:
            self._entry(parent, entry)
        self.into.log_text(parent, bench.manifest, "manifest.json")
        if report is not None:
            self.into.log_artifacts(parent, str(report), "report")
        return parent

    def _entry(self, parent: str, entry: Entry) -> None:
        whole = {**entry.numbers, "conversations_failed": len(entry.failed)}
        missing = "; ".join(f"{name}: {why}" for name, why in entry.missing.items())
        tags = {KIND: "strategy", PARENT: parent, **self._tags()}
        if missing:
            tags["ctxbench.missing"] = missing
        metrics = [*self._metrics(whole), *self._curves(entry)]
        strategy = entry.parameters["strategy"]
        made = self._run(strategy, tags, {**self.bench.parameters, **entry.parameters}, metrics)
        self.into.log_text(made, exact(entry, self.bench.metrics), "figures.json")
        failed = len(entry.failed) == self.bench.sizes["conversations"]
        self.into.set_terminated(made, "FAILED" if failed else "FINISHED", self.measured)

    def _run(self, name: str, tags: Mapping[str, str], parameters: Mapping[str, str], metrics: Sequence[Metric]) -> str:
        """A run with all that but its files; its id."""
        from mlflow.entities import Dataset, DatasetInput, InputTag, Param

        bounded = {key: _short(text, LONGEST_TAG) for key, text in tags.items()}
        made = self.into.create_run(self.experiment, self.measured, bounded, _short(name, LONGEST_TAG)).info.run_id
        named = [Param(name_of(key), _short(text, LONGEST)) for key, text in parameters.items()]
        for at in range(0, len(named), MOST_PARAMETERS):
            self.into.log_batch(made, params=named[at : at + MOST_PARAMETERS])
        for at in range(0, len(metrics), MOST_METRICS):
            self.into.log_batch(made, metrics=metrics[at : at + MOST_METRICS])
        data = self.bench.data
        source = msgspec.json.encode({"recordings": data.source, "sha256": data.digest}).decode()
        profile = msgspec.json.encode(data.profile).decode()
        kept = Dataset(data.name[:500], data.digest[:36], "local", source[:60_000], None, profile)
        self.into.log_inputs(made, [DatasetInput(kept, [InputTag("mlflow.data.context", "replayed")])])
        return str(made)

    def _tags(self) -> dict[str, str]:
        versions = {f"version.{name_of(name)}": each for name, each in self.bench.versions.items()}
        source = {"mlflow.source.name": "ctxbench", "mlflow.source.type": "LOCAL"}
        return {RUN: self.bench.identity, **source, **versions}

    def _metrics(self, numbers: Mapping[str, float]) -> list[Metric]:
        from mlflow.entities import Metric

        return [Metric(name_of(name), float(each), self.measured, 0) for name, each in numbers.items()]

    def _curves(self, entry: Entry) -> Iterator[Metric]:
        from mlflow.entities import Metric

        return (Metric(name_of(name), each, self.measured, step) for name, step, each in entry.curves)


def _note(bench: Bench, report: Path | None) -> str:
    """What stands at the head of the parent's page, as Markdown."""
    sizes = bench.sizes
    told = f"{sizes['strategies']} strategies over {sizes['conversations']:,} conversations, {sizes['calls']:,} calls. "
    told += "A child run for each strategy: select them and press *Compare*. "
    if sizes["compared"] < sizes["conversations"]:
        told += f"Figures are over the {sizes['compared']:,} conversations that every strategy finished. "
    return told + ("The report is the artifact `report/report.html`." if report is not None else "")


def _content(bench: Bench, report: Path | None) -> str:
    """SHA-256 of all that is logged."""
    curves = [(each.parameters, each.curves) for each in bench.entries]
    facts = (bench.name, bench.parameters, bench.versions, bench.sizes, bench.data, curves)
    made = hashlib.sha256(msgspec.json.encode(facts))
    for each in bench.entries:
        made.update(exact(each, bench.metrics).encode())
    for path in sorted(report.rglob("*")) if report is not None else ():
        if path.is_file():
            made.update(str(path.relative_to(report or path)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return made.hexdigest()


def _experiment(into: MlflowClient, name: str, where: Place) -> str:
    """The experiment's id; it is made if there is none."""
    from mlflow.exceptions import MlflowException

    found = into.get_experiment_by_name(name)
    if found is None:
        with suppress(MlflowException):  # another command may have made it at this moment
            return str(into.create_experiment(name, where.artifacts))
        found = into.get_experiment_by_name(name)
    if found is None or found.lifecycle_stage != "active":
        raise MlflowException(f"the experiment {name!r} was deleted there: restore it, or name another")
    return str(found.experiment_id)


def _parents(into: MlflowClient, experiment: str, identity: str) -> list[Run]:
    """What was logged of a run before."""
    return list(into.search_runs([experiment], f"tags.`{RUN}` = '{identity}' and tags.`{KIND}` = 'bench'"))


def _delete(into: MlflowClient, experiment: str, parent: str) -> None:
    """Delete a parent and its children, as MLflow does: they can be restored there."""
    while children := into.search_runs([experiment], f"tags.`{PARENT}` = '{parent}'"):
        for child in children:
            into.delete_run(child.info.run_id)
    into.delete_run(parent)


def _short(text: str, longest: int) -> str:
    """Text that MLflow takes, and says that it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 20]}… (cut)"
