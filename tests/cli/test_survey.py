"""`ctxbench lab survey`: which strategies it finds, its table and its figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxbench.cli.survey import _settings, choose
from ctxbench.strategies.chain import parse, spec, strategies
from tests.harness.command import ctxbench
from tests.harness.runs import recording


def test_every_adapter_and_provider_is_run_or_left_out() -> None:
    """By entry point, with the settings of the data file, whose names all exist; `none` is the first."""
    chosen = choose()
    names = {text.partition("(")[0] for text in chosen.strategies} | set(chosen.left_out)
    others = {
        name for name, kind in strategies().items() if hasattr(kind, "library") or ".providers." in kind.__module__
    }
    assert others <= names
    assert set(_settings()["settings"]) <= set(strategies())
    assert chosen.strategies[0] == "none"
    assert all(spec(parse(text)) == text for text in chosen.strategies)
    assert all("pip install" in why for why in chosen.left_out.values())


def test_the_survey_of_a_recording(tmp_path: Path) -> None:
    """A row per strategy with intervals; the whole history saves nothing. A finished survey is printed again."""
    path = recording(tmp_path, conversations=3, turns=4, size=300)
    words = ("lab", "survey", path, "--out", tmp_path / "run")
    exact = json.loads(ctxbench(*words, "--json", cwd=tmp_path).stdout)
    whole = exact["strategies"]["none"]
    assert whole["saving"] == {"value": 0, "interval": None}
    window = exact["strategies"]["retrieval"]["saving"]
    assert window["interval"][0] <= window["value"] <= window["interval"][1]
    assert sum(each["conversations"] for each in exact["recordings"]) == 3
    text = ctxbench(*words, "--markdown", "-", cwd=tmp_path).stdout
    assert text.startswith("## 3 conversations, ")
    assert "| none | ctxbench | 0.0 % | – |" in text
    assert "Command: `ctxbench lab survey`" in text


def test_no_sample_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without paths and without the sample recordings, the error says which to name."""
    monkeypatch.setenv("CTXBENCH_RECORDINGS", str(tmp_path / "none"))
    done = ctxbench("lab", "survey", cwd=tmp_path, code=2)
    assert "no sample recordings are here" in done.stderr
