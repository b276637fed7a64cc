"""Every option that takes a number or a file, found in the tree of commands: none of them hangs or takes all memory."""

import math
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from ctxbench.cli import app
from ctxbench.harness.engine.plan import execute
from ctxbench.scenarios.errors import UserError
from tests.cli.test_options import commands
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording

HUNG = 60  # seconds after which a command counts as hung
MEMORY = 3 << 30  # bytes of address space that a command may take, over what this process has
RECORDING = ("some.jsonl",)
# A value of every argument, by its name: the others of an option that is tried.
ARGUMENTS = {
    **dict.fromkeys(("run", "other", "runs"), ("run",)),
    **dict.fromkeys(("inputs", "recordings", "paths", "files", "file", "before", "after"), RECORDING),
    "conversation": ("c0",),
    "strategy": ("window(max_tokens=?)",),
    "what": ("strategies",),
    "specs": ("archive(recordings='some.jsonl', level=1)",),
    "words": ("run",),
    "name": (),
    "step": (),
}
# So that no command that goes on, as its file does not matter to it, measures for minutes.
BRIEF = {"run": ("-s", "none", "--probes", "none"), "tune": ("--trials", "1"), "gate": ("--baseline", "baseline.json")}

Parameter = tuple[str, Any, Any, Any]  # path of a command, the command, one of its parameters, and the type of a value


def parameters() -> Iterator[Parameter]:
    """Every argument and option of every command."""
    for path, command in commands():
        for parameter in command.params:
            if parameter.name != "help":
                kind = parameter.type_descriptor.annotation
                yield path.removeprefix("ctxbench "), command, parameter, (*get_args(kind), kind)[0]


ALL = tuple(parameters())
NUMBERS = [each for each in ALL if each[3] in (int, float)]
FILES = [each for each in ALL if each[3] is Path and each[2].metavar == "FILE"]
PATHS = [each for each in ALL if each not in FILES and (each[3] is Path or "PATH" in str(each[2].metavar))]


def named(value: object) -> str | None:
    """Name a case by its command and parameter."""
    return value if isinstance(value, str) else value.opts[0] if hasattr(value, "opts") else ""


@pytest.mark.parametrize(("path", "command", "parameter", "kind"), NUMBERS, ids=named)
def test_a_number_has_two_bounds(path: str, command: Any, parameter: Any, kind: type[float]) -> None:
    """Every number has a smallest and a largest value; what lies beyond, and nan, is refused before any work."""
    low, high = parameter.min, parameter.max
    assert low is not None, f"{path} {parameter.opts[0]}: give it min= and max="
    assert high is not None, f"{path} {parameter.opts[0]}: give it min= and max="
    beyond = [str(kind(low - 1)), str(kind(high + 1)), "1" + "0" * 400, "-1" + "0" * 400]
    context = command.make_context(path.split()[-1], [], resilient_parsing=True)
    for text in beyond + ["nan", "inf", "-inf", "1e999"] * (kind is float):
        with pytest.raises(typer.BadParameter) as error:
            parameter.process_value(context, (text,) if parameter.multiple else text)
        assert "\n" not in error.value.message
    for value in (low, high):
        assert math.isfinite(value)
        parameter.process_value(context, (str(value),) if parameter.multiple else str(value))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording and a run of it."""
    folder = tmp_path_factory.mktemp("bounds")
    recording(folder, 2, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        execute(plan("some.jsonl", strategies=("none", "last_turn")), Path("run"))
        assert outcome(["gate", "run", "--update", "--baseline", "baseline.json"]) == ""
    return folder


@pytest.fixture
def place(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a copy of that, with a pipe, a link to a device, and 5 GB of nothing."""
    folder = tmp_path / "work"
    shutil.copytree(base, folder)
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    with (folder / "nothing").open("wb") as file:
        file.truncate(5 << 30)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@contextmanager
def guarded() -> Iterator[None]:
    """End what hangs, and what takes too much memory, by an error."""

    def hung(*_: object) -> None:
        raise TimeoutError("it hangs")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, hung)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    signal.alarm(HUNG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def words(path: str, command: Any, parameter: Any, value: str) -> list[str]:
    """A command line with that value."""
    given = [*path.split(), *BRIEF.get(path, ())]
    for other in command.params:
        if other is parameter:
            given += [value] if other.param_type_name == "argument" else [other.opts[0], value]
        elif other.param_type_name == "argument":
            given += ARGUMENTS[other.name]
        elif other.required:
            given += [other.opts[0], "made"]
    return given


def outcome(given: list[str]) -> str:
    """Run a command in this process; return its error, empty for none. Whatever it is, the user can mend it."""
    with guarded():
        result = CliRunner().invoke(app, given)
    if isinstance(result.exception, UserError):
        return str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), (given, result.exception)
    return "" if result.exit_code == 0 else result.stderr


needs_linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc and /dev/zero")


@needs_linux
@pytest.mark.parametrize(("path", "command", "parameter", "kind"), FILES, ids=named)
def test_a_pipe_or_a_device_is_no_file(place: Path, path: str, command: Any, parameter: Any, kind: object) -> None:
    """Every FILE, read or written, is refused in one line if it is none, and nothing is put in its place."""
    for name, what in (("pipe", "it is a pipe"), ("zero", "it is a device")):
        error = outcome(words(path, command, parameter, name))
        assert what in error
        assert "\n" not in error
    assert (place / "pipe").is_fifo()
    assert (place / "zero").is_symlink()


@needs_linux
@pytest.mark.parametrize(("path", "command", "parameter", "kind"), PATHS, ids=named)
def test_no_path_hangs(place: Path, path: str, command: Any, parameter: Any, kind: object) -> None:
    """A run, a recording or a folder that is a pipe, a device or 5 GB of nothing ends the command, or is left out."""
    for name in ("pipe", "zero", "nothing"):
        outcome(words(path, command, parameter, name))
    assert (place / "pipe").is_fifo()
    assert (place / "zero").is_symlink()


@needs_linux
@pytest.mark.parametrize(("path", "command", "parameter", "kind"), FILES + PATHS, ids=named)
def test_a_name_that_no_file_can_have(place: Path, path: str, command: Any, parameter: Any, kind: object) -> None:
    """A name that is too long or not UTF-8, and a link to itself, are one line wherever a path is taken."""
    (place / "itself").symlink_to("itself")
    for name in ("a" * 300, "\udcff", "itself"):
        error = outcome(words(path, command, parameter, name))
        assert error
        assert "Traceback" not in error


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("gate", "run", "--policy", "nothing"), "cannot be read: it has over 4 MiB"),
        (("gate", "run", "--baseline", "nothing"), "cannot be read: it has over 1,024 MiB"),
        (("run", "some.jsonl", "-s", "pipe.py:X"), "pipe.py: cannot be read: it is a pipe"),
        (("run", "some.jsonl", "-s", f"window(max_tokens={10**17})"), "max_tokens is beyond 9,007,199,254,740,992"),
        (("run", "some.jsonl", "-s", "none", "--window", "9" * 5000), "is more than any has"),
        (("tune", f"window(max_tokens=?[1..{10**400}])", "some.jsonl"), "no number may be"),
        (("export", "prometheus", "run", "--to", "."), ".: cannot be written: Is a directory"),
        (("run", "some.jsonl", "--format", "\udcff"), "is not UTF-8"),
    ],
)
@needs_linux
def test_numbers_and_files_in_texts(place: Path, given: tuple[str, ...], says: str) -> None:
    """Numbers within strategies and ranges, and files of settings, have bounds as well."""
    os.mkfifo(place / "pipe.py")
    error = outcome(list(given))
    assert says in error
    assert "\n" not in error


@needs_linux
@pytest.mark.parametrize("kind", ["pipe", "nothing", "zero"])
def test_settings_that_are_no_file(place: Path, kind: str) -> None:
    """A ctxbench.toml that is a pipe, a device or too large is named, and nothing waits for it."""
    (place / kind).rename(place / "ctxbench.toml")
    done = ctxbench("list", "metrics", cwd=place, code=2)
    assert "ctxbench.toml: cannot be read: it " in done.stderr
    assert done.stderr.count("\n") == 1
