"""`ctxbench list`: what can be named on the command line, and all that is known of one of them."""

import json
import tomllib
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import ctxbench as api
from ctxbench import cli
from ctxbench.cli.list_ import _strategies, list_
from ctxbench.scenarios.errors import MissingExtra, SpecError
from ctxbench.strategies.chain import NAMED, listed, lists, parse, strategies
from tests.harness.command import ctxbench
from tests.harness.runs import recording

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
Printed = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Printed:
    """Return a function that gives what `ctxbench list` prints, run in the folder of the examples."""
    monkeypatch.chdir(EXAMPLES)

    def text(what: str, name: str | None = None, as_json: bool = False) -> str:
        list_(what, name, as_json=as_json)
        return capsys.readouterr().out

    return text


def row(printed: Printed, what: str, name: str) -> Any:
    """The JSON of one thing."""
    return json.loads(printed(what, name, as_json=True))[name]


@pytest.mark.parametrize("name", sorted(strategies()))
def test_a_strategy_is_explained(name: str, printed: Printed) -> None:
    """The whole docstring and each parameter with what it may be and its default, in text and as JSON."""
    entry, shown, kind = row(printed, "strategies", name), printed("strategies", name), strategies()[name]
    takes = list(signature(kind).parameters)
    assert list(entry["types"]) == list(entry["parameters"]) == takes
    for line in (kind.__doc__ or "").splitlines():
        assert line.strip() in shown
        assert line.strip() in entry["doc"]
    for parameter in takes:
        assert f"\n      {parameter}: {entry['types'][parameter]} = " in shown
    assert entry["fails"][:40] in shown


def test_the_list_says_what_the_strategies_say() -> None:
    """The lines of the list, for which no strategy is imported, are the first sentences of the docstrings."""
    keys, told = ("group", "extra", "installed"), _strategies(in_brief=True)
    for name, row in _strategies().items():
        assert row["about"].split(". ")[0].rstrip(".") == told[name]["about"].split(". ")[0].rstrip(".")
        assert [told[name].get(key, True) for key in keys] == [row.get(key, True) for key in keys]
    assert all("doc" in row or "chain" in row or "parameters" not in row for row in told.values()), "one was imported"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_recipe_is_explained_with_its_stages(name: str, printed: Printed) -> None:
    """A recipe or preset: its chain, when it fails, and every strategy in it, once."""
    entry, shown = row(printed, "strategies", name), printed("strategies", name)
    assert entry["chain"] == NAMED[name].chain
    for stage, about in entry["stages"].items():
        assert f"\n{stage}" in shown
        assert about["doc"].splitlines()[-1].strip() in shown
    try:
        parsed = parse(name)
    except MissingExtra as missing:  # it is explained all the same
        pytest.skip(str(missing))
    stages = getattr(parsed, "stages", (parsed,))
    assert [strategies()[stage] for stage in entry["stages"]] == [type(stage) for stage in stages]


def test_a_strategy_in_a_file_is_explained(printed: Printed) -> None:
    """A file's class or function is explained like ours; a parameter without a default is required."""
    entry = row(printed, "strategies", "head_and_tail.py:HeadAndTail")
    assert entry["types"] == {"head": "int", "tail": "int"}
    assert entry["fails"] == "what matters was said in the middle"
    assert "      turns: int = 3\n" in printed("strategies", "last_turns.py:last_turns")


@pytest.mark.parametrize(
    ("what", "name"), [("scenarios", "standard"), ("metrics", "saving"), ("encodings", "chars4"), ("formats", "locomo")]
)
def test_other_things_are_shown_alone(what: str, name: str, printed: Printed) -> None:
    """One scenario, metric, encoding or format, and a format with its reader's options."""
    entry = row(printed, what, name)
    assert name in printed(what, name)
    assert what != "formats" or entry["types"] == {"corrections": "str"}


@pytest.mark.parametrize(
    ("what", "name", "meant"),
    [
        ("strategies", "windw", "'window'"),
        ("strategies", "head_and_tail.py:HeadAndTial", "'HeadAndTail'"),
        ("scenarios", "standrd", "unknown scenario 'standrd'; did you mean 'standard'"),
        ("encodings", "xyzzy", "unknown encoding 'xyzzy'; there are o200k_base, cl100k_base, deepseek, chars4"),
        ("archiv", None, "nothing is called 'archiv'; did you mean 'archive'"),
        ("encodigns", "o200k", "'encodigns' cannot be listed; did you mean 'encodings'"),
        ("nonsense", "o200k", "there are strategies, scenarios, formats, metrics, encodings"),
        ("caches", "mistral-large", "no cache rule is known for 'mistral-large'"),
        ("prices", "gpt5.6", "no model with a known price has 'gpt5.6' in its name; did you mean 'gpt-5.6"),
    ],
)
def test_an_unknown_name_gets_the_nearest(what: str, name: str | None, meant: str, printed: Printed) -> None:
    """A wrong name is an error that has the right one."""
    with pytest.raises(SpecError) as error:
        printed(what, name)
    assert meant in str(error.value)


def test_a_thing_is_found_whatever_its_kind(printed: Printed) -> None:
    """The name alone is enough: a strategy, a recipe, a scenario, a format, a metric, a model's price."""
    shown = {"archive": "archive(threshold=", "tiered_document": " = tiered(", "smoke": "smoke\n"}
    shown |= {"langfuse": "To export: ", "prefix_reuse": "prefix reuse", "claude-sonnet-5": "Prices in US dollars"}
    assert all(text in printed(name) for name, text in shown.items())


def test_a_format_says_where_it_is_kept_and_how_to_export_it(printed: Printed) -> None:
    """The folder of an agent stands with its format, and how to export it; both name formats that exist."""
    assert "Kept in ~/.codex/sessions/**/*.jsonl" in printed("formats", "codex")
    assert "To export: In the UI: Traces" in printed("formats", "langfuse")
    formats = json.loads(printed("formats", as_json=True))
    data = Path(cli.__file__).parent / "data"
    assert set(tomllib.loads((data / "exports.toml").read_text("utf-8"))) <= set(formats)
    readers = {agent["reader"] for agent in tomllib.loads((data / "agents.toml").read_text("utf-8"))["agents"]}
    assert all(any(name.startswith(reader) for name in formats) for reader in readers)


def test_prices_of_models_with_a_part_of_a_name(printed: Printed) -> None:
    """All that have it in their name, whoever sells them: prices by tier, batches, off-peak, the cache rule."""
    found = json.loads(printed("prices", "gpt-5.6", as_json=True))
    assert all("gpt-5.6" in name for name in found)
    model = found["gpt-5.6"]
    prices = {"input": 8.0, "output": 30.0, "cache_read": 0.8, "cache_write_5m": 10.0, "cache_write_1h": None}
    assert model["prices"][1] == {"above": 272_000, **prices}
    assert model["batch"][0]["input"] == 2.0
    assert (model["provider"], model["window"], model["off_peak"]) == ("openai", 922_000, None)
    assert model["cache_rule"]["mechanism"] == "boundary"


def test_prices_without_a_name(printed: Printed) -> None:
    """The makers' own models that have a cache rule, once each; the note says what is left out."""
    shown = printed("prices")
    names = [line.split()[0] for line in shown.splitlines() if line[:1].isalpha()]
    assert {"claude-opus-5", "gpt-5.6-sol", "gemini/gemini-2.5-pro", "deepseek-v4-pro"} <= set(names)
    assert not {"deepseek/deepseek-v4-pro", "vertex_ai/claude-sonnet-4-5", "gpt-4o-2024-11-20"} & set(names)
    assert "models with a known price" in shown


def test_the_list_of_libraries_has_every_adapter_agent_and_provider() -> None:
    """By entry point, `none` first; entries come where the list stands, without those that are named before it."""
    names = {text.partition("(")[0] for text in lists()["libraries"]}
    others = {
        name
        for name, kind in strategies().items()
        if hasattr(kind, "library") or kind.__module__.split(".")[-2] in ("agents", "providers")
    }
    assert others <= names <= set(strategies())
    chosen, left_out = listed(["archive", "@libraries"])
    assert chosen[:2] == ("archive", "none")
    assert len(set(chosen)) == len(chosen)
    assert all(line.startswith("left out: ") and "pip install 'ctxbench[adapter-" in line for line in left_out)
    with pytest.raises(SpecError, match="unknown list of strategies '@library'; did you mean 'libraries'"):
        listed(["@library"])


def test_a_run_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed entries are measured; a line names the others and their extra, and Python warns of them."""
    path = recording(tmp_path, conversations=1, turns=4, size=300)
    plain = ("--probes", "none", "--answerer", "none", "--json")
    done = ctxbench("run", path, "-s", "@libraries", *plain, "--out", tmp_path / "run", cwd=tmp_path)
    chosen, left_out = listed(["@libraries"])
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert tuple(manifest["plan"]["strategies"]) == chosen
    assert all(line in done.stderr for line in left_out)
    monkeypatch.setattr("ctxbench.api.runs.listed", lambda texts: (("none",), ["left out: a.b: a is not installed"]))
    with pytest.warns(UserWarning, match="a is not installed"):
        api.run(path, strategies="@libraries", probes="none", answers=False)
