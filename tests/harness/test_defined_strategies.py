"""Strategies that a notebook or a script defines: given to `ctxbench.run` as functions, classes and objects."""

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
from ctxbench.scenarios.code import code_of
from ctxbench.strategies import live
from ctxbench.strategies.base import StrategyContext, View
from ctxbench.strategies.cache_marks import CacheMarks
from ctxbench.strategies.chain import Chain
from tests.harness.command import ctxbench as command
from tests.harness.runs import bytes_of


def cut(messages: list[Any], n: int) -> list[Any]:
    return messages[-n:]


def newest(messages: list[Any], n: int = 4) -> list[Any]:
    return cut(messages, n)


def another(turns: int) -> Callable[..., Any]:
    def newest(messages: list[Any]) -> list[Any]:
        return messages[-turns:]

    return newest


@live
def said(_: Any, n: int = 3) -> Any:
    known: list[Any] = []
    return lambda new: known.__iadd__(new)[-n:]


@dataclass(frozen=True, slots=True)
class Recent:
    turns: object = 2

    def start(self, _: StrategyContext) -> View:
        return lambda context: context.sending(context.messages[-int(str(self.turns)) :])


GIVEN: list[Any] = ["none", newest, functools.partial(newest, n=2), Recent(turns=3), Recent, said, said(n=9)]
GIVEN += [Chain((newest, CacheMarks())), "newest | window(max_tokens=900)"]  # type: ignore[arg-type]
TEXTS = ("none", "newest", "newest(n=2)", "Recent(turns=3)", "Recent", "said", "said(n=9)")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of all of them."""
    return ctxbench.run("smoke", strategies=GIVEN, out=tmp_path_factory.mktemp("defined") / "run")


def test_they_stand_in_tables_by_name(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """Each has a readable text and is accepted back in any form; its source stands in the report and in `show`."""
    assert made.strategies == (*TEXTS, "newest | cache_marks", "newest | window(max_tokens=900)")
    sent, verdict, sources = made.summary().tokens_sent, made.verdict(), made.manifest.sources
    assert sent["newest(n=2)"] == sent["Recent"] < sent["newest"] < sent["none"]
    assert verdict.objections(newest) == verdict.objections("newest") == verdict.objections("newest()")
    assert made.contexts("coding/en-0-2", Recent(turns=3)) == made.contexts("coding/en-0-2", said)
    assert set(made.compare(against=newest, strategies=[Recent]).strategy) == {"Recent"}
    assert isinstance(sources, dict)
    assert sources["said"].source.startswith("@live\ndef said(")
    assert sources["Recent"].source.startswith("@dataclass(frozen=True, slots=True)\nclass Recent:")
    assert "def newest(" in made.report(tmp_path).read_text("utf-8")
    shown = command("show", made.folder, 1, "--strategy", "newest(n=2)", cwd=tmp_path).stdout
    assert f"a notebook or a script (@{sources['newest'].digest}):\ndef newest(" in shown
    assert "def cut(" in shown


def test_workers_and_growth_change_nothing(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """A run that grew with workers is byte for byte the run that was made at once by one process."""
    ctxbench.run("smoke", strategies=GIVEN[:2], out=tmp_path)
    ctxbench.run("smoke", strategies=GIVEN, out=tmp_path, jobs=2)
    assert bytes_of(tmp_path).items() <= bytes_of(made.folder).items()  # which has bills by now


def test_another_definition_is_measured_anew(tmp_path: Path) -> None:
    """A function of the same name is another strategy: in a folder the old figures go, and the gate says so."""
    first, once = (ctxbench.run("smoke", strategies=[another(n)], out=tmp_path / f"{n}") for n in (1, 2))
    baseline = first.write_baseline(tmp_path / "baseline.json")
    second = ctxbench.run("smoke", strategies=another(2), out=first.folder)
    assert bytes_of(second.folder).items() >= bytes_of(once.folder).items()
    assert list(second.gate(baseline).decision.settings) == ["newest"]


SCRIPT = """
import ctxbench, sys
KEEP = int(sys.argv[1])
def newest(messages):
    return messages[-KEEP:]
run = ctxbench.run("smoke", strategies=["none", newest], out="run", jobs=2)
print(run.summary().tokens_sent.to_dict(), run.manifest.sources)
"""


@pytest.mark.parametrize("words", [("s.py",), ("-c", SCRIPT)], ids=["script", "no source"])
def test_a_script_and_a_constant_that_it_uses(words: tuple[str, ...], tmp_path: Path) -> None:
    """The same command opens its run; with a source a changed constant measures anew. Elsewhere the name is unknown."""
    (tmp_path / "s.py").write_text(SCRIPT)
    commands = [[sys.executable, "-W", "error", *words, keep] for keep in ("2", "2", "4")]
    once, again, other = (subprocess.run(each, cwd=tmp_path, capture_output=True, check=True) for each in commands)
    assert once.stdout == again.stdout
    assert (once.stdout != other.stdout) == (b"def newest" in once.stdout) == (words[0] == "s.py")
    with pytest.raises(ctxbench.UserError, match="holds newest, which a notebook"):
        ctxbench.run("smoke", strategies="none", out=tmp_path / "run")


CELLS = """
import ctxbench
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Recent:
    turns: int = 2

    def start(self, services):
        return lambda context: context.sending(context.messages[-KEEP:])

@dataclass(frozen=True)
class Wide(Recent):
    turns: int = 9
---
KEEP = 2
run = ctxbench.run("smoke", strategies=[Recent(turns=4), Wide()], out="run", answers=False)
first = run.manifest.sources
---
KEEP = 3
run = ctxbench.run("smoke", strategies=[Recent(turns=4), Wide()], out="run", answers=False)
assert run.strategies == ("Recent(turns=4)", "Wide"), run.strategies
assert first["Recent"].source.startswith("@dataclass(frozen=True, slots=True)\\nclass Recent:"), first
assert first["Recent"].source.endswith("context.messages[-KEEP:])\\n"), first
assert all(first[name].digest != run.manifest.sources[name].digest for name in first), first
print("as it should be")
"""
IPYTHON = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(history_enabled=False)
for cell in open("cells").read().split("---"):
    shell.run_cell(cell, store_history=True)
"""


def test_an_error_in_a_notebook(tmp_path: Path) -> None:
    """A cell shows the user's own line and the error in one line, and no line of ctxbench."""
    (tmp_path / "cells").write_text('import ctxbench\n---\nctxbench.run("smoke", strategies="windo")')
    words = [sys.executable, "-c", IPYTHON]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "IPYTHONDIR": "."})
    *before, line, said = ran.stdout.strip().splitlines()
    assert said == "SpecError: unknown strategy 'windo'; did you mean 'window'?"
    assert line.strip() == 'ctxbench.run("smoke", strategies="windo")'
    assert len(before) == 1


def test_a_class_of_a_notebook_cell(tmp_path: Path) -> None:
    """Its source is that of its cell; what it uses from another cell counts, of the class that it extends as well."""
    (tmp_path / "cells").write_text(CELLS)
    words = [sys.executable, "-c", IPYTHON]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "IPYTHONDIR": "."})
    assert "as it should be" in ran.stdout, ran.stdout + ran.stderr


class Holder:
    def __init__(self, n: int) -> None:
        self.n = n

    def newest(self, messages: list[Any]) -> list[Any]:
        return messages[-self.n :]


def held(holder: Holder) -> Callable[..., Any]:
    def newest(messages: list[Any]) -> list[Any]:
        return holder.newest(messages)

    return newest


def test_what_an_object_around_a_function_holds_counts() -> None:
    """Its class and its values are part of the digest. What cannot be seen is said, with its name."""
    one, other = code_of(held(Holder(1))), code_of(held(Holder(2)))
    assert one.digest != other.digest
    assert "class Holder" in one.source
    with pytest.warns(UserWarning, match="newest uses holder, whose content cannot be seen"):
        code_of(held(object()))  # type: ignore[arg-type]


@live
def stepless(_: Any) -> Any:
    return None


@live(fails="always")
def messages_of(messages: Any) -> Any:
    return messages[-3:]


def opens_a_step(_: Any) -> Any:
    return lambda new: new


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Recent("x"), r"Recent\(turns='x'\) failed in every conversation, .*test_defined_strat.*:\d"),
        (stepless, "stepless returned NoneType, not a step: a function of the new messages"),
        (len, "len returned int, not a list of messages"),
        (messages_of, "and takes the step that it returns: leave it out"),
        (opens_a_step, "not a list of messages: write @live above"),
    ],
)
def test_a_strategy_that_always_fails_warns(given: Any, said: str) -> None:
    """The warning says what it should return, or has the user's own line."""
    with pytest.warns(UserWarning, match=said):
        ctxbench.run("smoke", strategies=["none", given], answers=False)


def retrieval(messages: list[Any]) -> list[Any]:
    return messages


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda messages: messages, "<lambda>: stands in tables as NAME"),
        (functools.partial(newest, 3), "and name its parameters"),
        (functools.partial(newest, n="x"), "n must be a whole number, not 'x'"),
        (retrieval, "is the name of a strategy that is there already"),
        (Recent(object()), "Recent: turns is <object .* cannot be written down: .* make the rest in start"),
        (Recent(float("nan")), "Recent: turns is nan, which cannot"),
        (functools.partial(newest, n=Recent), "newest.*: n must be a whole number"),
        (Chain((Recent([len]),)), "Recent: turns is .<built-in function len>., which cannot"),
        (3, "3 is no strategy"),
        (Path, "Path: is neither a strategy class"),
        ([another(1), another(2)], "newest: is the name of two strategies"),
        ([held(Holder(1)), held(Holder(2))], "newest: is the name of two strategies"),
        (Holder(1).newest, "write it with def outside of a class"),
    ],
)
def test_a_mistake_is_one_clear_error(given: Any, said: str) -> None:
    """Values that are no strategy, and two strategies of one name, are refused before anything runs."""
    with pytest.raises(ctxbench.UserError, match=said):
        ctxbench.run("smoke", strategies=given)


def test_what_a_strangers_run_holds_is_not_run(tmp_path: Path) -> None:
    """A run that is there brings no code of a file into a call that does not name it."""
    (tmp_path / "theirs.py").write_text("def all_of_it(messages):\n    return messages\n")
    text, out = f"{tmp_path}/theirs.py:all_of_it", tmp_path / "run"
    ctxbench.run("smoke", strategies=text, out=out, answers=False)
    with pytest.raises(ctxbench.UserError, match=r"not approved, .*theirs.py:all_of_it.* runs code"):
        ctxbench.run("smoke", strategies="none", out=out, answers=False)
    grown = ctxbench.run("smoke", strategies=["none", text], out=out, answers=False)
    assert grown.contexts("coding/en-0-2", text) == grown.contexts("coding/en-0-2", "none")
