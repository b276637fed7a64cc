"""Standard output and standard error that go away or are full."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.harness.command import CTXBENCH, ctxbench, forked, said
from tests.harness.runs import recording

COMMANDS = {
    "help": ["--help"],
    "list": ["list", "formats"],
    "list as JSON": ["list", "formats", "--json"],
    "run": ["run", "some.jsonl", "-s", "none", "-o", "r"],
    "run as JSON": ["run", "some.jsonl", "-s", "none", "-o", "r", "--json"],
    "report as Markdown": ["report", "r", "--markdown", "-"],
    "show": ["show", "r"],
    "show a step": ["show", "r", "c0"],
    "convert": ["convert", "some.jsonl", "--to", "-"],
}


AGAIN = ["r: already measured; --overwrite measures again"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording and a run."""
    made = tmp_path_factory.mktemp("streams")
    recording(made, conversations=2)
    ctxbench(*COMMANDS["run"], cwd=made)
    return made


def alone(command: list[str], folder: Path, out: int) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python of its own, which writes what is left when it ends."""
    return subprocess.run(command, cwd=folder, stdout=out, stderr=subprocess.PIPE, text=True, check=False)


def written_to(out: int, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that writes to an open file: each in a forked process, and the list in a Python of its own too."""
    words = [CTXBENCH, *COMMANDS[command]]
    done = forked("commands", words, folder, out=out)
    if command == "list":
        own = alone(words, folder, out)
        assert (own.returncode, own.stderr) == (done.returncode, done.stderr)
    return done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_goes_away(folder: Path, command: str) -> None:
    """Behind `| head` any command ends quietly, with the exit code that it has without."""
    reader, writer = os.pipe()
    os.close(reader)
    done = written_to(writer, folder, command)
    os.close(writer)
    usual = {"run": AGAIN, "run as JSON": AGAIN, "convert": ["2 conversations written to -"]}
    assert (done.returncode, said(done.stderr)) == (0, usual.get(command, []))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(folder: Path, command: str) -> None:
    """Where standard output is full, any command says so in one line and ends with exit code 2."""
    with open("/dev/full", "wb") as full:
        done = written_to(full.fileno(), folder, command)
    assert done.returncode == 2
    assert said(done.stderr) == [
        *(AGAIN if command.startswith("run") else []),
        "error: standard output: cannot be written: No space left on device",
    ]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_nobody_to_say_it_to(folder: Path) -> None:
    """Where standard error is full, or closed, the work is done all the same."""
    command = [CTXBENCH, "run", "some.jsonl", "missing.jsonl", "-s", "none", "--json", "--overwrite", "-o", "quiet"]
    with open("/dev/full", "wb") as full:
        done = forked("commands", command, folder, err=full.fileno())
    closed = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *command], cwd=folder, stdout=subprocess.PIPE, check=False)
    for each in (done, closed):
        assert each.returncode == 2  # for the path that is not there
        assert json.loads(each.stdout)["conversations"] == 2
