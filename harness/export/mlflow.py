"""Log a run to MLflow: a bench, and in it an entry for each strategy.

Figures are those of `ctxbench compare`, made of the same sums in the same order, so that both agree to the last digit.
As in the report they are over the conversations that every strategy finished. A missing figure is no number: it is
named with its reason.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import pandas as pd
from msgspec.structs import replace

from ...metrics.figures import growth
from ...metrics.value import Missing, Value
from ...scenarios.errors import MissingExtra, NotLogged, SpecError
from ...scenarios.spec import calls
from ...strategies.plugins import quote_files
from ..compare.figures import About, Rows, measured, overall
from ..folder.run import Run, uneven
from ..folder.schema import Manifest
from ..folder.store import TABLES, placed
from ..models.provider import shown, without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.entities import Run as MlflowRun


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


def bench(run: Run, rows: Rows, models: Sequence[str] = ()) -> Bench:
    """Return what is logged of a run, billed under `models`. Raises RunError for a model without a price."""
    run_figures = measured(run, rows, models, clock=True)
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


STORE, ARTIFACTS = "mlflow.db", "mlartifacts"
EXPERIMENT = "ctxbench"
# What MLflow reads from the environment, unless the user has set it. Its usual seven retries take minutes.
_SETTINGS = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


@dataclass(frozen=True, slots=True)
class TrackingStore:
    """The place where runs are logged."""

    uri: str
    artifacts: str | None = None
    """Where a new experiment stores its files; None = MLflow's default."""

    @property
    def name(self) -> str:
        """The address without secrets."""
        return without_secrets(self.uri)

    @property
    def is_file(self) -> bool:
        """Whether the store is a SQLite file."""
        return self.uri.startswith("sqlite:")


def place(folder: Path, uri: str | None = None) -> TrackingStore:
    """Return where a run folder is logged: at `uri` if it is given, else in a file beside the folder."""
    if uri:
        return TrackingStore(uri)
    beside = folder.resolve().parent
    return TrackingStore(f"sqlite:///{beside / STORE}", (beside / ARTIFACTS).as_uri())


def client(where: TrackingStore) -> MlflowClient:
    """Return MLflow's client. Raises MissingExtra without MLflow, NotLogged for an invalid address."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
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
    """Turn whatever keeps MLflow from being written to into one NotLogged, without secrets."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, OSError) as error:
        raise NotLogged(f"MLflow at {where.name} cannot be written to: {_why(error)}") from None


def _why(error: BaseException) -> str:
    """Return the innermost reason, in one line."""
    text = str(error)
    for reason in ("Connection refused", "Name or service not known", "timed out"):
        if reason in text:
            return reason.lower()
    return shown(text) or type(error).__name__


RUN, CONTENT, KIND = "ctxbench.run", "ctxbench.content", "ctxbench.kind"
PARENT = "mlflow.parentRunId"
MOST_METRICS, MOST_PARAMETERS, LONGEST, LONGEST_TAG = 1000, 100, 6000, 5000
"""Limits of MLflow: metrics and parameters of one call, characters of a parameter and of a tag."""
_NOT_IN_NAMES = re.compile(r"[^\w\-./ :]")


@dataclass(frozen=True, slots=True)
class LogResult:
    """The outcome of writing a bench."""

    word: Literal["logged", "updated", "unchanged"]
    experiment: str
    experiment_id: str
    run_id: str
    """Id of the parent run."""


def name_of(metric: str) -> str:
    """Return a figure's name as MLflow takes it: `cost(MODEL)` is `cost/MODEL`, in a group of its own."""
    grouped = re.sub(r"^([\w.]+)\((.*)\)$", r"\1/\2", metric).replace(", ", "/")
    return _NOT_IN_NAMES.sub("_", grouped)[:250]


_PROMPT = re.compile(r"(?P<before>, )?\bprompt='(?P<digest>[^']*)'(?(before)|(, )?)")
PROMPTS = "ctxbench.prompts"
"""Tag with the digest of the grader's prompt behind each figure that has one."""


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


def write(
    bench: Bench, where: TrackingStore, measured: int, report: Path | None, experiment: str = EXPERIMENT
) -> LogResult:
    """Write a bench to MLflow, unless it is there already. `measured` is in ms since 1970, `report` a folder of files.

    Raises NotLogged if MLflow cannot be written to.
    """
    content = _content(bench, report)
    into = client(where)
    with trouble(where):
        experiment_id = _experiment(into, experiment, where)
        logged = _parents(into, experiment_id, bench.identity)
        for run in logged:
            if run.data.tags.get(CONTENT) == content:
                return LogResult("unchanged", experiment, experiment_id, run.info.run_id)
        # Whole before the old one goes: parameters cannot be changed, and metrics keep their old values (decision 30).
        parent = _Writing(into, experiment_id, bench, measured).all(report)
        into.set_tag(parent, CONTENT, content)  # last: a parent without it was cut short, and gives way
        into.set_terminated(parent, "FINISHED", measured)
        for run in logged:
            _delete(into, experiment_id, run.info.run_id)
    # Without its content tag a parent was cut short: it is replaced, which is no update.
    was_whole = any(CONTENT in run.data.tags for run in logged)
    return LogResult("updated" if was_whole else "logged", experiment, experiment_id, parent)


def reach(where: TrackingStore, experiment: str) -> None:
    """Raise NotLogged if MLflow cannot be written to: checked before the work is done."""
    into = client(where)
    with trouble(where):
        _experiment(into, experiment, where)


class _Writing:
    """A bench being written to MLflow."""

    def __init__(self, into: MlflowClient, experiment: str, bench: Bench, measured: int) -> None:
        self.into, self.experiment, self.bench, self.measured = into, experiment, bench, measured

    def all(self, report: Path | None) -> str:
        """Write everything; return the parent's id."""
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
        if digests := prompts(self.bench.metrics):
            tags[PROMPTS] = msgspec.json.encode(digests).decode()
        if missing:
            tags["ctxbench.missing"] = missing
        metrics = [*self._metrics(whole), *self._curves(entry)]
        strategy = entry.parameters["strategy"]
        child = self._run(strategy, tags, {**self.bench.parameters, **entry.parameters}, metrics)
        self.into.log_text(child, exact(entry, self.bench.metrics), "figures.json")
        failed = len(entry.failed) == self.bench.sizes["conversations"]
        self.into.set_terminated(child, "FAILED" if failed else "FINISHED", self.measured)

    def _run(self, name: str, tags: Mapping[str, str], parameters: Mapping[str, str], metrics: Sequence[Metric]) -> str:
        """Create a run with everything but its files; return its id."""
        from mlflow.entities import Dataset, DatasetInput, InputTag, Param

        bounded = {key: _short(text, LONGEST_TAG) for key, text in tags.items()}
        run_id = self.into.create_run(self.experiment, self.measured, bounded, _short(name, LONGEST_TAG)).info.run_id
        params = [Param(name_of(key), _short(text, LONGEST)) for key, text in parameters.items()]
        for at in range(0, len(params), MOST_PARAMETERS):
            self.into.log_batch(run_id, params=params[at : at + MOST_PARAMETERS])
        for at in range(0, len(metrics), MOST_METRICS):
            self.into.log_batch(run_id, metrics=metrics[at : at + MOST_METRICS])
        data = self.bench.data
        source = msgspec.json.encode({"recordings": data.source, "sha256": data.digest}).decode()
        profile = msgspec.json.encode(data.profile).decode()
        dataset = Dataset(data.name[:500], data.digest[:36], "local", source[:60_000], None, profile)
        self.into.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", "replayed")])])
        return str(run_id)

    def _tags(self) -> dict[str, str]:
        versions = {f"version.{name_of(name)}": version for name, version in self.bench.versions.items()}
        source = {"mlflow.source.name": "ctxbench", "mlflow.source.type": "LOCAL"}
        return {RUN: self.bench.identity, **source, **versions}

    def _metrics(self, numbers: Mapping[str, float]) -> list[Metric]:
        from mlflow.entities import Metric

        keys = metric_keys(dict.fromkeys((*self.bench.metrics, *numbers)))
        return [Metric(keys[name], float(number), self.measured, 0) for name, number in numbers.items()]

    def _curves(self, entry: LoggedStrategy) -> Iterator[Metric]:
        from mlflow.entities import Metric

        return (Metric(name_of(name), number, self.measured, step) for name, step, number in entry.curves)


def _note(bench: Bench, report: Path | None) -> str:
    """Return the text at the head of the parent's page, as Markdown."""
    sizes = bench.sizes
    text = f"{sizes['strategies']} strategies over {sizes['conversations']:,} conversations, {sizes['calls']:,} calls. "
    text += "A child run for each strategy: select them and press *Compare*. "
    if sizes["compared"] < sizes["conversations"]:
        text += f"Figures are over the {sizes['compared']:,} conversations that every strategy finished. "
    return text + ("The report is the artifact `report/report.html`." if report is not None else "")


def _content(bench: Bench, report: Path | None) -> str:
    """Return the SHA-256 of everything that is logged."""
    curves = [(entry.parameters, entry.curves) for entry in bench.entries]
    facts = (bench.name, bench.parameters, bench.versions, bench.sizes, bench.data, curves)
    digest = hashlib.sha256(msgspec.json.encode(facts))
    for entry in bench.entries:
        digest.update(exact(entry, bench.metrics).encode())
    for path in sorted(report.rglob("*")) if report is not None else ():
        if path.is_file():
            digest.update(str(path.relative_to(report or path)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _experiment(into: MlflowClient, name: str, where: TrackingStore) -> str:
    """Return the experiment's id; it is created if there is none."""
    from mlflow.exceptions import MlflowException

    experiment = into.get_experiment_by_name(name)
    if experiment is None:
        with suppress(MlflowException):  # another command may have created it at this moment
            return str(into.create_experiment(name, where.artifacts))
        experiment = into.get_experiment_by_name(name)
    if experiment is None or experiment.lifecycle_stage != "active":
        raise MlflowException(f"the experiment {name!r} was deleted there: restore it, or name another")
    return str(experiment.experiment_id)


def _parents(into: MlflowClient, experiment: str, identity: str) -> list[MlflowRun]:
    """Return the runs that were logged of this run before."""
    return list(into.search_runs([experiment], f"tags.`{RUN}` = '{identity}' and tags.`{KIND}` = 'bench'"))


def _delete(into: MlflowClient, experiment: str, parent: str) -> None:
    """Delete a parent and its children; MLflow can restore them."""
    while children := into.search_runs([experiment], f"tags.`{PARENT}` = '{parent}'"):
        for child in children:
            into.delete_run(child.info.run_id)
    into.delete_run(parent)


def _short(text: str, longest: int) -> str:
    """Return the text within MLflow's limit, with a note if it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 20]}… (cut)"


NOTE = "mlflow.waiting.json"


class Waiting(msgspec.Struct, frozen=True):
    """The place where a run was to be logged, and what was in the way."""

    to: str
    why: str


def wait(folder: Path, to: str, why: str) -> None:
    """Note that a run waits to be logged."""
    with placed(folder / NOTE) as path:
        path.write_bytes(msgspec.json.encode(Waiting(to, why)) + b"\n")


def done(folder: Path, to: str) -> None:
    """Remove the note that a run waits for this place. A run that waits for another place still does."""
    note = folder / NOTE
    if note.is_file() and _read(note).to in ("", to):
        note.unlink()


def waiting(beside: Path) -> dict[Path, Waiting]:
    """Return the waiting runs in a folder, by their folders."""
    return {path.parent: _read(path) for path in sorted(beside.glob(f"*/{NOTE}"))}


def _read(path: Path) -> Waiting:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Waiting)
    except (OSError, msgspec.DecodeError):
        return Waiting("", "its note cannot be read")


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
