"""`ctxbench lab bench-tier archive`, as a user runs it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.harness.tier_bench.archive import archived
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.reports.tiers import archive_tables
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.tiers.archive import Coding
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import recording


def quiet(_: str) -> None:
    """Say nothing."""


def test_the_tables_and_the_json(tmp_path: Path) -> None:
    """Lossless and lossy stand apart, and every coder has a row."""
    path = recording(tmp_path, conversations=2, turns=6, size=40)
    printed = ctxbench("lab", "bench-tier", "archive", path.name, "--level", 3, cwd=tmp_path).stdout
    for title in ("Lossless: messages", "Lossless: texts alone", "Lossy: summaries", "Speed"):
        assert title in printed
    for coder in ("zstd -9", "xz -9e", "brotli 11", "zstd -22 --long", "order-5 model", "archive"):
        assert coder in printed
    found = ctxbench("lab", "bench-tier", "archive", path.name, "-l", 3, "-d", "none", "--json", cwd=tmp_path).stdout
    assert json.loads(found)["coding"] | {"level": 3, "dictionary": "none"} == json.loads(found)["coding"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name]


def test_what_cannot_be_read_is_said_and_the_rest_is_measured(tmp_path: Path) -> None:
    """A broken file is named on standard error."""
    path = recording(tmp_path, conversations=1, turns=3, size=9)
    (tmp_path / "broken.jsonl").write_text('{"ctxbench": "1", "id": 7}\n')
    done = ctxbench("lab", "bench-tier", "archive", path.name, "broken.jsonl", "--level", 1, cwd=tmp_path)
    assert "left out: broken.jsonl: no known format fits" in done.stderr
    assert "1 conversation," in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "no message was read"),
        (("--level", "23"), "less than or equal to 22"),
        (("--dictionary", "big"), "'big' is not one of"),
        (("smoke", "--encoding", "morse"), "unknown encoding 'morse'"),
    ],
)
def test_bad_words(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One clear error each."""
    assert said in ctxbench("lab", "bench-tier", "archive", *words, cwd=tmp_path, code=2).stderr


def test_two_runs_differ_in_their_speeds_only() -> None:
    """All else is the same."""
    said = [
        talk(*[("user", f"{name} {at} said so")] * 9, name=f"{name}{at}") for name in ("Anna", "Ben") for at in (1, 2)
    ]
    one, two = (archived(said, Coding(level=1), TokenCounter(), quiet) for _ in range(2))
    assert replace(one, speed=two.speed) == two


def test_one_short_conversation() -> None:
    """What cannot be measured of it says why, and the tables are made."""
    found = archived([talk(("user", "Hi"), ("assistant", "Hello"))], Coding(level=1), TokenCounter(), quiet)
    assert isinstance(found.vectors, Missing)
    assert archive_tables(found)


def test_messages_without_texts() -> None:
    """Nothing is divided by nothing."""
    found = archived(
        [talk(("user", ""), name="one"), talk(("user", ""), name="two")], Coding(level=1), TokenCounter(), quiet
    )
    assert archive_tables(found)
    assert isinstance(found.summary, Missing)


def test_nothing_at_all() -> None:
    """There is nothing to measure."""
    with pytest.raises(RunError, match="no message was read"):
        archived([Conversation("none", ())], Coding(), TokenCounter(), quiet)
