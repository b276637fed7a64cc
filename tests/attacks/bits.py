"""Bits flipped in the files of a run folder, one at a time, each followed by a command that reads the folder.

A command holds if it prints what it prints of the whole folder, or refuses in one line that names the file. It falls if
it prints another figure, or ends in anything but a UserError.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ctxbench
from ctxbench.cli import app
from ctxbench.harness.claims.claim import Finding
from ctxbench.harness.claims.registry import write
from ctxbench.harness.claims.rows import ClaimSettings
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.schema import Manifest
from ctxbench.harness.folder.store import account, read_manifest, write_manifest
from ctxbench.reports.html.view import Site
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import UserError
from tests.harness.runs import bytes_of, plan

STRATEGIES = ("none", "summary(threshold=6, every=2)")
MODEL = "claude-sonnet-5"
Command = Callable[[], str]


@dataclass
class Tally:
    """The attacks of one sort: how many there were, what they met, and those that got through."""

    tried: int = 0
    held: Counter[str] = field(default_factory=Counter)
    fell: list[str] = field(default_factory=list)


def make(folder: Path) -> None:
    """Make a run of two shards under two strategies, with all that commands leave in its folder."""
    conversations = [*scenario("smoke")][2:6]
    (folder / "talks.jsonl").write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
    with small_shards():
        execute(plan(folder / "talks.jsonl", strategies=STRATEGIES), folder / "run")


def add_all(folder: Path) -> None:
    """Add what other commands leave in a run folder: bills, claims, the name of its money; and a baseline beside it."""
    account(folder / "run")
    finding = Finding("C01", "It saves.", "a paper", "a protocol", "holds", "It does.", ())
    write(load(folder / "run"), [finding], ClaimSettings(""))
    printed("gate", folder / "run", "--update", "--baseline", folder / "baseline.json", "-m", MODEL)


@contextmanager
def small_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
        yield


def printed(*words: object) -> str:
    """Return what a command prints. Raises what it raises."""
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "200", "NO_COLOR": "1"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return f"{done.stdout}exit code {done.exit_code}"


def commands(folder: Path) -> dict[str, Command]:
    """Return every command that reads a run folder, and the Python API, by name."""
    run, model = folder / "run", ("-m", MODEL)
    recordings = read_manifest(run).plan.names
    words: dict[str, tuple[object, ...]] = {
        "report": ("report", run, *model, "--json"),
        "compare": ("compare", run, *model, "--json"),
        "gate": ("gate", run, "--baseline", folder / "baseline.json", "--json"),
        "gate --update": ("gate", run, "--update", "--baseline", "-", *model),
        "bill": ("bill", run, *model, "--json"),
        "show": ("show", run, 1, 2, "--json"),
        "lab answer": ("lab", "answer", run, "--json"),
        "export prometheus": ("export", "prometheus", run, *model),
        "export requests": ("export", "requests", run),
    }

    def python() -> str:
        opened = ctxbench.load(run)
        wanted = (("timings", "latency_ns"), ("steps", "tokens_sent"), ("answers", "correct"))
        return str([opened.table(name)[column].sum() for name, column in wanted])

    def again() -> str:
        with small_shards():
            execute(plan(*recordings, strategies=STRATEGIES), run)
        others = ("bills", "claims.json", ".account")  # which a run does not make, and leaves as they are
        return str({name: of for name, of in bytes_of(run).items() if name.split("/")[0] not in others})

    def view() -> str:
        answer = Site([run], [MODEL]).respond("report", f"run={run}")
        if answer.status != 200:
            raise UserError(answer.body.decode()) if answer.status in (404, 422) else AssertionError(answer.status)
        return answer.body.decode()

    calls = {"ctxbench.load": python, "run": again, "view": view}
    return {name: partial(printed, *of) for name, of in words.items()} | calls


def restore(folder: Path, whole: Mapping[Path, bytes]) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path not in whole:
            path.unlink()
    for path, data in whole.items():
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def attack(folder: Path, of: Mapping[str, Command], positions: int, seed: int) -> Tally:
    """Flip so many bits, in one file after the other, and give a command after each: every one after every file.

    Then those alone that noticed, and of what is made again the bill: the others do not read the file, or take long.
    """
    run, chance, tally, expected = folder / "run", random.Random(seed), Tally(), dict[str, str]()
    files = [*sorted(run.rglob("*")), *folder.glob("baseline.json")]
    whole = {path: path.read_bytes() for path in files if path.is_file()}
    names = {path: str(path.relative_to(folder)).removeprefix("run/") for path in whole}
    pairs = [(path, name) for path, data in whole.items() if data for name in of]
    chance.shuffle(pairs)
    left = list(pairs)
    for _ in range(positions):
        path, name = left.pop() if left else chance.choice(pairs)
        data, at, bit = bytearray(whole[path]), chance.randrange(len(whole[path])), chance.randrange(8)
        data[at] ^= 1 << bit
        path.write_bytes(data)
        tally.tried += 1
        said = ""
        try:
            text = of[name]()
            restore(run, whole)
            if name not in expected:
                expected[name] = of[name]()
            said = "" if text == expected[name] else "another figure"
            tally.held["the same figures"] += not said
            if name != "run" and (name != "bill" or "bills" not in path.parts):
                pairs.remove((path, name))
        except UserError as error:
            said = "" if names[path] in str(error) else f"does not name the file: {error}"
            tally.held["named"] += not said
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said:
            tally.fell.append(f"{names[path]}, byte {at}, bit {bit}: {name}: {said}"[:400])
        restore(run, whole)
    return tally


def stop(folder: Path) -> dict[str, Command]:
    """Make the run one that was stopped before its end, and return the command that goes on with it."""
    run = folder / "run"
    again = {"run": commands(folder)["run"]}
    for path in [folder / "baseline.json", run / "claims.json", run / ".account", *run.glob("bills/*")]:
        path.unlink(missing_ok=True)  # which a run does not make
    begun = read_manifest(run)
    fields = ("format", "plan", "window", "versions", "strategy_names")
    write_manifest(run, Manifest(**{name: getattr(begun, name) for name in fields}, complete=False))
    return again
