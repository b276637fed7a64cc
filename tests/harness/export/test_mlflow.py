"""Runs in MLflow, read back from it."""

import json
import math
import shutil
import socket
import sqlite3
import zlib
from base64 import b64decode
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctxbench.cli.export import logged as log_runs
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.export.bench import bench, metric_keys
from ctxbench.harness.export.mlflow import KIND, PARENT, VIEW, TrackingStore, client, place
from ctxbench.harness.folder.run import load, steps_of
from ctxbench.metrics.figures import growth, turn_means
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording

pytest.importorskip("mlflow")
pytestmark = [  # a store alone takes seconds to be made; `make test-live` runs these, as CI does
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # MLflow's own libraries warn of one another
]
MODEL = "claude-sonnet-5"
STRATEGIES = ("none", "window(max_tokens=400)", "last_turn")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, which takes seconds to be made: it is copied."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    client(TrackingStore(f"sqlite:///{path}")).search_experiments()
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, empty: Path) -> Path:
    """Two runs of the same recordings, the second with another strategy, both logged in the store beside them."""
    folder = tmp_path_factory.mktemp("made")
    path = recording(folder, conversations=5, turns=6)
    shutil.copy(empty, folder / "mlflow.db")
    for name, strategies in (("one", STRATEGIES), ("two", (*STRATEGIES[:2], "summary(every=2)"))):
        execute(plan(path, strategies=strategies), folder / name)
        log_runs([folder / name], (MODEL,))
    return folder


@pytest.fixture
def runs(empty: Path, tmp_path: Path) -> Path:
    """A folder of runs with an empty store."""
    (tmp_path / "runs").mkdir()
    shutil.copy(empty, tmp_path / "runs" / "mlflow.db")
    return tmp_path / "runs"


def logged(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The parent that was logged of a run, and its children by their names."""
    into = client(place(folder))
    (experiment,) = into.search_experiments(filter_string="name = 'ctxbench'")
    found = into.search_runs([experiment.experiment_id], max_results=1000)
    named = [each for each in found if each.data.tags["mlflow.runName"] == folder.name]
    (parent,) = [each for each in named if each.data.tags[KIND] == "bench"]
    children = [each for each in found if each.data.tags.get(PARENT) == parent.info.run_id]
    return parent, {each.data.tags["mlflow.runName"]: each for each in children}


def test_what_is_logged(made: Path) -> None:
    """A parent with the run's sizes and report, and a child for each strategy: parameters, figures, data, curves."""
    parent, children = logged(made / "one")
    run, into = load(made / "one"), client(place(made / "one"))
    assert set(children) == set(STRATEGIES)
    assert (parent.info.status, parent.data.metrics["conversations"]) == ("FINISHED", 5)
    assert parent.data.tags["version.ctxbench"] == run.manifest.versions["ctxbench"]
    files = {each.path for each in into.list_artifacts(parent.info.run_id)}
    assert files == {"figures.json", "manifest.json", "report", "verdict.txt"}
    verdict = Path(into.download_artifacts(parent.info.run_id, "verdict.txt")).read_text()
    assert parent.data.tags["ctxbench.verdict"].split()[0] in verdict
    assert parent.data.tags["mlflow.note.content"].startswith(f"**{parent.data.tags['ctxbench.verdict']}**")
    window = children["window(max_tokens=400)"]
    assert window.data.params["window.max_tokens"] == "400"
    assert window.data.params["encoding"] == "o200k_base"
    (data,) = window.inputs.dataset_inputs
    assert run.manifest.digest.startswith(data.dataset.digest)
    assert json.loads(data.dataset.profile)["conversations"] == 5
    history = into.get_metric_history(children["last_turn"].info.run_id, "growth/tokens_sent")
    curve = growth(turn_means(steps_of(run)))
    curve = curve[curve.strategy == "last_turn"]
    assert {each.step: each.value for each in history} == dict(zip(curve.turn, curve.tokens_sent, strict=True))
    shared = into.get_metric_history(parent.info.run_id, "growth/tokens_full")
    assert {each.step: each.value for each in shared} == dict(zip(curve.turn, curve.tokens_full, strict=True))


def test_figures_are_those_of_compare(made: Path) -> None:
    """To the last digit, whatever the metric: totals, shares, money; before and after."""
    words = ("compare", "one", "two", "--model", MODEL, "--clock", "--json")
    found = json.loads(ctxbench(*words, cwd=made).stdout)
    sides = {"before": logged(made / "one")[1], "after": logged(made / "two")[1]}
    quality = logged(made / "one")[0].data.tags["ctxbench.quality"]
    names = metric_keys(bench(load(made / "one"), (MODEL,)).metrics, quality)
    compared = 0
    for row in found["comparisons"]:
        for side, children in sides.items():
            figure, name = row[side], row["strategy" if side == "after" else "against"]
            if isinstance(figure, (int, float)):
                assert children[name].data.metrics[names[row["metric"]]] == figure
                compared += 1
    assert compared > 80


def test_a_figure_that_is_missing_is_no_number(made: Path) -> None:
    """It is named with its reason, in a tag and in figures.json."""
    parent, children = logged(made / "one")
    none = children["none"]
    assert "survival" not in none.data.metrics
    assert "survival: undefined" in none.data.tags["ctxbench.missing"]
    file = client(place(made / "one")).download_artifacts(parent.info.run_id, "figures.json")
    exact = json.loads(Path(file).read_text())["none"]
    assert exact["missing"]["survival"].startswith("undefined")
    assert exact["figures"]["tokens_sent"]["value"] == none.data.metrics["tokens_sent"]
    assert not any(math.isnan(each) for each in none.data.metrics.values())


def test_a_view_opens_on_the_measures(made: Path) -> None:
    """The experiment has a saved view for the run: its filter finds the strategies, its charts their figures."""
    into = client(place(made / "one"))
    (experiment,) = into.search_experiments(filter_string="name = 'ctxbench'")
    views = {text for key, text in experiment.tags.items() if key.startswith(VIEW)}
    (view,) = [view for view in map(json.loads, views) if view["name"] == "one: measures"]
    assert max(map(len, views)) <= 5000, "MLflow's limit for the tag of an experiment"
    state = json.loads(zlib.decompress(b64decode(view["state"].removeprefix("deflate;"))))
    children = into.search_runs([experiment.experiment_id], state["searchFilter"])
    assert {child.data.tags["mlflow.runName"] for child in children} == set(STRATEGIES)
    charts = [chart["metricKey"] for chart in state["compareRunCharts"]]
    assert charts[:3] == ["1 net saved", "2 cost saved", "3 cache hit rate"]
    for child in children:
        assert set(charts) <= set(child.data.metrics)
        numbered = [name for name in child.data.metrics if name[0].isdecimal()]
        assert sorted(child.data.metrics)[: len(numbered)] == numbered == charts[: len(numbered)]


def test_again_is_once(made: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same run is not logged twice; what was billed under other models is written anew."""
    run = Path(shutil.copytree(made / "one", runs / "one"))
    ids = []
    for model, said in ((MODEL, "logged in MLflow"), (MODEL, "already in MLflow"), ("gpt-5.6", "logged again")):
        log_runs([run], (model,))
        assert said in capsys.readouterr().out
        parent, children = logged(run)
        ids.append(parent.info.run_id)
        assert f"cost/{model}" in children["none"].data.metrics
    assert ids[0] == ids[1] != ids[2]
    assert f"cost/{MODEL}" not in children["none"].data.metrics


def test_what_was_broken_off_gives_way(
    made: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that goes away half-way leaves a parent that is not whole: the next logging replaces it."""
    from mlflow import MlflowClient

    run = Path(shutil.copytree(made / "one", runs / "one"))
    whole, calls = MlflowClient.log_inputs, []

    def breaking(self: Any, *given: Any, **named: Any) -> None:
        calls.append(given)
        if len(calls) == 3:
            raise OSError("the connection was reset")
        whole(self, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, "log_inputs", breaking)
        assert not log_runs([run], (MODEL,))
        assert "reset" in capsys.readouterr().err
    assert log_runs([run], (MODEL,))
    parent, children = logged(run)
    assert parent.info.status == "FINISHED"
    assert len(children) == 3


def test_few_requests(made: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy is four requests: its run, all figures and parameters at once, its recordings, its end."""
    run = Path(shutil.copytree(made / "one", runs / "one"))
    watched = Mock(wraps=client(place(run)))
    monkeypatch.setattr("ctxbench.harness.export.mlflow.client", lambda _: watched)
    assert log_runs([run], (MODEL,))
    calls = Counter(name for name, *_ in watched.method_calls)
    each = ("create_run", "log_batch", "log_inputs", "set_terminated")
    assert {calls[name] for name in each} == {len(STRATEGIES) + 1}
    assert calls.total() == 4 * (len(STRATEGIES) + 1) + 6


def test_a_run_that_is_logged_at_its_end(runs: Path) -> None:
    """`run --mlflow` logs the costs that it prints; where that cannot be, the run is kept, with exit code 2."""
    (runs / "mine.toml").write_text(f'[models."{MODEL}"]\ninput = 30.0\noutput = 150.0\n')
    own = ("-m", MODEL)
    (runs / "ctxbench.toml").write_text('prices = "mine.toml"\n')
    path = recording(runs, conversations=2, turns=3)
    command = ("run", path, "-s", "none", "-o", "one", "--answerer", "none", "--mlflow")
    assert "one: logged in MLflow: sqlite:///" in ctxbench(*command, *own, cwd=runs).stdout
    billed = json.loads(ctxbench("bill", "one", *own, "--json", cwd=runs).stdout)["bills"]
    cost = logged(runs / "one")[1]["none"].data.metrics[f"cost/{MODEL}"]
    assert cost == pytest.approx(next(row["cost"] for row in billed if row["strategy"] == "none"))
    (runs / "mlflow.db").write_bytes(b"no database")
    done = ctxbench(*command, cwd=runs, code=2)
    assert "cannot be written to" in done.stderr
    assert "results: one/" in done.stdout


def test_a_store_of_a_stranger(empty: Path, runs: Path, made: Path) -> None:
    """A store beside the run whose experiment, or whose trigger, sends files elsewhere gets none."""
    shutil.copytree(made / "one", runs / "one")
    ours = (runs / "mlartifacts").as_uri()
    for artifacts, rule in (
        ("http://192.0.2.7/x", ""),
        (ours, "CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END"),
    ):
        shutil.copy(empty, runs / "mlflow.db")
        client(place(runs / "one")).create_experiment("ctxbench", artifacts)
        with closing(sqlite3.connect(runs / "mlflow.db")) as store:
            store.executescript(rule)
        said = ctxbench("export", "mlflow", "one", "--model", MODEL, cwd=runs, code=2).stderr
        assert "it was not made here" in said


def test_a_server_that_is_down(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said how to log the run later; keys and passwords are not said."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    secret = "hunter2hunter2"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{secret}@127.0.0.1:{port}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    down = ctxbench("export", "mlflow", "one", "--model", MODEL, cwd=made, code=2)
    assert "connection refused" in down.stderr
    assert "To log it when MLflow is available: " in down.stderr
    assert f"export mlflow one -m {MODEL}" in down.stderr
    assert secret not in down.stdout + down.stderr
