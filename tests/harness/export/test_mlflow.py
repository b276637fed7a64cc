"""Runs in MLflow, read back from it."""

from __future__ import annotations

import json
import math
import os
import shutil
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from ctxbench.cli.export import log
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.export.bench import bench, name_of
from ctxbench.harness.export.mlflow import (
    KIND,
    NOTE,
    PARENT,
    RUN,
    VIEW,
    TrackingStore,
    client,
    place,
    waiting,
)
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.steps import rows_of
from ctxbench.metrics.figures import growth
from ctxbench.scenarios.errors import NotLogged
from ctxbench.strategies.window import Window
from tests.harness.command import ctxbench
from tests.harness.export.conftest import free_port, serving
from tests.harness.runs import fail, plan, recording

pytestmark = [  # a store alone takes seconds to be made; `make test-live` runs these, as CI does
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # MLflow's own libraries warn of one another
]
MODELS = ("claude-sonnet-5",)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same recordings, the second with another window."""
    folder = tmp_path_factory.mktemp("made")
    path = recording(folder, conversations=5, turns=6)
    execute(plan(path), folder / "one")
    execute(plan(path, strategies=("none", "window(max_tokens=400)", "summary(every=2)")), folder / "two")
    return folder


@pytest.fixture
def run(made: Path, store: Path) -> Path:
    """A copy of the first run beside an empty store."""
    return Path(shutil.copytree(made / "one", store.parent / "one"))


def logged(folder: Path, name: str = "one") -> tuple[Any, dict[str, Any]]:
    """The parent that was logged of a run, and its children by their names."""
    into = client(place(folder))
    (found,) = into.search_experiments(filter_string="name = 'ctxbench'")
    runs = into.search_runs([found.experiment_id], max_results=1000)
    (parent,) = [each for each in runs if each.data.tags[KIND] == "bench" and each.data.tags["mlflow.runName"] == name]
    children = [each for each in runs if each.data.tags.get(PARENT) == parent.info.run_id]
    return parent, {each.data.tags["mlflow.runName"]: each for each in children}


def test_what_is_logged(run: Path) -> None:
    """A parent with the run's sizes, and a child for each strategy: parameters, figures, data, environment."""
    log(run, models=MODELS, report=False)
    parent, children = logged(run)
    assert set(children) == {"none", "window(max_tokens=400)", "last_turn"}
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["conversations"] == 5
    assert parent.data.tags["version.ctxbench"] == load(run).manifest.versions["ctxbench"]
    window = children["window(max_tokens=400)"]
    assert window.data.params["strategy"] == "window(max_tokens=400)"
    assert window.data.params["window.max_tokens"] == "400"
    assert window.data.params["encoding"] == "o200k_base"
    (data,) = window.inputs.dataset_inputs
    assert load(run).manifest.digest.startswith(data.dataset.digest)
    assert json.loads(data.dataset.profile)["conversations"] == 5
    assert "cost/claude-sonnet-5" in window.data.metrics


def test_figures_are_those_of_compare(run: Path, made: Path, store: Path) -> None:
    """To the last digit, whatever the metric: totals, shares, money; before and after."""
    two = Path(shutil.copytree(made / "two", store.parent / "two"))
    log(run, models=MODELS, report=False)
    log(two, models=MODELS, report=False)
    found = json.loads(ctxbench("compare", run, two, "--model", MODELS[0], "--clock", "--json", cwd=run).stdout)
    sides = {"before": logged(run)[1], "after": logged(run, "two")[1]}
    compared = 0
    for row in found["comparisons"]:
        for side, children in sides.items():
            figure = row[side]
            name = row["strategy" if side == "after" else "against"]
            if isinstance(figure, (int, float)):
                assert children[name].data.metrics[name_of(row["metric"])] == figure
                compared += 1
    assert compared > 80


def test_curves(run: Path) -> None:
    """Tokens by turn are a metric by step: those of the growth curve."""
    log(run, models=MODELS, report=False)
    _, children = logged(run)
    history = client(place(run)).get_metric_history(children["last_turn"].info.run_id, "growth/tokens_sent")
    curve = growth(rows_of(load(run), "steps"))
    curve = curve[curve.strategy == "last_turn"]
    assert {each.step: each.value for each in history} == dict(zip(curve.turn, curve.tokens_sent, strict=True))


def test_a_figure_that_is_missing_is_no_number(run: Path) -> None:
    """It is named with its reason, in a tag and in figures.json."""
    log(run, models=MODELS, report=False)
    _, children = logged(run)
    none = children["none"]
    assert "survival" not in none.data.metrics
    assert "survival: undefined" in none.data.tags["ctxbench.missing"]
    file = client(place(run)).download_artifacts(none.info.run_id, "figures.json")
    exact = json.loads(Path(file).read_text())
    assert exact["missing"]["survival"].startswith("undefined")
    assert exact["figures"]["tokens_sent"]["value"] == none.data.metrics["tokens_sent"]
    assert not any(math.isnan(each) for each in none.data.metrics.values())


def test_a_view_opens_on_the_measures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The experiment has a saved view for the run: its filter finds the strategies, its charts their figures.

    The page that compares runs opens on the first figure of a run: that is the first measure.
    """
    log(run, models=MODELS, report=False)
    into = client(place(run))
    (experiment,) = into.search_experiments(filter_string="name = 'ctxbench'")
    ((key, text),) = [(key, text) for key, text in experiment.tags.items() if key.startswith(VIEW)]
    assert len(text) <= 5000, "MLflow's limit for the tag of an experiment"
    assert f"viewStateShareKey={key.removeprefix(VIEW)}" in capsys.readouterr().out
    view = json.loads(text)
    assert view["name"] == "one: measures"
    packed = view["state"].removeprefix("deflate;")
    state = json.loads(zlib.decompress(b64decode(packed)))
    children = into.search_runs([experiment.experiment_id], state["searchFilter"])
    assert {child.data.tags["mlflow.runName"] for child in children} == {"none", "window(max_tokens=400)", "last_turn"}
    charts = [chart["metricKey"] for chart in state["compareRunCharts"]]
    assert charts[:3] == ["net_saving", "cost_saving/claude-sonnet-5", "cache_hit_rate/claude-sonnet-5"]
    for child in children:
        assert set(charts) <= set(child.data.metrics)
        assert next(iter(child.data.metrics)) == "net_saving"
    log(run, models=MODELS, report=False)
    assert len(into.get_experiment(experiment.experiment_id).tags) == len(experiment.tags)


def test_again_is_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same run is not logged twice, nor is a copy of it; what was billed under other models is written anew."""
    log(run, models=MODELS, report=False)
    before = logged(run)[0].info.run_id
    log(run, models=MODELS, report=False)
    assert "already in MLflow" in capsys.readouterr().out
    assert logged(run)[0].info.run_id == before
    log(run, models=("gpt-5.6",), report=False)
    assert "logged again" in capsys.readouterr().out
    parent, children = logged(run)
    assert parent.info.run_id != before
    assert "cost/gpt-5.6" in children["none"].data.metrics
    assert "cost/claude-sonnet-5" not in children["none"].data.metrics


def test_what_was_broken_off_gives_way(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that goes away half-way leaves a parent that is not whole: the next logging replaces it."""
    from mlflow import MlflowClient

    whole, calls = MlflowClient.log_inputs, []

    def breaking(self: Any, *given: Any, **named: Any) -> None:
        calls.append(given)
        if len(calls) == 3:
            raise OSError("the connection was reset")
        whole(self, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, "log_inputs", breaking)
        with pytest.raises(NotLogged, match="reset"):
            log(run, models=MODELS, report=False)
    assert (run / NOTE).is_file()
    log(run, models=MODELS, report=False)
    assert not (run / NOTE).exists()
    parent, children = logged(run)
    assert parent.info.status == "FINISHED"
    assert len(children) == 3


def test_strategies_that_fail(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are over what every strategy finished; one that finished none has no figures, and FAILED."""
    path = recording(tmp_path, conversations=4, turns=4)
    fail(monkeypatch, Window, "question 1")
    run = store.parent / "one"
    execute(plan(path), run)
    found = bench(load(run), rows_of)
    assert (found.sizes["compared"], found.sizes["failed"]) == (3, 1)
    none, window, _ = found.entries
    steps = load(run).table("steps")
    kept = steps[(steps.conversation != "c1") & (steps.strategy == "none")]
    assert none.figures["tokens_sent"] == kept.tokens_sent.sum()
    assert list(window.failed) == ["c1"]
    fail(monkeypatch, Window, "question")
    execute(plan(path), run, overwrite=True)
    log(run, models=MODELS, report=False)
    children = logged(run)[1]
    assert children["window(max_tokens=400)"].info.status == "FAILED"
    assert children["window(max_tokens=400)"].data.metrics == {"conversations_failed": 4}
    assert children["none"].data.metrics["tokens_sent"] == steps[steps.strategy == "none"].tokens_sent.sum()


def test_a_run_that_is_logged_at_its_end(tmp_path: Path, store: Path) -> None:
    """`run --mlflow` logs into the store beside the run; where that cannot be, the run is kept, with exit code 2."""
    path = recording(tmp_path, conversations=2, turns=3)
    command = ("run", path, "-s", "none", "-s", "last_turn", "-o", "runs/one", "--no-answers", "--mlflow")
    done = ctxbench(*command, cwd=tmp_path)
    assert "runs/one: logged in MLflow: sqlite:///" in done.stdout
    assert set(logged(store.parent / "one")[1]) == {"none", "last_turn"}
    store.write_bytes(b"no database")
    done = ctxbench(*command, cwd=tmp_path, code=2)
    assert "cannot be written to" in done.stderr
    assert "results: runs/one/" in done.stdout
    assert load(tmp_path / "runs" / "one").manifest.complete


def test_own_prices_are_logged(tmp_path: Path, store: Path) -> None:
    """`run --mlflow --prices` logs the costs that it prints, under the models it names."""
    (tmp_path / "mine.toml").write_text('[models."claude-sonnet-5"]\ninput = 30.0\noutput = 150.0\n')
    path = recording(tmp_path, conversations=2, turns=3)
    command = ("run", path, "-s", "none", "-o", "runs/one", "--no-answers", "-m", MODELS[0])
    printed = []
    for more in ((), ("--prices", "mine.toml")):
        done = ctxbench(*command, *more, "--mlflow", cwd=tmp_path)
        assert "runs/one: logged" in done.stdout
        cost = logged(store.parent / "one")[1]["none"].data.metrics[f"cost/{MODELS[0]}"]
        billed = json.loads(ctxbench("bill", "runs/one", "-m", MODELS[0], *more, "--json", cwd=tmp_path).stdout)
        assert cost == pytest.approx(next(row["cost"] for row in billed["bills"] if row["strategy"] == "none"))
        printed.append(cost)
    assert printed[1] > 2 * printed[0]


def test_no_mlflow(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library, one line says which extra brings it."""
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(Exception, match=r"ctxbench\[mlflow\]"):
        client(TrackingStore("sqlite:///nowhere.db"))


def test_a_server(run: Path, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's path: the server is down, the run waits; it is up, the run is logged, whole, and waits no more.

    Keys and passwords stand nowhere: not in what the server stored, not in what was said, not in the run's folder.
    """
    port, secret = free_port(), "hunter2hunter2"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{secret}@127.0.0.1:{port}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + secret)
    down = ctxbench("export", "mlflow", "runs/one", "--model", MODELS[0], cwd=tmp_path, code=2)
    assert "connection refused" in down.stderr
    assert "runs/one waits" in down.stderr
    assert list(waiting(tmp_path / "runs")) == [tmp_path / "runs" / "one"]
    (tmp_path / "far").mkdir()
    far = Path(shutil.copy(empty, tmp_path / "far" / "mlflow.db"))
    with serving(far, port):
        up = ctxbench("export", "mlflow", "--waiting", "--model", MODELS[0], cwd=tmp_path)
        assert "runs/one: logged in MLflow: http://***127.0.0.1" in up.stdout
        again = ctxbench("export", "mlflow", "runs/one", "--model", MODELS[0], cwd=tmp_path)
        assert "already in MLflow" in again.stdout
        into = client(TrackingStore(os.environ["MLFLOW_TRACKING_URI"]))
        identity = bench(load(run), rows_of).identity
        runs = into.search_runs(["1"], f"tags.`{RUN}` = '{identity}'")
        assert len(runs) == 4
        parent = next(each for each in runs if each.data.tags[KIND] == "bench")
        assert {each.path for each in into.list_artifacts(parent.info.run_id)} == {"manifest.json", "report"}
        inside = {Path(each.path).name for each in into.list_artifacts(parent.info.run_id, "report")}
        assert inside == {"report.html", "report.md", "tables"}
    assert not waiting(tmp_path / "runs")
    for file in (path for path in tmp_path.rglob("*") if path.is_file() and path.name != "server.log"):
        assert secret.encode() not in file.read_bytes(), file
    assert secret not in down.stdout + down.stderr + up.stdout + up.stderr
