"""Strategies from a file: found, identified by what is in it, and clear about what is wrong with it."""

from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.scenarios.errors import SpecError
from ctxbench.strategies.chain import parse, spec
from tests.harness.runs import bytes_of, recording

MINE = '''
from __future__ import annotations
from dataclasses import dataclass
from ctxbench.strategies.base import Context, StrategyContext, View

@dataclass(frozen=True, slots=True)
class Newest:
    """The newest messages."""
    n: int = 3
    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError("n must be at least 1")
    def start(self, services: StrategyContext) -> View:
        return lambda context: context.sending(services.whole(context.messages[-self.n:]))

class Loose:
    def start(self, services):
        return lambda context: context

@dataclass
class Thawed:
    def start(self, services):
        return lambda context: context

def newest(messages, n: int = 3, *, word="x"):
    """The newest messages, by a function."""
    return messages[-n:]

def nothing():
    return []

async def later(messages):
    return messages

number = 5
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a plug-in in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("mine.py:Newest", "mine.py:Newest@{}"),
        ("mine.py:Newest(n=3)", "mine.py:Newest@{}"),
        ("mine.py:Newest (n=5)", "mine.py:Newest@{}(n=5)"),
        ("./mine.py:newest(n=2, word='a|b.py:c')", "./mine.py:newest@{}(n=2, word='a|b.py:c')"),
        ("none|mine.py:Newest(n=5)|none", "none | mine.py:Newest@{}(n=5) | none"),
        ("a folder/my own.py:Newest | none", "a folder/my own.py:Newest@{} | none"),
        ("'odd (1|2).py:Newest'(n=5)", "'odd (1|2).py:Newest@{}'(n=5)"),
    ],
)
def test_prints_what_it_parsed(here: Path, text: str, printed: str) -> None:
    """A file's strategy has one text, with the digest of the file in it, and that text parses to the same strategy."""
    (here / "a folder").mkdir()
    for name in ("a folder/my own.py", "odd (1|2).py"):
        (here / name).write_text(MINE)
    made = parse(text)
    found = spec(made)
    digest = found.split("@")[1][:12]
    assert found == printed.format(digest)
    assert parse(found) == made


def test_a_known_class_keeps_its_name(here: Path) -> None:
    """A file that only imports one of our strategies gives it no other name."""
    (here / "again.py").write_text("from ctxbench.strategies.window import Window")
    assert spec(parse("again.py:Window(messages=5)")) == "window(messages=5)"


def test_a_changed_file_is_another_strategy(here: Path) -> None:
    """Its text has another digest, and a text with the old digest is refused with the reason."""
    before = spec(parse("mine.py:Newest"))
    (here / "mine.py").write_text(MINE + "\n# changed\n")
    assert spec(parse("mine.py:Newest")) != before
    with pytest.raises(SpecError, match=r"mine.py: has changed: it is @\w{12} now, and was @\w{12}: begin a new run"):
        parse(before)


def test_workers_run_the_file_and_a_changed_one_is_measured_anew(here: Path) -> None:
    """Two workers write the same bytes as one process; when the file changes, so does the run, and all of it."""
    inputs = RunInputs((str(recording(here, 8)),))
    texts = ("mine.py:Newest(n=4) | window(max_tokens=200)", "mine.py:newest(n=4)")
    execute(Plan(inputs, texts), here / "one", jobs=1)
    execute(Plan(inputs, texts), here / "two", jobs=2)
    assert bytes_of(here / "one") == bytes_of(here / "two")
    (here / "mine.py").write_text(MINE + "\n# changed\n")
    execute(Plan(inputs, texts), here / "one", jobs=1)
    execute(Plan(inputs, texts), here / "at once", jobs=1)
    assert bytes_of(here / "one") == bytes_of(here / "at once") != bytes_of(here / "two")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gone.py:A", "gone.py: cannot be read: No such file or directory"),
        ("folder.py:A", "folder.py: cannot be read: Is a directory"),
        ("mine.py", "write path/to/file.py:NAME"),
        ("mine.py:", "write path/to/file.py:NAME"),
        ("mine.py:Newst", "mine.py: has no 'Newst'; did you mean 'Newest'"),
        ("mine.py:xyz", "mine.py: has no 'xyz'; there are Newest, Loose, Thawed, newest, nothing, later"),
        ("imported.py:A", "imported.py: has no 'A'; it defines nothing"),
        ("mine.py:number", "neither a strategy class (with a method start) nor a function"),
        ("mine.py:StrategyContext", "neither a strategy class"),
        ("mine.py:Loose", "is no frozen dataclass: write @dataclass(frozen=True, slots=True)"),
        ("mine.py:Thawed", "is no frozen dataclass"),
        ("mine.py:nothing", "takes a list of messages first"),
        ("mine.py:later", "is an async function"),
        ("mine.py:Newest(m=1)", "has no parameter 'm'"),
        ("mine.py:Newest(n=0)", "n must be at least 1"),
        ("mine.py:newest(n='many')", "n must be a whole number, not 'many'"),
        ("mine.py:Newest@000000000000", "has changed"),
        ("raises.py:A", "raises.py:3: fails: ZeroDivisionError: division by zero"),
        ("imports.py:A", "imports.py:1: fails: ModuleNotFoundError: No module named 'no_such_module'"),
        ("exits.py:A", "exits.py:2: fails: SystemExit: 3"),
        ("broken.py:A", "broken.py:1: fails: SyntaxError"),
        ("binary.py:A", "binary.py"),
    ],
)
def test_what_is_wrong_is_said(here: Path, text: str, said: str) -> None:
    """Whatever is wrong with a file is one SpecError that names the file, and the line where there is one."""
    (here / "folder.py").mkdir()
    (here / "raises.py").write_text("def f():\n    1\n1 / 0\n")
    (here / "imports.py").write_text("import no_such_module\n")
    (here / "imported.py").write_text("from pathlib import Path\n_own = lambda: 1\n")
    (here / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (here / "broken.py").write_text("def f(:\n")
    (here / "binary.py").write_bytes(b"\0\xff\xfe")
    with pytest.raises(SpecError) as caught:
        parse(text)
    assert said in str(caught.value)


def test_a_recipe_takes_no_parameters() -> None:
    """To change one, its chain is written out: the error gives it."""
    with pytest.raises(SpecError, match=r"takes no parameters: it is `archive \| window"):
        parse("archive_window(max_tokens=5)")
    with pytest.raises(SpecError, match="did you mean 'archive_window'"):
        parse("archive_windw")
