"""Run folders that are damaged or cut off by a power failure: what differs is named, and made again alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.scenarios.errors import RunError
from tests.attacks import Outcome, outcome
from tests.harness.folder.test_damage import (
    STRATEGIES,
    Journal,
    add,
    cut,
    empty,
    files_of,
    is_noticed,
    lose,
    swap,
    talks,
)
from tests.harness.runs import bytes_of, plan


@contextmanager
def made() -> Iterator[Path]:
    """Make a folder with recordings and a run of several shards, and remove it at the end."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
        folder = Path(name)
        execute(plan(talks(folder), strategies=STRATEGIES), folder / "run")
        yield folder


def flips(seed: int, tries: int) -> Outcome:
    """Flip a bit of a file of a run, of the manifest and receipts too: each must be noticed."""
    chance, lost = random.Random(seed), []
    with made() as folder:
        files = files_of(folder / "run")
        for _ in range(tries):
            path = chance.choice(files)
            whole = path.read_bytes()
            at, bit = chance.randrange(len(whole)), chance.randrange(8)
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            if not is_noticed(folder / "run"):
                lost.append(f"bit {bit} of byte {at} of {path.relative_to(folder)} flipped in silence")
            path.write_bytes(whole)
    return outcome(tries, lost)


def parts(seed: int, tries: int) -> Outcome:
    """Lose, cut, empty, swap and add parts: each is noticed, and the same command makes the run again as it was."""
    chance, lost = random.Random(seed), []
    with made() as folder:
        run, copy = folder / "run", folder / "copy"
        whole = bytes_of(run)
        for _ in range(tries):
            shutil.copytree(run, copy)
            table = chance.choice(["recordings", "messages", "steps", "contexts", "probes", "receipts", "timings"])
            path, other = chance.sample([each for each in sorted((copy / table).iterdir()) if each.is_file()], 2)
            spoil = chance.choice([lose, cut, empty, swap, add])
            spoil(path, other)
            what = f"{spoil.__name__} {path.relative_to(copy)} (other: {other.name})"
            if not is_noticed(copy):
                lost.append(f"{what}: not noticed")
            else:
                execute(plan(folder / "talks.jsonl", strategies=STRATEGIES), copy)
                if bytes_of(copy) != whole or is_noticed(copy):
                    lost.append(f"{what}: not made again as it was")
            shutil.rmtree(copy)
    return outcome(tries, lost)


def power_cuts(seed: int, tries: int) -> Outcome:
    """Cut the power at any write, with what was not synced gone, empty or half there: the same command ends the run."""
    chance, lost = random.Random(seed), []
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
        path = talks(folder)
        with pytest.MonkeyPatch.context() as noting:
            journal = Journal(noting, folder / "run")
            execute(plan(path, strategies=STRATEGIES), folder / "run")
        whole = bytes_of(folder / "run")
        for number in range(tries):
            out = folder / f"cut{number}"
            out.mkdir()
            stop = chance.randrange(len(journal.entries) + 1)
            journal.play(stop, out, chance)
            try:
                execute(plan(path, strategies=STRATEGIES), out)
            except RunError:  # the manifest itself is half there: one clear error, and another folder is made
                shutil.rmtree(out)
                execute(plan(path, strategies=STRATEGIES), out)
            if bytes_of(out) != whole or is_noticed(out):
                lost.append(f"power cut after write {stop} of {len(journal.entries)}: other bytes")
            shutil.rmtree(out)
    return outcome(tries, lost)
