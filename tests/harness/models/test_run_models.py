"""`ctxbench run` with models: recorded and replayed, within a limit, by several workers, and what it says then."""

import json
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ctxbench.harness.engine.plan import Plan, RunInputs
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.schema import Spending, signed
from ctxbench.harness.models import ModelAccess, Settings
from ctxbench.scenarios.errors import SetupError, SpecError
from tests.harness.command import ctxbench, said
from tests.harness.models.server import Server
from tests.harness.runs import bytes_of, recording

SUMMARY = "summary(threshold=8, every=8, language='en')"


def test_a_run_is_recorded_and_replayed(server: Server, tmp_path: Path) -> None:
    """A run with a provider's model charges its calls; replayed by two workers without a server it is the same run."""
    path = recording(tmp_path, conversations=2)
    words = ("run", path, "-s", SUMMARY, "--summariser", "openai/gpt-4o-mini", "--cassette", "c.sqlite")
    server.text = "The user asked questions and got results."
    first = ctxbench(*words, "-o", "a", cwd=tmp_path)
    calls = len(server.seen)
    assert calls > 4
    assert f"models: {calls} calls, ${calls * 0.00021:.4f}; replies are in c.sqlite" in said(first.stderr)
    server.acts = ["status 500"] * 99
    again = ctxbench(*words, "--replay", "-o", "b", "-j", 2, cwd=tmp_path)
    assert len(server.seen) == calls
    assert not any("models:" in line or "failed" in line for line in said(again.stderr))
    one, other = (
        {
            name: data
            for name, data in bytes_of(tmp_path / folder).items()
            # The manifest has what the run cost, and the bill's tables have the manifest's digest.
            if name not in ("manifest.json", ".account") and not name.startswith("bills/")
        }
        for folder in "ab"
    )
    assert one == other
    paid, free = (load(tmp_path / name).manifest for name in "ab")
    assert signed(replace(paid, spent=UNSET)) == free
    assert isinstance(paid.spent, Spending)
    assert (paid.spent.calls, paid.spent.dollars) == (calls, pytest.approx(calls * 0.00021))
    assert json.loads(ctxbench("report", "a", "--json", cwd=tmp_path).stdout)["spent"]["calls"] == calls
    assert [each.name for each in tmp_path.glob("c.sqlite*")] == ["c.sqlite"]
    manifest = load(tmp_path / "a").manifest
    assert manifest.plan.summariser == "openai/gpt-4o-mini"
    assert server.url not in str(manifest)
    events = load(tmp_path / "a").table("events")
    called = events[events.kind == "called"]
    assert len(called) == calls
    assert called.cost.sum() == pytest.approx(calls * 0.00021)
    ctxbench("run", path, "-s", SUMMARY, "-o", "a", cwd=tmp_path)
    grown = load(tmp_path / "a").manifest
    assert grown.plan.summariser == "openai/gpt-4o-mini"
    assert [name for name in grown.plan.strategies if "summariser='offline'" in name] == [*grown.plan.strategies][1:]


def test_a_run_that_reaches_its_limit(server: Server, tmp_path: Path) -> None:
    """The run finishes, all workers together spend no more, and the end says what was not done and why."""
    path = recording(tmp_path, conversations=4)
    words = ("run", path, "-s", SUMMARY, "--summariser", "openai/gpt-4o-mini", "--cassette", "c")
    done = ctxbench(*words, "--spend-limit", 0.001, "-j", 2, "-o", "r", cwd=tmp_path)
    assert len(server.seen) * 0.00021 <= 0.001
    lines = said(done.stderr)
    assert lines[-2].startswith(f"models: {len(server.seen)} calls, $0.000")
    assert lines[-1].startswith(
        "missing: 48 of 52 replies of the summariser openai/gpt-4o-mini (the spend limit of $0.001"
    )
    assert any(line.startswith("the spend limit of $0.001 was reached: ") for line in lines)
    assert any(
        line.startswith("failed ")
        and "times: openai/gpt-4o-mini: the spend limit of $0.001 is reached; what it would have" in line
        for line in lines
    )
    events = load(tmp_path / "r").table("events")
    assert (events.kind == "failed").sum() > 0


def test_a_search_that_reaches_its_limit(server: Server, tmp_path: Path) -> None:
    """All its trials together, and the same command again, spend no more; a higher limit completes it."""
    path = recording(tmp_path, conversations=4)
    strategy = "summary(threshold=?[4..12], every=8, summariser='openai/gpt-4o-mini')"
    search = ("tune", strategy, path, "-n", 3, "--cassette", "c")
    reached = ("-o", "r", "--spend-limit")
    first = ctxbench(*search, *reached, 0.001, cwd=tmp_path, code=2)
    calls = len(server.seen)
    assert 0 < calls * 0.00021 <= 0.001
    assert any(line.startswith("the spend limit of $0.001 was reached: ") for line in said(first.stderr))
    again = ctxbench(*search, *reached, 0.001, cwd=tmp_path, code=2)
    assert len(server.seen) == calls
    assert any("by earlier commands on this run" in line for line in said(again.stderr))
    whole = ctxbench(*search, *reached, 1, "--strict", cwd=tmp_path)
    assert len(server.seen) > calls
    assert "limit" not in whole.stderr


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """A run goes on without waiting at every step, says what it waits for, and that no model answered: exit code 2."""
    path = recording(tmp_path, conversations=2)
    words = ("run", path, "-s", SUMMARY, "-s", "none", "--cassette", "c", "-o", "r")
    model = "openai/m(retries=3, api_base='http://127.0.0.1:9/v1')"
    done = ctxbench(*words, "--summariser", model, cwd=tmp_path, code=2)
    lines = said(done.stderr)
    waits = [line for line in lines if line.startswith("openai/m: the connection failed or broke off")]
    assert [line.rpartition("reachable?: ")[2] for line in waits] == ["try 2 of 4 in 1 s (later ones are not told)"]
    assert lines[-1].startswith("error: the summariser openai/m gave no usable reply, of ")
    assert f"that {SUMMARY} asked for: was given up for the rest of the run: the connection failed" in lines[-1]
    assert lines[-1].endswith(
        "reachable? Once that is mended, the same command asks for what failed, and for nothing else"
    )
    [given_up] = [line for line in lines[:-1] if "was given up for the rest of the run" in line]
    missed = (load(tmp_path / "r").table("events").kind == "failed").sum() - 1
    assert missed > 2
    assert f"{missed} calls not made. Once it answers, the same command completes the run and replays" in given_up
    assert any(line.startswith("failed 1 time: openai/m: the connection failed") for line in lines)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings("gpt-4o-minni"), r"unknown model 'gpt-4o-minni'; did you mean 'gpt-4o-mini'"),
        (Settings("zzz"), "give `offline`, `local`, or a litellm name, PROVIDER/MODEL"),
        (Settings("openai/mine", spend_limit=1), "the price of openai/mine is not known"),
        (Settings(spend_limit=-1), "a spend limit of -1 US dollars cannot be"),
        (Settings("openai/m", replay=True, cassette="none.sqlite"), "there is no such cassette"),
        (Settings("openai/m", cassette=__file__), "test_run_models.py: file is not a database"),
        (Settings("openai/m", cassette="."), r"^\.: "),
        (Settings(usual=ModelAccess("foo")), "the api base 'foo' is no address of a server: write it like http://"),
        (Settings("openai/m(api_base='https://me:pw@host/v1')"), "the api base at host has a user or password in it"),
        (Settings(usual=ModelAccess("http://host:port/v1")), "is no address of a server"),
    ],
)
def test_what_cannot_be_run(settings: Settings, says: str) -> None:
    """A model, price, limit, cassette or weights that cannot be used is one line, before anything is run."""
    with pytest.raises(SetupError, match=says) as caught:
        Plan(RunInputs(("standard",)), ("none",), models=settings)
    assert "\n" not in str(caught.value)


def test_parameters_of_models() -> None:
    """They are taken out of the name, over those of the environment; a wrong one is said with what there is."""
    settings = Settings("openai/m(timeout=5)", answerer="local(gguf='m.gguf', rounds=0)", usual=ModelAccess(retries=9))
    assert (settings.summariser, settings.answerer) == ("openai/m", "local")
    assert settings.access_of("openai/m") == ModelAccess(timeout=5.0, retries=9)
    assert settings.access_of("local:m@1") == ModelAccess(gguf="m.gguf", rounds=0, retries=9)
    assert settings.access_of("openai/other") == ModelAccess(retries=9)
    for text, says in (
        ("openai/m(timeot=5)", "model 'openai/m' has no parameter 'timeot'; .* did you mean 'timeout'"),
        ("openai/m(timeout=0)", "model 'openai/m': timeout must be above 0"),
        ("openai/m(retries='no')", "retries must be a whole number"),
        ("openai/m(5)", "parameters are written name=value"),
        ("openai/m(timeout=5", "cannot read this model"),
    ):
        with pytest.raises(SpecError, match=says):
            Settings(text)


@pytest.mark.parametrize(
    "strategy",
    [
        "summary(summariser='offlne')",
        "archive(summariser='offlne')",
        "facts(extractor='model', summariser='offlne')",
        "last_turn | summary(summariser='offlne')",
    ],
)
def test_a_model_that_a_strategy_names(strategy: str) -> None:
    """A name that a strategy gives a model is checked as --summariser is, and the line says whose it is."""
    stage = strategy.rpartition(" | ")[2]
    with pytest.raises(SetupError) as caught:
        Plan(RunInputs(("standard",)), ("none", strategy))
    assert str(caught.value).startswith(stage.partition("(")[0])
    assert "unknown model 'offlne'; did you mean 'offline'" in str(caught.value)


@pytest.mark.parametrize("strategy", ["facts(extractor='model')", "facts(extractor='model', summariser='offline')"])
def test_facts_by_no_model(strategy: str) -> None:
    """Facts by the offline model, which reads no instruction, are refused before the run, in a chain too."""
    for chain in (strategy, f"{strategy} | window(max_tokens=4000)"):
        with pytest.raises(SetupError, match="the model `offline` picks sentences and cannot list facts") as caught:
            Plan(RunInputs(("standard",)), (chain,))
        assert str(caught.value).startswith(strategy)
