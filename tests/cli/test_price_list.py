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


def test_hours_and_storage(listed: Callable[[str], dict[str, Any]]) -> None:
    """Off-peak hours with their prices; storage by the day from which its price holds."""
    row = listed("deepseek-v4-pro")["deepseek-v4-pro"]
    assert row["off_peak"]["peak_hours_utc"] == [
        {"from": "01:00", "until": "04:00"},
        {"from": "06:00", "until": "10:00"},
    ]
    assert row["off_peak"]["peak_weekdays"] == [1, 2, 3, 4, 5]
    assert row["off_peak"]["prices"][0]["input"] == 0.66
    row = listed("gemini/gemini-3.8-flash")["gemini/gemini-3.8-flash"]
    assert row["storage_per_hour"] == {"": 0.5, "2027-01-01": 1.0}


def test_without_a_name(tmp_path: Path) -> None:
    """The makers' own models that have a cache rule, once each; the note says what is left out."""
    shown = ctxbench("list", "prices", cwd=tmp_path).stdout
    names = [line.split()[0] for line in shown.splitlines() if line[:1].isalpha()]
    assert {"claude-opus-5", "gpt-5.6-sol", "gemini/gemini-2.5-pro", "deepseek-v4-pro"} <= set(names)
    assert not {"deepseek/deepseek-v4-pro", "vertex_ai/claude-sonnet-4-5", "gpt-4o-2024-11-20"} & set(names)
    assert "Source: genai-prices 0." in shown
    assert "models with a known price" in shown


def test_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line a tier, in US dollars for a million tokens."""
    monkeypatch.setenv("COLUMNS", "200")
    print_prices("claude-haiku-5-5", as_json=False)
    shown = capsys.readouterr().out
    assert "Prices in US dollars per million tokens" in shown
    rows = [line.split() for line in shown.splitlines() if line.startswith("claude-haiku-5-5 ")]
    assert rows[0][1:7] == ["0.1", "0.5", "0.01", "0.125", "0.2", "0.05"]
    assert rows[1][1:7] == ["100,000", "0.5", "2.5", "0.05", "0.625", "1"]


def test_no_such_model(tmp_path: Path) -> None:
    """What no name has is an error with the nearest ones."""
    said = ctxbench("list", "prices", "gpt5.6", cwd=tmp_path, code=2).stderr
    assert "no model with a known price has 'gpt5.6' in its name; did you mean 'gpt-5.6" in said
