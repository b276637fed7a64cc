"""Runs as Prometheus reads them."""

from pathlib import Path

import pytest

from ctxbench.harness.bill.bill import bill
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.export.bench import prometheus
from ctxbench.harness.folder.run import load
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording

parser = pytest.importorskip("prometheus_client.parser")
MODELS = ("claude-sonnet-5", "gpt-5.6")
STRATEGIES = ("none", "window(max_tokens=400)", "facts", "summary(every=2)")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a recording."""
    folder = tmp_path_factory.mktemp("exporting")
    execute(plan(recording(folder, conversations=4, turns=6), strategies=STRATEGIES), folder / "run")
    return folder / "run"


def parsed(text: str) -> dict[tuple[str, ...], float]:
    """Samples by their name and labels."""
    return {
        (sample.name, *(f"{key}={each}" for key, each in sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_tokens_are_those_of_the_bill(run: Path) -> None:
    """Input and cached are the prompt, by strategy, scenario and model; the names are the document's."""
    found = parsed(prometheus(load(run), MODELS))
    billed = bill(load(run), [Scheme(model) for model in MODELS]).conversations()
    for (model, strategy), rows in billed.groupby(["model", "strategy"], observed=True):
        labels = f"model={model}", "scenario=some.jsonl", f"strategy={strategy}"
        usage = {
            kind: found["agent_token_usage_total", *labels, f"type={kind}"] for kind in ("input", "cached", "output")
        }
        assert usage["cached"] == rows.read.sum()
        assert usage["input"] + usage["cached"] == rows.tokens.sum()
        assert usage["output"] == rows.output.sum()
        assert found["agent_cache_hit_rate", *labels] == rows.found.sum() / rows.tokens.sum()


def test_savings_and_summaries(run: Path) -> None:
    """What is saved is history less sent, negative where more is sent; summaries are counted, 0 where none are made."""
    found = parsed(prometheus(load(run), MODELS))
    steps, events = load(run).table("steps"), load(run).table("events")
    for name, rows in steps.groupby("strategy", observed=True):
        labels = "scenario=some.jsonl", f"strategy={name}"
        assert found["agent_token_savings_total", *labels] == (rows.tokens_full - rows.tokens_sent).sum()
        made = ((events.strategy == name) & (events.kind == "summarised")).sum()
        assert found["agent_summarization_total", *labels] == made
        assert (made > 0) == (name == "summary(every=2)")


def test_names(tmp_path: Path) -> None:
    """Embedded conversations are of their scenario; a file's name with line breaks and quotes makes one label."""
    path = recording(tmp_path, conversations=1, turns=2).rename(tmp_path / 'a"}\nfake_total{x="\x1b[2J.jsonl')
    execute(plan(path, "traps", strategies=("none",)), tmp_path / "run")
    text = prometheus(load(tmp_path / "run"), MODELS[:1])
    labels = {label for _, *found in parsed(text) for label in found if label.startswith("scenario=")}
    assert labels == {'scenario=a"}·fake_total{x="·[2J.jsonl', "scenario=traps"}


def test_the_command(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file as the textfile collector reads it; what is said of a place that cannot be, and without the library."""
    ctxbench("export", "prometheus", run, "--to", "a.prom", "-m", MODELS[0], "-m", MODELS[1], cwd=tmp_path)
    text = (tmp_path / "a.prom").read_text()
    assert text == prometheus(load(run), MODELS)
    assert "# TYPE agent_token_usage_total counter" in text
    (tmp_path / "file").write_text("")
    assert "cannot be written" in ctxbench("export", "prometheus", run, "--to", "file/x", cwd=tmp_path, code=2).stderr
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(Exception, match=r"ctxbench\[prometheus\]"):
        prometheus(load(run), MODELS)
