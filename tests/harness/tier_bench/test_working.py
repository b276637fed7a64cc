"""`ctxbench lab bench-tier working`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.command import ctxbench

TWO = ("--eviction", "lru", "--eviction", "lru_k(correlated=20)")


def test_the_documents_load_beside_its_bounds(tmp_path: Path) -> None:
    """Over 90 % is asked for; the table says that it cannot be had, and by what bound."""
    done = ctxbench("lab", "bench-tier", "working", "--seeds", 2, *TWO, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[1].startswith("mem_002, cache of 131,072 tokens: 2 seeds, 1,000 look-ups and 1.98M tokens each")
    heads = next(at for at, line in enumerate(lines) if line.startswith("policy"))
    assert [line.split()[0] for line in lines[heads + 1 : heads + 5]] == [
        "lru",
        "lru_k(correlated=20)",
        "bound",
        "popularity",
    ]
    assert "A hit rate over 90.0 % is out of reach here without seeing the future" in done.stdout


def test_recordings_as_json_twice_the_same(tmp_path: Path) -> None:
    """A scenario's conversations are the samples; the figures are exact, and the same each time."""
    options = ("--trace", "smoke", "--trace", "mem_002", "--size", 3_000, "--seeds", 1, "--preload", *TWO, "--json")
    words = ("lab", "bench-tier", "working", *options)
    done = ctxbench(*words, cwd=tmp_path)
    assert done.stdout == ctxbench(*words, cwd=tmp_path).stdout
    found = json.loads(done.stdout)
    assert [each["load"] for each in found["loads"]] == ["smoke", "mem_002"]
    assert found["loads"][0]["of"] == "conversation"
    assert len(found["rows"]) == 2 * 2 * 2
    assert "go back to nothing" in done.stderr
    for row in found["rows"]:
        bound = next(each for each in found["bounds"] if each["load"] == row["load"])
        assert row["preload"] or row["hit_rate"]["mean"] <= bound["hit_rate"] + 1e-9
        assert bool(row["preloaded"]) <= row["preload"]


def test_where_everything_fits_it_says_so(tmp_path: Path) -> None:
    """No policy can be told from another there."""
    done = ctxbench("lab", "bench-tier", "working", "--trace", "smoke", *TWO, cwd=tmp_path)
    assert "Everything fits: nothing is ever evicted" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trace", "zpf"), "did you mean 'zipf'?"),
        (("--trace", "no/such.jsonl"), "there is no such file or folder"),
        (("--eviction", "lruk"), "unknown policy 'lruk'; did you mean 'lru_k'"),
        (("--eviction", "lru_k(k=0)"), "k must be at least 1, not 0"),
        (("--size", "0"), "--size"),
    ],
)
def test_bad_input_is_one_error(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """It names what was wrong and what there is."""
    done = ctxbench("lab", "bench-tier", "working", *words, cwd=tmp_path, code=2)
    assert said in done.stderr
    assert not done.stdout


def test_recordings_that_go_back_to_nothing_are_an_error(tmp_path: Path) -> None:
    """There is nothing to look up."""
    path = tmp_path / "short.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n')
    done = ctxbench("lab", "bench-tier", "working", "--trace", path, cwd=tmp_path, code=2)
    assert "no conversation goes back to an earlier message" in done.stderr
