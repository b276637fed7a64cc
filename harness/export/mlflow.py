"""What is logged of a run: a bench, and in it an entry for each strategy. Nothing here knows of MLflow.

Figures are those of `ctxbench compare`, made of the same sums in the same order, so that both agree to the last digit.
As in the report they are over the conversations that every strategy finished. What could not be measured is no number:
it is named with its reason.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import pandas as pd

from ...metrics.figures import growth
from ...metrics.value import Missing, Value
from ...scenarios.errors import MissingExtra, NotLogged, SpecError
from ...scenarios.spec import calls
from ...strategies.plugins import quoted
from ..compare.figures import About, Rows, measured, overall, uneven
from ..folder.run import Run
from ..folder.store import TABLES, placed
from ..models.provider import shown, without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.entities import Run as MlflowRun


GROWTH = ("tokens_full", "tokens_sent", "saving", "conversations")


class MetricPoint(NamedTuple):
    """One place of a curve."""

    name: str
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class LoggedStrategy:
    """One strategy."""

    strategy: str
    parameters: Mapping[str, str]
    figures: Mapping[str, Value]
    curves: tuple[MetricPoint, ...]
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
    entries: tuple[LoggedStrategy, ...]
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
        entries.append(LoggedStrategy(name, parameters(name), figures[name], points, failed))
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


def _growth(steps: pd.DataFrame) -> dict[str, list[MetricPoint]]:
    """By strategy: the tokens of a call by turn."""
    found: dict[str, list[MetricPoint]] = {}
    curve = growth(steps)
    for name in GROWTH:
        columns = (curve[column].tolist() for column in ("strategy", "turn", name))
        for strategy, turn, number in zip(*columns, strict=True):
            found.setdefault(str(strategy), []).append(MetricPoint(f"growth/{name}", int(turn), float(number)))
    return found


def _rounds(survival: pd.DataFrame) -> dict[str, list[MetricPoint]]:
    """By strategy: of the facts that a summary replaced, the share still there after so many rounds of summarising."""
    sums = survival.groupby(["strategy", "age"], observed=True)[["values", "kept"]].sum()
    found: dict[str, list[MetricPoint]] = {}
    flat = sums.reset_index()
    columns = (flat[name].tolist() for name in ("strategy", "age", "values", "kept"))
    for strategy, age, wanted, kept in zip(*columns, strict=True):
        if wanted:
            found.setdefault(str(strategy), []).append(MetricPoint("survival/by_round", int(age), kept / wanted))
    return found


def _plan(manifest: Mapping[str, Any]) -> dict[str, str]:
    """What was asked for, but for the strategies."""
    plan = {name: each for name, each in manifest["plan"].items() if name != "strategies" and each is not None}
    plan["recordings"] = ", ".join(plan.pop("names", ())) or "-"
    return {name: without_secrets(str(each)) for name, each in {**plan, "window": manifest["window"]}.items()}


def _manifest(manifest: Mapping[str, Any], entries: Sequence[LoggedStrategy]) -> str:
    plan = {**manifest["plan"], "strategies": [entry.parameters["strategy"] for entry in entries]}
    text = msgspec.json.format(msgspec.json.encode({**manifest, "plan": plan}), indent=2).decode()
    return without_secrets(text) + "\n"


def _data(manifest: Mapping[str, Any], sizes: Mapping[str, int]) -> Data:
    names = tuple(without_secrets(str(each)) for each in manifest["plan"]["names"])
    profile = {name: sizes[name] for name in ("conversations", "messages", "calls", "tokens")}
    name = Path(names[0]).name + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else "recordings"
    return Data(name, manifest["digest"], names, profile)


def exact(entry: LoggedStrategy, metrics: Mapping[str, About]) -> str:
    """The figures of a strategy as JSON, with what each is, and the reasons of those that there are not."""
    figures = {name: {"value": each, **msgspec.structs.asdict(metrics[name])} for name, each in entry.numbers.items()}
    made = {
        "strategy": entry.parameters["strategy"],
        "figures": figures,
        "missing": entry.missing,
        "failed": {name: without_secrets(why) for name, why in entry.failed.items()},
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"


STORE, ARTIFACTS = "mlflow.db", "mlartifacts"
EXPERIMENT = "ctxbench"
_SETTINGS = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""What MLflow reads from the environment, unless the user has set it. Its usual seven retries take minutes."""


@dataclass(frozen=True, slots=True)
class TrackingStore:
    """Where runs are logged."""

    uri: str
    artifacts: str | None = None
    """Where an experiment that is made anew keeps its files; None = where MLflow would."""

    @property
    def name(self) -> str:
        """The address as it may be shown."""
        return without_secrets(self.uri)

    @property
    def is_file(self) -> bool:
        """Whether it is a SQLite file."""
        return self.uri.startswith("sqlite:")


def place(folder: Path, uri: str | None = None) -> TrackingStore:
    """Where a run folder is logged: at `uri` if it is given, else in a file beside the folder."""
    if uri:
        return TrackingStore(uri)
    beside = folder.resolve().parent
    return TrackingStore(f"sqlite:///{beside / STORE}", (beside / ARTIFACTS).as_uri())


def client(where: TrackingStore) -> MlflowClient:
    """MLflow's client. Raises MissingExtra without MLflow, NotLogged for an address that it cannot read."""
    for name, each in _SETTINGS.items():
        os.environ.setdefault(name, each)
    try:
        import mlflow

        if where.is_file:
            import alembic  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "mlflow", "mlflow") from None
    with trouble(where):
        return mlflow.MlflowClient(tracking_uri=where.uri)


@contextmanager
def trouble(where: TrackingStore) -> Iterator[None]:
    """Whatever keeps MLflow from being written to is one NotLogged, without keys."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, OSError) as error:
        raise NotLogged(f"MLflow at {where.name} cannot be written to: {_why(error)}") from None


def _why(error: BaseException) -> str:
    """The innermost reason, in one line."""
    text = str(error)
    for refused in ("Connection refused", "Name or service not known", "timed out"):
        if refused in text:
            return refused.lower()
    return shown(text) or type(error).__name__


RUN, CONTENT, KIND = "ctxbench.run", "ctxbench.content", "ctxbench.kind"
PARENT = "mlflow.parentRunId"
MOST_METRICS, MOST_PARAMETERS, LONGEST, LONGEST_TAG = 1000, 100, 6000, 5000
"""What MLflow takes at once, and of one text."""
_NOT_IN_NAMES = re.compile(r"[^\w\-./ :]")


@dataclass(frozen=True, slots=True)
class LogResult:
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


def write(
    bench: Bench, where: TrackingStore, measured: int, report: Path | None, experiment: str = EXPERIMENT
) -> LogResult:
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
                return LogResult("unchanged", experiment, found, each.info.run_id)
        made = _Writing(into, found, bench, measured).all(report)
        into.set_tag(made, CONTENT, content)
        into.set_terminated(made, "FINISHED", measured)
        for each in old:
            _delete(into, found, each.info.run_id)
    was_whole = any(CONTENT in each.data.tags for each in old)
    return LogResult("updated" if was_whole else "logged", experiment, found, made)


def reach(where: TrackingStore, experiment: str) -> None:
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

    def _entry(self, parent: str, entry: LoggedStrategy) -> None:
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

    def _curves(self, entry: LoggedStrategy) -> Iterator[Metric]:
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


def _experiment(into: MlflowClient, name: str, where: TrackingStore) -> str:
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


def _parents(into: MlflowClient, experiment: str, identity: str) -> list[MlflowRun]:
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


NOTE = "mlflow.waiting.json"


class Waiting(msgspec.Struct, frozen=True):
    """Where a run was to be logged, and what was in the way."""

    to: str
    why: str


def wait(folder: Path, to: str, why: str) -> None:
    """Note that a run waits."""
    with placed(folder / NOTE) as path:
        path.write_bytes(msgspec.json.encode(Waiting(to, why)) + b"\n")


def done(folder: Path, to: str) -> None:
    """It was logged there. If it is another place that it waits for, it still does."""
    note = folder / NOTE
    if note.is_file() and _read(note).to in ("", to):
        note.unlink()


def waiting(beside: Path) -> dict[Path, Waiting]:
    """The runs in a folder that wait, by their folders."""
    return {path.parent: _read(path) for path in sorted(beside.glob(f"*/{NOTE}"))}


def _read(path: Path) -> Waiting:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Waiting)
    except (OSError, msgspec.DecodeError):
        return Waiting("", "its note cannot be read")


HIDDEN = "***"
_PRIVATE = re.compile(r"(^|_)(key|token|secret|password|passwd|authorization|headers?)$", re.IGNORECASE)
"""Names of parameters whose values are nobody's business."""


def parameters(strategy: str) -> Mapping[str, str]:
    """A strategy's text, and each parameter that it names as STAGE.PARAMETER; the second `window` is `window.2`.

    Parameters at their defaults are not in the text, so they are not here either: another version may have others.
    """
    found: dict[str, str] = {"strategy": strategy}
    hidden: list[str] = []
    seen: Counter[str] = Counter()
    try:
        stages = calls(quoted(strategy), "strategy")
    except SpecError:
        stages = []
    for stage in stages:
        seen[stage.name] += 1
        place = stage.name if seen[stage.name] == 1 else f"{stage.name}.{seen[stage.name]}"
        for name, given in stage.parameters.items():
            private = bool(given) and isinstance(given, str) and _PRIVATE.search(name) is not None
            if private:
                hidden.append(str(given))
            found[f"{place}.{name}"] = HIDDEN if private else without_secrets(str(given))
    for each in hidden:
        found["strategy"] = found["strategy"].replace(each, HIDDEN)
    found["strategy"] = without_secrets(found["strategy"])
    return found
