"""`ctxbench run -s @libraries`: a list of strategies, without those whose library is not installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ctxbench as api
from ctxbench.scenarios.errors import SpecError
from ctxbench.strategies.chain import listed, lists, strategies
from tests.harness.command import ctxbench
from tests.harness.runs import recording


def test_the_list_has_every_adapter_agent_and_provider() -> None:
    """By entry point: each once or with several settings, `none` first; what is no strategy is not in it."""
    names = {text.partition("(")[0] for text in lists()["libraries"]}
    others = {
        name
        for name, kind in strategies().items()
        if hasattr(kind, "library") or kind.__module__.split(".")[-2] in ("agents", "providers")
    }
    assert others <= names <= set(strategies())
    chosen, left_out = listed(["@libraries"])
    assert chosen[0] == "none"
    assert len(set(chosen)) == len(chosen)
    assert all(line.startswith("left out: ") and "pip install 'ctxbench[adapter-" in line for line in left_out)


def test_it_stands_among_other_strategies() -> None:
    """Entries come where the list stands, without those that are named before it; an unknown list is one line."""
    chosen, _ = listed(["archive", "@libraries"])
    assert chosen[:2] == ("archive", "none")
    assert chosen.count("archive") == 1
    with pytest.raises(SpecError, match="unknown list of strategies '@library'; did you mean 'libraries'"):
        listed(["@library"])


def test_a_run_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed entries are measured; a line names the others and their extra, and Python warns of them."""
    path = recording(tmp_path, conversations=1, turns=4, size=300)
    words = ("run", path, "-s", "@libraries", "--no-probes", "--answerer", "none", "--out", tmp_path / "run", "--json")
    done = ctxbench(*words, cwd=tmp_path)
    chosen, left_out = listed(["@libraries"])
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert tuple(manifest["plan"]["strategies"]) == chosen
    assert all(line in done.stderr for line in left_out)
    monkeypatch.setattr("ctxbench.api.runs.listed", lambda texts: (("none",), ["left out: a.b: a is not installed"]))
    with pytest.warns(UserWarning, match="a is not installed"):
        api.run(path, strategies="@libraries", probes=False, answers=False)
