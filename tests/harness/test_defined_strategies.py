"""Strategies that a notebook or a script defines: given to `ctxbench.run` as functions, classes and objects."""

from __future__ import annotations

import filecmp
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ctxbench
from ctxbench.harness.folder.store import part_files, read_manifest
from ctxbench.strategies import live
from ctxbench.strategies.base import StrategyContext, View
from ctxbench.strategies.cache_marks import CacheMarks
from ctxbench.strategies.chain import Chain
from ctxbench.strategies.window import Window
from tests.harness.command import ctxbench as command

LAST = 4


def cut(messages: list[Any], n: int) -> list[Any]:
    return messages[-n:]


def newest(messages: list[Any], n: int = LAST) -> list[Any]:
    """Send the newest messages."""
    return cut(messages, n)


@live
def said(services: Any, n: int = 3) -> Any:
    """Send the newest messages, as they come."""
    known: list[Any] = []

    def step(new: list[Any]) -> list[Any]:
        known.extend(new)
        return known[-n:]

    return step


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest messages."""

    turns: int = 2

    def start(self, services: StrategyContext) -> View:
        return lambda context: context.sending(context.messages[-self.turns :])


class Narrow(Window):
    """A window by another name."""


GIVEN = [
    *("none", newest, functools.partial(newest, n=2), Recent(turns=3), Recent, said, said(n=9), Narrow(max_tokens=400)),
    *(Chain((newest, CacheMarks())), "newest | window(max_tokens=900)"),  # type: ignore[arg-type]
]
TEXTS = (
    *("none", "newest", "newest(n=2)", "Recent(turns=3)", "Recent", "said", "said(n=9)", "Narrow(max_tokens=400)"),
    *("newest | cache_marks", "newest | window(max_tokens=900)"),
)


def files(folder: Path) -> list[str]:
    return ["manifest.json", *(name for name in part_files(folder) if not name.startswith("timings"))]


def same(one: Path, other: Path) -> bool:
    return files(one) == files(other) and filecmp.cmpfiles(one, other, files(one), shallow=False)[0] == files(one)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of all of them."""
    return ctxbench.run("smoke", strategies=GIVEN, out=tmp_path_factory.mktemp("defined") / "run")


def test_they_stand_in_tables_by_name(made: ctxbench.BenchmarkRun) -> None:
    """A function, a partial, an object, a class and a chain have readable texts; each is accepted back in any form."""
    assert made.strategies == TEXTS == tuple(made.summary().index)
    sent = made.summary().tokens_sent
    assert sent["newest(n=2)"] == sent["Recent"] < sent["newest"] < sent["none"]
    assert sent["Recent(turns=3)"] == sent["said"]
    verdict = made.verdict()
    assert verdict.objections(newest) == verdict.objections("newest") == verdict.objections("newest()")
    assert made.contexts("coding/en-0-2", Recent(turns=3)) == made.contexts("coding/en-0-2", said)
    assert set(made.compare(against=newest, strategies=[Recent]).strategy) == {"Recent"}


def test_the_source_is_stored_with_the_run(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """The manifest, the report and `show` say what each was, with the functions of its own module that it uses."""
    sources = read_manifest(made.folder).sources
    assert isinstance(sources, dict)
    assert sources["newest"].source.startswith("def newest(")
    assert "def cut(" in sources["newest"].source
    assert sources["said"].source.startswith("@live\ndef said(")
    assert sources["Recent"].source.startswith("@dataclass(frozen=True, slots=True)\nclass Recent:")
    assert "def newest(" in made.report(tmp_path).read_text("utf-8")
    shown = command("show", made.folder, 1, "--strategy", "newest(n=2)", cwd=tmp_path).stdout
    assert f"newest was defined in a notebook or a script (@{sources['newest'].digest}):\ndef newest(" in shown


def test_workers_and_growth_change_nothing(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """A run with workers, and one that grew, are byte for byte the run that was made at once by one process."""
    ctxbench.run("smoke", strategies=GIVEN[:2], out=tmp_path / "run")
    ctxbench.run("smoke", strategies=GIVEN, out=tmp_path / "run", jobs=2)
    assert same(made.folder, tmp_path / "run")


def test_another_definition_is_measured_anew(tmp_path: Path) -> None:
    """What changes in a cell, or in what it uses, is another strategy; in a folder the old figures go."""

    def defined(body: str, last: int) -> Callable[..., Any]:
        names: dict[str, Any] = {"LAST": last, "__name__": __name__}
        exec(f"def mine(messages, n=1):\n    return {body}", names)
        mine: Callable[..., Any] = names["mine"]
        return mine

    out = tmp_path / "run"
    first = ctxbench.run("smoke", strategies=["none", defined("messages[-1:]", 0)], out=out)
    first.write_baseline(tmp_path / "baseline.json")
    before, manifest = first.summary().tokens_sent["mine"], (out / "manifest.json").read_bytes()
    ctxbench.run("smoke", strategies=["none", defined("messages[-1:]", 0)], out=out)
    assert (out / "manifest.json").read_bytes() == manifest
    second = ctxbench.run("smoke", strategies=["none", defined("messages[-2:]", 0)], out=out)
    assert second.summary().tokens_sent["mine"] > before
    gate = second.gate(tmp_path / "baseline.json")
    assert [was != now for was, now in gate.decision.settings.values()] == [True]
    ctxbench.run("smoke", strategies=["none", defined("messages[-2:]", 0)], out=tmp_path / "once")
    assert same(out, tmp_path / "once")


SCRIPT = """
import ctxbench, sys
from dataclasses import dataclass

KEEP = int(sys.argv[2])

def newest(messages):
    return messages[-KEEP:]

@dataclass(frozen=True)
class Recent:
    turns: int = 2
    def start(self, services):
        return lambda context: context.sending(context.messages[-self.turns :])

run = ctxbench.run("smoke", strategies=["none", newest, Recent(turns=3)], out=sys.argv[1], jobs=2)
print(run.summary().tokens_sent.to_dict(), run.manifest.sources["newest"].digest)
"""


def test_a_script_and_a_constant_that_it_uses(tmp_path: Path) -> None:
    """A script works with workers; the same command opens its run, and a changed constant measures anew."""
    (tmp_path / "s.py").write_text(SCRIPT)

    def script(keep: int) -> str:
        words = [sys.executable, "-W", "error", "s.py", "run", str(keep)]
        done = subprocess.run(words, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
        assert not done.stderr
        return done.stdout

    assert script(2) == script(2) != script(4)
    with pytest.raises(ctxbench.UserError, match="holds Recent, which a notebook or a script has defined"):
        ctxbench.run("smoke", strategies="none", out=tmp_path / "run")


async def later(messages: list[Any]) -> list[Any]:
    return messages


def retrieval(messages: list[Any]) -> list[Any]:
    return messages


@dataclass
class Thawed:
    def start(self, services: StrategyContext) -> View:
        raise NotImplementedError


@dataclass(frozen=True)
class Holding:
    held: object

    def start(self, services: StrategyContext) -> View:
        raise NotImplementedError


def other(turns: int) -> Callable[..., Any]:
    def newest(messages: list[Any]) -> list[Any]:
        return messages[-turns:]

    return newest


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda messages: messages, "<lambda>: strategies stand in tables as NAME"),
        (functools.partial(newest, 3), "parameters by their names"),
        (functools.partial(newest, m=3), "has no parameter 'm'; it takes n"),
        (functools.partial(newest, n="x"), "n must be a whole number, not 'x'"),
        (later, "is an async function"),
        (retrieval, "is the name of a strategy that is there already"),
        (Thawed(), "Thawed: is no frozen dataclass"),
        (Holding(object()), "its parameters must be numbers, texts"),
        (Holding, "'Holding' needs held"),
        (3, "3 is no strategy"),
        (int, "int: is neither a strategy class"),
        ([other(1), other(2)], "newest: is the name of two strategies"),
    ],
)
def test_a_mistake_is_one_clear_error(given: Any, said: str) -> None:
    """What is no strategy, or could not be told from another, says so before anything runs."""
    with pytest.raises(ctxbench.UserError) as error:
        ctxbench.run("smoke", strategies=given)
    assert said in str(error.value)


def test_a_strategy_that_always_fails_warns(tmp_path: Path) -> None:
    """The warning has the user's own line."""

    def broken(messages: list[Any]) -> list[Any]:
        return messages[10**9]  # type: ignore[no-any-return]

    with pytest.warns(UserWarning, match=r"broken failed in every conversation, .*IndexError.*test_defined_strat.*:\d"):
        ctxbench.run("smoke", strategies=["none", broken], answers=False)


def test_what_a_strangers_run_holds_is_not_run(tmp_path: Path) -> None:
    """A run that is there brings no code of a file into a call that does not name it."""
    (tmp_path / "theirs.py").write_text("def all_of_it(messages):\n    return messages\n")
    text = f"{tmp_path}/theirs.py:all_of_it"
    ctxbench.run("smoke", strategies=["none", text], out=tmp_path / "run", answers=False)
    with pytest.raises(ctxbench.UserError, match=r"theirs.py:all_of_it.*, which this call does not name"):
        ctxbench.run("smoke", strategies="none", out=tmp_path / "run", answers=False)
    grown = ctxbench.run("smoke", strategies=[text, "last_turn"], out=tmp_path / "run", answers=False)
    assert len(grown.strategies) == 3
    assert grown.contexts("coding/en-0-2", text) == grown.contexts("coding/en-0-2", "none")
