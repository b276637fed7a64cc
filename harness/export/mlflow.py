"""Log a run to MLflow: a bench, and in it an entry for each strategy (`bench.py`)."""

from __future__ import annotations

import hashlib
import os
import shlex
import sqlite3
import tempfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from ctxbench.metrics.figures import display_name
from ctxbench.scenarios.errors import MissingExtra, NotLogged
from ctxbench.scenarios.secrets import MASK, hide, without_secrets

from ..models.provider import shown
from .bench import Bench, LoggedStrategy, MetricPoint, exact, measures, metric_keys, name_of

if TYPE_CHECKING:
    from mlflow import MlflowClient


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
    artifacts: str | None = None  # where a new experiment stores its files; None = MLflow's default

    @property
    def name(self) -> str:
        """The address without secrets."""
        return without_secrets(self.uri)

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

        if where.uri.startswith("sqlite:"):
            import alembic  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "mlflow", "mlflow") from None
    with trouble(where):
        return mlflow.MlflowClient(tracking_uri=where.uri)


_INNERMOST = ("Connection refused", "Name or service not known", "timed out")


@contextmanager
def trouble(where: TrackingStore) -> Iterator[None]:
    """Turn whatever keeps MLflow from being written to into one NotLogged, without secrets."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, OSError, ValueError) as error:  # no address at all
        reasons = (reason for reason in _INNERMOST if reason in str(error))
        why = next(reasons, "").lower() or shown(str(error)) or type(error).__name__
        raise NotLogged(f"MLflow at {where.name} cannot be written to: {why}") from None


RUN, CONTENT, KIND, PARENT = "ctxbench.run", "ctxbench.content", "ctxbench.kind", "mlflow.parentRunId"
VIEW = "mlflow.sharedViewState."
"""How the tag of an experiment begins that is a saved view of its page; the rest is the key in the view's address."""
MOST_METRICS, MOST_PARAMETERS, LONGEST, LONGEST_TAG = 900, 100, 6000, 5000
"""Limits of MLflow: metrics and parameters of one call, 1000 together, characters of a parameter and of a tag."""
_REQUESTS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class LogResult:
    """The outcome of writing a bench."""

    word: Literal["logged", "updated", "unchanged"]
    place: str
    experiment: str
    text: bool  # whether texts of the recordings are among it
    how_to_see: str  # address to open; for a file, the command that serves it


def write(
    bench: Bench,
    where: TrackingStore,
    measured: int,
    write_report: Callable[[Path], object],
    experiment: str = EXPERIMENT,
    *,
    text: bool = True,
) -> LogResult:
    """Write a bench to MLflow with the files that `write_report` makes, unless it is there.

    `measured` is in ms since 1970. `text` says whether the report shows texts of the recordings. The report is made of
    what the bench has, so it is not made where the bench is there. Raises NotLogged if MLflow cannot be written to.
    """
    content, into = hashlib.sha256(msgspec.json.encode((bench, text))).hexdigest(), client(where)
    with trouble(where):
        experiment_id = _experiment(into, experiment, where)
        same = f"tags.`{RUN}` = '{bench.identity}' and tags.`{KIND}` ="
        logged = list(into.search_runs([experiment_id], f"{same} 'bench'"))
        view = _save_view(into, experiment_id, bench, measured)
        page = f"/#/experiments/{experiment_id}/runs?viewStateShareKey={view}&compareRunsMode=CHART"
        if where.uri.startswith("sqlite:"):
            command = shlex.join(["mlflow", "ui", "--backend-store-uri", where.uri])
            how_to_see = f"{command}   and open http://127.0.0.1:5000{page}   (pip install 'ctxbench[tracking]')"
        else:
            how_to_see = f"{where.name.replace(MASK, '').rstrip('/')}{page}"
        if any(run.data.tags.get(CONTENT) == content for run in logged):
            return LogResult("unchanged", where.name, experiment, text, how_to_see)
        # Whole before the old one goes: parameters cannot be changed, and metrics keep their old values (decision 28).
        with ThreadPoolExecutor(1 if where.uri.startswith("sqlite:") else _REQUESTS_AT_ONCE) as pool:
            parent = _write(bench, into, experiment_id, measured, write_report, pool)
            into.set_tag(parent, CONTENT, content)  # last: a parent without it was cut short, and gives way
            into.set_terminated(parent, "FINISHED", measured)
            for run in logged:
                # A page at a time: what is deleted is found no more, so each search begins with what is left.
                while children := into.search_runs([experiment_id], f"tags.`{PARENT}` = '{run.info.run_id}'"):
                    list(pool.map(into.delete_run, [child.info.run_id for child in children]))
                into.delete_run(run.info.run_id)
    # Without its content tag a parent was cut short: it is replaced, which is no update.
    is_update = any(CONTENT in run.data.tags for run in logged)
    return LogResult("updated" if is_update else "logged", where.name, experiment, text, how_to_see)


def _write(
    bench: Bench,
    into: MlflowClient,
    experiment: str,
    measured: int,
    write_report: Callable[[Path], object],
    pool: ThreadPoolExecutor,
) -> str:
    """Write everything, the strategies by the pool while the report is made; return the parent's id."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    sizes, names = bench.sizes, bench.parameters["recordings"]
    source = msgspec.json.encode({"recordings": names, "sha256": bench.digest}).decode()
    profile = msgspec.json.encode(sizes).decode()
    dataset = Dataset(names[:500], bench.digest[:36], "local", source[:60_000], None, profile)
    versions = {f"version.{name_of(package)}": version for package, version in bench.versions.items()}
    every = {RUN: bench.identity, "mlflow.source.name": "ctxbench", "mlflow.source.type": "LOCAL", **versions}

    def create(
        name: str,
        tags: Mapping[str, str],
        parameters: Mapping[str, str],
        figures: Mapping[str, float],
        curves: Sequence[MetricPoint],
    ) -> str:
        """Create a run with everything but its files; return its id."""
        bounded = {key: _short(text, LONGEST_TAG) for key, text in {**tags, **every}.items()}
        run_id = str(into.create_run(experiment, measured, bounded, _short(name, LONGEST_TAG)).info.run_id)
        params = [
            Param(name_of(key), _short(text, LONGEST)) for key, text in {**bench.parameters, **parameters}.items()
        ]
        metrics = [Metric(key, float(number), measured, 0) for key, number in figures.items()]
        metrics += [Metric(name_of(name), number, measured, step) for name, step, number in curves]
        while params or metrics:
            into.log_batch(run_id, metrics[:MOST_METRICS], params[:MOST_PARAMETERS])
            del metrics[:MOST_METRICS], params[:MOST_PARAMETERS]
        into.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", "replayed")])])
        return run_id

    note = f"**{bench.verdict['verdict']}**\n\n" if "verdict" in bench.verdict else ""
    note += f"{sizes['strategies']} strategies over {sizes['conversations']:,} conversations, "
    note += f"{sizes['calls']:,} calls. A child run for each strategy: select them and press *Compare*. "
    if sizes["compared"] < sizes["conversations"]:
        note += f"Figures are over the {sizes['compared']:,} conversations that every strategy finished. "
    note += "The report is the artifact `report/report.html`."
    of_run = {f"ctxbench.{key}": text for key, text in bench.verdict.items() if not key.startswith("place/")}
    tags = {KIND: "bench", "mlflow.note.content": note, **of_run}
    parent = create(bench.name, tags, {}, {**sizes, **bench.live}, bench.curves)
    keys = metric_keys(bench.metrics, bench.verdict.get("quality", ""))

    def create_child(entry: LoggedStrategy) -> None:
        """Create the run of a strategy; MLflow's page of compared runs opens on the first figure."""
        figures = dict(sorted((keys[name], number) for name, number in entry.numbers.items()))
        tags = {KIND: "strategy", PARENT: parent}
        if place := bench.verdict.get(f"place/{entry.name}"):
            tags["ctxbench.place"] = place
        if entry.missing:
            tags["ctxbench.missing"] = "; ".join(f"{name}: {why}" for name, why in entry.missing.items())
        failed = len(entry.failed)
        child = create(entry.name, tags, entry.parameters, {**figures, "conversations_failed": failed}, entry.curves)
        into.set_terminated(child, "FAILED" if failed == sizes["conversations"] else "FINISHED", measured)

    children = pool.map(create_child, bench.entries)
    with tempfile.TemporaryDirectory() as folder:
        write_report(Path(folder))
        (Path(folder) / "manifest.json").write_text(bench.manifest, "utf-8")
        (Path(folder) / "figures.json").write_text(exact(bench), "utf-8")
        for _ in children:
            pass
        into.log_artifacts(parent, folder)
    return parent


def _save_view(into: MlflowClient, experiment_id: str, bench: Bench, measured: int) -> str:
    """Save a view of the experiment's page for the bench, with a chart of each measure; return the view's key.

    Without it the page shows the bench alone, its strategies folded up, and charts of all figures by name.
    """
    state: dict[str, Any] = msgspec.json.decode(files(__package__).joinpath("data/mlflow_view.json").read_bytes())
    bar, line = state["compareRunCharts"]
    quality = bench.verdict.get("quality", "")
    keys = metric_keys(bench.metrics, quality)
    bars = [
        {**bar, "uuid": f"measure{at}", "displayName": display_name(name), "metricKey": keys[name]}
        for at, name in enumerate(measures(keys, quality))
    ]
    state["compareRunCharts"] = [*bars, line]
    state["selectedColumns"] = [f"metrics.`{chart['metricKey']}`" for chart in bars]
    state["orderByKey"] = state["selectedColumns"][0]
    state["searchFilter"] = f"tags.`{RUN}` = '{bench.identity}' and tags.`{KIND}` = 'strategy'"
    key = f"ctxbench{bench.identity[:16]}"
    packed = "deflate;" + b64encode(zlib.compress(msgspec.json.encode(state))).decode()
    view = {"name": f"{bench.name}: measures", "createdAt": measured, "updatedAt": measured, "state": packed}
    into.set_experiment_tag(experiment_id, VIEW + key, msgspec.json.encode(view).decode())
    return key


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
    if where.artifacts:  # a store of somebody else's folder would send the files to a host of theirs
        file = Path(where.uri.removeprefix("sqlite:///"))
        with closing(sqlite3.connect(file)) as store:
            # MLflow itself has a trigger for the keys of its gateway.
            rules = store.execute(
                "SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view') AND tbl_name <> 'secrets'"
            ).fetchall()
        if rules or experiment.artifact_location != where.artifacts or file.is_symlink():
            raise MlflowException("it was not made here: move it away, or name it as the tracking URI")
    return str(experiment.experiment_id)


def _short(text: str, longest: int) -> str:
    """Return the text within MLflow's limit, with a note if it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 20]}… (cut)"
