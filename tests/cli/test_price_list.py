"""`ctxbench list prices`: known models with their prices and cache rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.cli.price_list import print_prices
from tests.harness.command import ctxbench


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> Callable[[str], dict[str, Any]]:
    """What is printed as JSON of models with that in their name."""

    def rows(part: str) -> dict[str, Any]:
        print_prices(part, as_json=True)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return rows


def test_part_of_a_name(listed: Callable[[str], dict[str, Any]]) -> None:
    """All models that have it in their name, whoever sells them: prices by tier, batches, off-peak, the cache rule."""
    found = listed("gpt-5.6")
    assert all("gpt-5.6" in name for name in found)
    assert "gpt-5.6-terra" in listed("GPT-5.6-T")
    row = found["gpt-5.6"]
    assert row["prices"][1] == {
        "above": 272_000,
        "input": 8.0,
        "output": 30.0,
        "cache_read": 0.8,
        "cache_write_5m": 10.0,
        "cache_write_1h": None,
    }
    assert row["batch"][0]["input"] == 2.0
    assert (row["provider"], row["window"], row["off_peak"], row["storage_per_hour"]) == ("openai", 922_000, None, None)
    assert row["cache_rule"]["mechanism"] == "boundary"
    assert "openai.com" in row["cache_rule"]["source"]


def test_without_a_name(tmp_path: Path) -> None:
    """The makers' own models that have a cache rule, once each; the note says what is left out."""
    shown = ctxbench("list", "prices", cwd=tmp_path).stdout
    names = [line.split()[0] for line in shown.splitlines() if line[:1].isalpha()]
    assert {"claude-opus-5", "gpt-5.6-sol", "gemini/gemini-2.5-pro", "deepseek-v4-pro"} <= set(names)
    assert not {"deepseek/deepseek-v4-pro", "vertex_ai/claude-sonnet-4-5", "gpt-4o-2024-11-20"} & set(names)
    assert "Source: genai-prices 0." in shown
    assert "models with a known price" in shown


def test_no_such_model(tmp_path: Path) -> None:
    """What no name has is an error with the nearest ones."""
    said = ctxbench("list", "prices", "gpt5.6", cwd=tmp_path, code=2).stderr
    assert "no model with a known price has 'gpt5.6' in its name; did you mean 'gpt-5.6" in said
