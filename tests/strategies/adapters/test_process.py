"""Adapters in other Pythons: the same messages, every failure in a line, and no process that is left over."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxbench.api.names import find_strategy
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.replay import failure_reason
from ctxbench.scenarios.errors import MissingExtra, SpecError, WorkerError
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import process
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.chain import strategies, use_pythons
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import bytes_of, plan, recording
from tests.strategies.adapters import stand_in
from tests.strategies.stubs import Stub, played

ROOT = Path(__file__).parents[3]
NEWEST: Any = stand_in.newest
SAID = talk(*(("user" if at % 2 == 0 else "assistant", f"message {at}") for at in range(8)))


def library(folder: Path) -> Path:
    """A folder for sys.path in which the stand-in library is installed."""
    info = folder / "library" / "stand_in_library-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {stand_in.LIBRARY}\nVersion: 1.5\n")
    return info.parent


def program(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python that has the stand-in library."""
    return program(tmp_path, "python", f'PYTHONPATH="{library(tmp_path)}:{ROOT}" exec "{sys.executable}" "$@"')


@pytest.fixture(autouse=True)
def here_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-in is known by name, and the next test begins without other Pythons."""
    monkeypatch.setitem(strategies(), "stand_in.newest", NEWEST)
    workers = set(process._workers)
    yield
    process.use_interpreters(())
    for path in set(process._workers) - workers:
        process._workers.pop(path).end()


def sent(conversation: Conversation = SAID, models: Stub | None = None, **parameters: Any) -> list[list[str]]:
    steps = played(NEWEST(**parameters), conversation, models)
    return [[message.text for message in step.context.messages] for step in steps]


@pytest.mark.parametrize("also", ["", "count", "summarise", "report"])
def test_messages_and_events_are_those_of_this_process(
    also: str, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library in another Python is shown, asks, sends and is charged what it is in this one."""
    models = [Stub(reply=lambda prompt: f"reply to {prompt.text()}") for _ in range(2)]
    use_pythons([python])
    there = played(NEWEST(n=3, also=also), SAID, models[0])
    process.use_interpreters(())
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    here = played(NEWEST(n=3, also=also), SAID, models[1])
    assert [(step.context, step.events) for step in there] == [(step.context, step.events) for step in here]
    assert models[0].prompts == models[1].prompts
    assert (len(models[0].prompts) > 0) == (also == "summarise")


def test_prints_of_a_library_do_not_reach_the_protocol(python: str, capfd: pytest.CaptureFixture[str]) -> None:
    """What a library prints, and its C code, goes to standard error, and it finds no input."""
    use_pythons([python])
    assert sent(also="print")[0] == ["read: ''", "message 0"]
    out, err = capfd.readouterr()
    assert (out, err.count("noise of a library"), err.count("noise of its C code")) == ("", 4, 4)


def test_steps_that_are_not_used_any_more_are_forgotten(python: str) -> None:
    """One worker serves all conversations, and drops the state of those that are over."""
    use_pythons([python])
    for _ in range(3):
        assert {texts[0] for texts in sent(also="alive")} == {"1 open"}


def test_a_model_s_refusal_is_the_model_s(python: str) -> None:
    """A library may survive that the summariser has no reply; if it does not, the reason is the one of this process."""

    def refuse(_: object) -> str:
        raise ModelError("over the spend limit")

    use_pythons([python])
    assert sent(models=Stub(reply=refuse), also="survive")[0][0] == "no summary: over the spend limit"
    with pytest.raises(ModelError, match="over the spend limit") as raised:
        sent(models=Stub(reply=refuse), also="summarise")
    assert failure_reason(raised.value).endswith(f"({Path(__file__).name}:{refuse.__code__.co_firstlineno + 1})")
    assert sent(n=1)[1] == ["message 2"]  # the worker goes on


@pytest.mark.parametrize("also", ["raise", "exit", "refuse", "raise later"])
def test_an_error_of_the_library_is_the_same_line(
    also: str, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a library raises, or that it exits, is told in the words, and with the place, of a run in this process."""
    use_pythons([python])
    with pytest.raises(WorkerError) as there:
        sent(also=also)
    process.use_interpreters(())
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    with pytest.raises((KeyError, SystemExit, ValueError)) as here:
        sent(also=also)
    assert failure_reason(there.value) == failure_reason(here.value)


def test_an_answer_that_is_no_message(python: str) -> None:
    """An object of the library among the dicts is named, and the worker goes on."""
    use_pythons([python])
    with pytest.raises(WorkerError, match="type object is unsupported"):
        sent(also="invent")
    assert sent(n=1)[1] == ["message 2"]


def test_a_process_that_dies_is_started_anew(python: str) -> None:
    """A conversation in whose middle the process dies is lost with the reason, and the next one is measured."""
    use_pythons([python])
    with pytest.raises(WorkerError, match=f"^{re.escape(python)}: the process of the adapter was ended by SIGKILL$"):
        sent(also="die later")
    assert sent(n=1)[1] == ["message 2"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 0", "is no Python that adapters can run in: it ended with exit code 0"),
        ("echo Hello there, and good bye", "is no Python that adapters can run in: it ended with exit code 0"),
        (f'exec "{sys.executable}" -c "import sys; sys.version_info = (3, 10)\n$2" "$3"', "is older than Python 3.11"),
        (f'exec "{sys.executable}" -S -I "$@"', "has no msgspec: {} -m pip install msgspec"),
    ],
)
def test_a_program_that_adapters_cannot_run_in(script: str, why: str, tmp_path: Path) -> None:
    """What is no Python, is too old, or has no msgspec is told in a line before anything is measured."""
    path = program(tmp_path, "other", script)
    use_pythons([path])
    with pytest.raises(WorkerError, match=f"^{re.escape(f'{path}: {why.format(path)}')}$"):
        NEWEST()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/no/such/python", "--adapter-python /no/such/python: there is no such program"),
        ("no-such-python", "--adapter-python no-such-python: there is no such program"),
        ("", "--adapter-python : there is no such program"),
        ("{folder}", "is a folder: name the Python in it, such as bin/python"),
        ("langchain-cor=/bin/sh", "no adapter calls a library 'langchain-cor'; did you mean 'langchain-core'"),
    ],
)
def test_a_text_that_names_no_python(text: str, why: str, tmp_path: Path) -> None:
    """A program that is not there, and a library that no adapter calls, are told before anything is run."""
    with pytest.raises(SpecError) as raised:
        use_pythons([text.format(folder=tmp_path)])
    assert why in str(raised.value)


def test_which_python_a_library_runs_in(python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named library runs where it is said; others run here if they are installed, else in the first that has them."""
    without = program(tmp_path, "without", f'exec "{sys.executable}" "$@"')
    with pytest.raises(MissingExtra, match=r"adapter-stand-in\]', or name a Python that has it with --adapter-python$"):
        NEWEST()
    use_pythons([without])
    with pytest.raises(MissingExtra, match=f"; {re.escape(without)} has no stand-in-library either$"):
        NEWEST()
    use_pythons([without, python])
    assert process.place_of(stand_in.LIBRARY) == python
    assert process.version_of(stand_in.LIBRARY) == "1.5"
    use_pythons([f"Stand_In.Library={without}", python])
    with pytest.raises(MissingExtra, match=f"; {re.escape(f'{without}, {python}')} has no"):
        NEWEST()
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    use_pythons([python])
    assert process.place_of(stand_in.LIBRARY) is None
    use_pythons([f"stand-in-library={python}"])
    assert process.place_of(stand_in.LIBRARY) == python


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in adapter is installed as a package, for processes that are started from here."""
    info = tmp_path / "package" / "stand_in-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ctxbench.strategies]\nstand_in.newest = {stand_in.__name__}:newest\n")
    monkeypatch.syspath_prepend(str(info.parent))


@pytest.mark.usefixtures("package")
def test_a_run_has_the_bytes_of_a_run_in_this_process(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both folders are the same but for the times, with worker processes too, and have the library's version."""
    use_pythons([python])
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    recordings, spec = recording(tmp_path, 4, turns=1), "stand_in.newest(also='count')"
    measured = plan(recordings, strategies=("none", spec), probes=False)
    there = execute(measured, tmp_path / "there", jobs=2)
    process.use_interpreters(())
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    execute(measured, tmp_path / "here")
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    assert (there.shards, there.versions["strategy stand_in.newest"]) == (2, "stand-in-library 1.5")


def test_nothing_else_is_lost_with_a_process(python: str, tmp_path: Path) -> None:
    """Where the library kills its process in some conversations, all others have their results."""
    use_pythons([python])
    sources = [recording(tmp_path, 3, turns=turns).rename(tmp_path / f"{turns}.jsonl") for turns in (1, 4)]
    spec = "stand_in.newest(also='die later')"
    execute(plan(*sources, strategies=("none", spec), probes=False), tmp_path / "run")
    results = load(tmp_path / "run").table("results")
    assert list(results.status) == ["ok"] * 9 + ["failed"] * 3
    process.use_interpreters(())  # the run can be looked at without the library
    assert find_strategy(load(tmp_path / "run"), spec) == spec
    assert {f"{python}: the process of the adapter was ended by SIGKILL", ""} == set(results.detail)


def test_a_configuration_names_pythons_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of `ctxbench.toml` is one beside the file; the name of a program is looked for on PATH."""
    (tmp_path / "ctxbench.toml").write_text('adapter-python = ["env/python", "langchain-core=../p", "not-there"]\n')
    (tmp_path / "sub").mkdir()
    shown = ctxbench("config", "tune", cwd=tmp_path / "sub").stdout
    assert "--adapter-python  ../env/python, langchain-core=../../p, not-there" in shown
    monkeypatch.setenv("CTXBENCH_TRUST", "1")
    stopped = ctxbench("run", "smoke", cwd=tmp_path / "sub", code=2)
    assert "error: --adapter-python ../env/python: there is no such program" in stopped.stderr


SERVED = """
import sys, time
from ctxbench.strategies.adapters import process
worker = process._worker(sys.argv[1])
print(worker._process.pid, flush=True)
if len(sys.argv) > 2:
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(number: signal.Signals | None, python: str) -> None:
    """A worker ends with the process that started it, whether that ends by itself, by Ctrl-C or is killed."""

    def listen() -> None:  # to Ctrl-C, which tests that are run in the background are started to ignore
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [sys.executable, "-c", SERVED, python, *(["wait"] if number else [])]
    pipes = partial(subprocess.Popen, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with pipes(command, preexec_fn=listen) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if number:
            parent.send_signal(number)
        parent.wait()
    for _ in range(200):
        if not Path(f"/proc/{pid}/stat").exists():
            return
        time.sleep(0.05)
    pytest.fail(f"still there: {Path(f'/proc/{pid}/stat').read_text()}")
