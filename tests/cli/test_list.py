"""`ctxbench list WHAT NAME`: all that is known of one thing that can be named."""

from __future__ import annotations

import json
import tomllib
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from ctxbench import cli
from ctxbench.strategies.chain import NAMED, parse, strategies
from tests.harness.command import ctxbench

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def listed(*words: object) -> dict[str, Any]:
    """What `ctxbench list … --json` prints."""
    found: dict[str, Any] = json.loads(ctxbench("list", *words, "--json", cwd=EXAMPLES).stdout)
    return found


@pytest.mark.parametrize("name", sorted(strategies()))
def test_a_strategy_is_explained(name: str) -> None:
    """The whole docstring and each parameter with what it may be and its default, in text and as JSON."""
    row, shown = listed("strategies", name)[name], ctxbench("list", "strategies", name, cwd=EXAMPLES).stdout
    kind = strategies()[name]
    takes = list(signature(kind).parameters)
    assert list(row["types"]) == list(row["parameters"]) == takes
    for line in (kind.__doc__ or "").splitlines():
        assert line.strip() in shown
        assert line.strip() in row["doc"]
    for each in takes:
        assert f"\n      {each}: {row['types'][each]} = " in shown
    assert row["fails"][:40] in shown


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_recipe_is_explained_with_its_stages(name: str) -> None:
    """A recipe or preset: its chain, when it fails, and every strategy in it, once."""
    row, shown = listed("strategies", name)[name], ctxbench("list", "strategies", name, cwd=EXAMPLES).stdout
    assert row["chain"] == NAMED[name].chain
    stages = getattr(parse(name), "stages", (parse(name),))
    assert [strategies()[stage] for stage in row["stages"]] == [type(stage) for stage in stages]
    for stage, each in row["stages"].items():
        assert f"\n{stage}" in shown
        assert each["doc"].splitlines()[-1].strip() in shown


def test_a_strategy_in_a_file_is_explained() -> None:
    """A file's class or function is explained like ours; a parameter without a default is required."""
    row = listed("strategies", "head_and_tail.py:HeadAndTail")["head_and_tail.py:HeadAndTail"]
    assert row["types"] == {"head": "int", "tail": "int"}
    assert row["fails"] == "what matters was said in the middle"
    shown = ctxbench("list", "strategies", "last_turns.py:last_turns", cwd=EXAMPLES).stdout
    assert "      turns: int = 3\n" in shown


@pytest.mark.parametrize(
    ("what", "name"), [("scenarios", "standard"), ("metrics", "saving"), ("encodings", "chars4"), ("formats", "locomo")]
)
def test_other_things_are_shown_alone(what: str, name: str) -> None:
    """One scenario, metric, encoding or format, and a format with its reader's options."""
    assert list(listed(what, name)) == [name]
    assert name in ctxbench("list", what, name, cwd=EXAMPLES).stdout
    if what == "formats":
        assert listed(what, name)[name]["types"] == {"corrections": "str"}


@pytest.mark.parametrize(
    ("what", "name", "meant"),
    [
        ("strategies", "windw", "'window'"),
        ("strategies", "head_and_tail.py:HeadAndTial", "'HeadAndTail'"),
        ("scenarios", "standrd", "unknown scenario 'standrd'; did you mean 'standard'"),
        ("encodings", "xyzzy", "unknown encoding 'xyzzy'; there are o200k_base, cl100k_base"),
        ("encodigns", "o200k", "'encodigns' cannot be listed; did you mean 'encodings'"),
        ("nonsense", "o200k", "there are strategies, scenarios, formats, metrics, encodings"),
    ],
)
def test_an_unknown_name_gets_the_nearest(what: str, name: str, meant: str) -> None:
    """A wrong name is an error that has the right one."""
    assert meant in ctxbench("list", what, name, cwd=EXAMPLES, code=2).stderr


def test_a_model_without_a_cache_rule() -> None:
    """It is one error, which says what that means."""
    failed = ctxbench("list", "caches", "mistral-large", cwd=EXAMPLES, code=2)
    assert "no cache rule is known for 'mistral-large'" in failed.stderr


def test_a_format_says_where_it_is_kept_and_how_to_export_it(tmp_path: Path) -> None:
    """The folder of an agent stands with its format, and how to export it; both name formats that exist."""
    assert "Kept in ~/.codex/sessions/**/*.jsonl" in ctxbench("list", "formats", "codex", cwd=tmp_path).stdout
    assert "To export: In the UI: Traces" in ctxbench("list", "formats", "langfuse", cwd=tmp_path).stdout
    formats = json.loads(ctxbench("list", "formats", "--json", cwd=tmp_path).stdout)
    data = Path(cli.__file__).parent / "data"
    assert set(tomllib.loads((data / "exports.toml").read_text("utf-8"))) <= set(formats)
    readers = {row["reader"] for row in tomllib.loads((data / "agents.toml").read_text("utf-8"))["agents"]}
    assert all(any(name.startswith(reader) for name in formats) for reader in readers)
