"""Log a run to MLflow: a bench, and in it an entry for each strategy (`bench.py`)."""

from __future__ import annotations

import hashlib
import os
import shlex
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import msgspec

from ctxbench.metrics.figures import display_name
from ctxbench.scenarios.errors import MissingExtra, NotLogged
from ctxbench.scenarios.secrets import hide, without_secrets

from ..folder.files import placed
from ..models.provider import shown
from .bench import HIDDEN, Bench, LoggedStrategy, exact, measures, metric_keys, name_of, prompts

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.entities import Run as MlflowRun


_LOCAL = ("localhost", "127.0.0.1", "::1")
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

    @property
    def is_local(self) -> bool:
        """Whether what is written stays on this machine."""
        try:
            parts = urlsplit(self.uri)
            host = parts.hostname
        except ValueError:
            return False
        if parts.scheme in ("http", "https"):
            return host in _LOCAL
        # A path has no scheme, but for a drive's letter; `databricks` alone is MLflow's name for a service.
        is_path = len(parts.scheme) < 2 and not self.uri.startswith("databricks")
        return is_path or parts.scheme in ("file", "sqlite")


def place(folder: Path, uri: str | None = None) -> TrackingStore:
    """Return where a run folder is logged: at `uri` if it is given, else in a file beside the folder."""
    if uri:
        hide(uri)  # its user and password, which come back in other forms in what goes wrong
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
    except (MlflowException, RequestException, SQLAlchemyError, OSError, ValueError) as error:  # no address at all
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
PROMPTS = "ctxbench.prompts"
"""Tag with the digest of the grader's prompt behind each figure that has one."""
VIEW = "mlflow.sharedViewState."
"""How the tag of an experiment begins that is a saved view of its page; the rest is the key in the view's address."""
MOST_METRICS, MOST_PARAMETERS, LONGEST, LONGEST_TAG = 1000, 100, 6000, 5000
"""Limits of MLflow: metrics and parameters of one call, characters of a parameter and of a tag."""


@dataclass(frozen=True, slots=True)
class LogResult:
    """The outcome of writing a bench."""

    word: Literal["logged", "updated", "unchanged"]
    experiment: str
    experiment_id: str
    run_id: str
    """Id of the parent run."""
    view: str
    """Key of the saved view that opens on the measures."""

    @property
    def page(self) -> str:
        """Address of that view, below the server's."""
        return f"/#/experiments/{self.experiment_id}/runs?viewStateShareKey={self.view}&compareRunsMode=CHART"


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
        view = _save_view(into, experiment_id, bench, measured)
        for run in logged:
            if run.data.tags.get(CONTENT) == content:
                return LogResult("unchanged", experiment, experiment_id, run.info.run_id, view)
        # Whole before the old one goes: parameters cannot be changed, and metrics keep their old values (decision 30).
        parent = _Writing(into, experiment_id, bench, measured).all(report)
        into.set_tag(parent, CONTENT, content)  # last: a parent without it was cut short, and gives way
        into.set_terminated(parent, "FINISHED", measured)
        for run in logged:
            _delete(into, experiment_id, run.info.run_id)
    # Without its content tag a parent was cut short: it is replaced, which is no update.
    was_whole = any(CONTENT in run.data.tags for run in logged)
    return LogResult("updated" if was_whole else "logged", experiment, experiment_id, parent, view)


def how_to_see(where: TrackingStore, written: LogResult) -> str:
    """Return what to open, and for a file first the command that serves it."""
    if not where.is_file:
        return f"{where.name.replace(HIDDEN, '').rstrip('/')}{written.page}"
    command = shlex.join(["mlflow", "ui", "--backend-store-uri", where.uri])
    return f"{command}   and open http://127.0.0.1:5000{written.page}   (pip install 'ctxbench[tracking]')"


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
        # The page that compares runs opens on the figure that was logged first.
        first = {name: entry.numbers[name] for name in measures(self.bench.metrics) if name in entry.numbers}
        whole = {**first, **entry.numbers, "conversations_failed": len(entry.failed)}
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


def _save_view(into: MlflowClient, experiment_id: str, bench: Bench, measured: int) -> str:
    """Save a view of the experiment's page for the bench, with a chart of each measure; return the view's key.

    Without it the page shows the bench alone, its strategies folded up, and charts of all figures by name. The form is
    that which MLflow 3.17 saves views in.
    """
    key = f"ctxbench{bench.identity[:16]}"
    state = msgspec.json.encode(_view_state(bench))
    packed = "deflate;" + b64encode(zlib.compress(state)).decode()
    view = {"name": f"{bench.name}: measures", "createdAt": measured, "updatedAt": measured, "state": packed}
    into.set_experiment_tag(experiment_id, VIEW + key, msgspec.json.encode(view).decode())
    return key


def _view_state(bench: Bench) -> dict[str, object]:
    keys = metric_keys(bench.metrics)
    charts = [
        {**_CHART, "uuid": f"measure{at}", "type": "BAR", "displayName": display_name(name), "metricKey": keys[name]}
        for at, name in enumerate(measures(bench.metrics))
    ]
    tokens = "growth/tokens_sent"
    charts.append({**_CHART, **_LINE, "metricKey": tokens, "selectedMetricKeys": [tokens]})
    return {
        "searchFilter": f"tags.`{RUN}` = '{bench.identity}' and tags.`{KIND}` = 'strategy'",
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": [f"metrics.`{chart['metricKey']}`" for chart in charts[:-1]],
        "runsHiddenMode": "SHOWALL",
        "compareRunCharts": charts,
        "compareRunSections": [
            {"uuid": _CHART["metricSectionId"], "name": "Which strategy?", "display": True, "isReordered": False}
        ],
        "isAccordionReordered": True,  # or the sections that MLflow adds for all other figures come first, by name
        "hideEmptyCharts": True,
        # Not the runs themselves: these stay folded up below their bench, and then no chart shows them.
        "groupBy": {
            "aggregateFunction": "average",
            "groupByKeys": [{"mode": "param", "groupByData": "strategy"}],
        },
        "useGroupedValuesInCharts": True,
    }


_CHART = {"runsCountToCompare": 100, "metricSectionId": "ctxbench", "deleted": False, "isGenerated": False}
_LINE = {
    "uuid": "growth",
    "type": "LINE",
    "displayName": "tokens of a call by turn",
    "xAxisKey": "step",
    "yAxisKey": "metric",
    "yAxisExpressions": [],
    "selectedXAxisMetricKey": "",
    "lineSmoothness": 0,
    "xAxisScaleType": "linear",
    "scaleType": "linear",
    "range": {},
    "ignoreOutliers": False,
    "useGlobalXaxisKey": True,
    "useGlobalLineSmoothing": True,
}


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
    # A page at a time: what is deleted is found no more, so each search begins with what is left.
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
