"""What trackers are given, under which names; Weights & Biases read back from its own files."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

import ctxbench
from ctxbench.cli.export import logged
from ctxbench.harness.export import mlflow
from ctxbench.harness.export.bench import measures, metric_keys, name_of, parameters
from ctxbench.harness.export.mlflow import LogResult, TrackingStore
from ctxbench.scenarios.errors import MissingExtra, NotLogged, RunError, SpecError
from tests.harness.runs import recording

STRATEGIES = ("none", "window(max_tokens=400)", "summary(every=2)")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of four conversations."""
    folder = tmp_path_factory.mktemp("tracked")
    path = recording(folder, conversations=4, turns=5)
    return ctxbench.run(path, strategies=STRATEGIES, model="claude-sonnet-5", out=folder / "run")


def test_the_measures_come_first() -> None:
    """What a run is judged by: of the bill under the first model, and of the measures of quality the best one."""
    names = ["steps", "grounding", "cost_saving(a)", "cost_saving(b)", "context_recall", "net_saving"]
    assert measures(names) == ["net_saving", "cost_saving(a)", "context_recall"]
    keys = sorted(metric_keys(names).values())
    assert keys == ["1 net saved", "2 cost saved", "6 context recall", "cost_saving/b", "grounding", "steps"]


def test_parameters_of_a_chain() -> None:
    """Each stage's by its name; the second of a name by its number; what looks like a secret is hidden."""
    logged = parameters("window(max_tokens=9) | archive | window(max_tokens=3)")
    assert (logged["window.max_tokens"], logged["window.2.max_tokens"]) == ("9", "3")
    hidden = parameters("my.py:Mine(url='https://me:pwpwpwpw@host/x?token=ab12')")
    assert not any(secret in text for text in hidden.values() for secret in ("pwpwpwpw", "ab12"))


def test_names() -> None:
    """A bill's model is a group of its own; the digest of a prompt stays where figures differ in nothing else."""
    assert name_of("cost(openai/gpt-4o@2024)") == "cost/openai/gpt-4o_2024"
    assert name_of("context_recall") == "context_recall"
    old, new, other = (f"abstained(m, llm(model='g', prompt='{digest}'))" for digest in ("a1", "b2", "c3"))
    assert metric_keys([old]) == {old: "abstained/m/llm_model__g__"}
    assert metric_keys([new])[new] == metric_keys([old])[old]
    assert len(set(metric_keys([new, other]).values())) == 2


LOCAL = (
    *("sqlite:///runs/mlflow.db", "file:///home/me/mlruns", "/home/me/mlruns", "mlruns", "C:\\mlruns"),
    *("http://localhost:5000", "http://me:secret@127.0.0.1:5000", "https://[::1]/mlflow"),
)
REMOTE = (
    *("https://mlflow.example.org", "http://localhost.example.org", "http://10.0.0.7:5000", "http://["),
    *("databricks", "databricks://profile", "postgresql://db/mlflow"),
)


def test_what_is_on_this_machine() -> None:
    """Files and this machine's own addresses are local, whatever else an address has; services and others are not."""
    assert all(TrackingStore(uri).is_local for uri in LOCAL)
    assert not any(TrackingStore(uri).is_local for uri in REMOTE)


def test_a_server_gets_texts_if_asked(
    run: ctxbench.BenchmarkRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By default a server elsewhere gets no texts, and a line says so; --text and --no-text are obeyed."""
    with_text: list[bool] = []

    def write(
        _bench: object, _where: object, _at: int, report: Callable[[Path], object], name: str, *, text: bool
    ) -> LogResult:
        report(tmp_path)
        assert (tmp_path / "report" / "report.html").is_file()
        with_text.append(text)
        return LogResult("logged", "there", name, text, "look")

    monkeypatch.setattr(mlflow, "write", write)
    told = []
    server, file = "https://mlflow.example.org", "sqlite:///mlflow.db"
    for uri, text in ((server, None), (server, True), (file, None), (file, False)):
        logged([run.folder], (), uri, text)
        told.append("without texts of the recordings" in capsys.readouterr().err)
    assert with_text == [False, True, True, False]
    assert told == [True, False, False, False]


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_wandb(run: ctxbench.BenchmarkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address nothing is sent: a file per strategy holds its parameters, its curves and its figures."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "")
    assert run.log("wandb") == f"cd {run.folder.parent} && wandb sync"
    files = sorted((run.folder.parent / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 3
    names = {}
    for file in files:
        records = list(wandb_records(file))
        (made,) = [record.run for record in records if record.HasField("run")]
        assert (made.project, made.job_type) == ("ctxbench", "strategy")
        names[made.display_name] = records
    assert set(names) == set(STRATEGIES)
    records = names["window(max_tokens=400)"]
    history = [record.history for record in records if record.HasField("history")]
    assert len(history) == run.growth().turn.nunique()
    summaries = [record.summary for record in records if record.HasField("summary")]
    keys = {item.key or "/".join(item.nested_key) for summary in summaries for item in summary.update}
    assert {"1 net saved", "tokens_sent", "missing"} <= keys


def wandb_records(file: Path) -> Iterator[object]:
    """Yield the records of a W&B file: LevelDB's log, in blocks of 32 KiB, after a head of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, whole = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if (1 << 15) - place % (1 << 15) < 7:  # the end of a block has no room for a record
            place += (1 << 15) - place % (1 << 15)
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(whole)
            whole = b""


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_without_the_library(run: ctxbench.BenchmarkRun, tracker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says which extra brings it."""
    monkeypatch.setitem(sys.modules, tracker, None)
    with pytest.raises(MissingExtra, match=rf"{tracker} is not installed: pip install 'ctxbench\[{tracker}\]'"):
        run.log(tracker)  # type: ignore[arg-type]


def test_a_server_of_something_else(run: ctxbench.BenchmarkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply that wandb gives up on is one error."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setattr("wandb.init", Mock(side_effect=wandb.sdk.mailbox.HandleAbandonedError))
    with pytest.raises(NotLogged, match="http://host cannot be written to: no reply that wandb can read"):
        run.log("wandb", "http://host")


def test_mistakes(run: ctxbench.BenchmarkRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown tracker, and a run in a temporary folder, which has no place beside it."""
    with pytest.raises(SpecError, match="unknown tracker 'neptune': give mlflow, wandb"):
        run.log("neptune")  # type: ignore[arg-type]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary = ctxbench.run(recording(tmp_path, conversations=1, turns=2), strategies="none")
    with pytest.raises(RunError, match="is temporary: say where to log with to="):
        temporary.log("wandb")
