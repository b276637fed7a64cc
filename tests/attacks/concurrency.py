"""Two processes at once on one cassette, one archive, one run folder: each gets the answers that it gets alone.

The processes live as long as the attack. Each round they wait for one another, and then a moment that the seed chooses,
so that they meet at ever other places: both making the file, one closing it while the other opens it.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any, NamedTuple

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.invariants import steps
from ctxbench.harness.models.cassette import Cassette, CassetteEntry, canonical, key_of, write_lines
from ctxbench.scenarios.errors import RunError, UserError
from ctxbench.strategies.archive.record import Card, Visibility, identify
from ctxbench.strategies.archive.store import ResultTable
from ctxbench.strategies.chain import parse
from tests.attacks import Outcome
from tests.attacks.sqlite_files import MEMORY
from tests.harness.runs import bytes_of, plan, recording
from tests.strategies.tool_results import LONG, asking, conversation

WAIT = 60.0
WRITING = "another run is writing there: wait for it, or name another --out"


class Said(NamedTuple):
    """The end of one process's work in a round."""

    answer: Any
    refused: str = ""
    escaped: str = ""


def use_cassette(path: Path, who: int) -> dict[str, bytes]:
    """Record shared, contested and own replies, and return the replies that the cassette has for them."""
    entries = cassette_entries(who)
    with Cassette(path) as cassette:
        kept = {entry.key: cassette.put(entry) for entry in entries[:6]}
        cassette.put_many(entries[6:])
        again = cassette.get_many([entry.key for entry in entries])
        assert all(again[key] == reply for key, reply in kept.items()), "a reply changed after it was written"
    return again


def cassette_entries(who: int) -> list[CassetteEntry]:
    """Return four requests that both get the same reply to, four that each gets another one to, and four own ones."""
    made = []
    for number in range(12):
        kind = ("shared", "contested", "own")[number % 3]
        request = canonical({"kind": kind, "number": number, "who": who if kind == "own" else None})
        reply = f'{{"text":"{number} {who if kind != "shared" else ""}"}}'.encode()
        made.append(CassetteEntry(key_of(request), "chat", "m", reply * (1 + 40 * (number % 5)), request))
    return made


CONTESTED = {entry.key for at, entry in enumerate(cassette_entries(0)) if at % 3 == 1}


def use_archive(path: Path, who: int) -> tuple[list[object], int, str]:
    """Archive shared and own results, delete own ones, and replay a conversation that the other replays as well."""
    store = ResultTable(str(path), WAIT)
    loaded: list[object] = []
    for card, text in archived(who):
        store.save(card, text)
        loaded.append(store.load(card.uuid))
    shared = store.cards(Visibility(f"own{who}", 2e9), 1000)
    deleted = store.delete(1e9 + 2, conversation=f"own{who}")
    sent = replayed(str(path))
    return loaded, len([card for card in shared if card.conversation == "both"]) + len(deleted.uuids), sent


def archived(who: int) -> list[tuple[Card, str]]:
    """Return three results of a conversation that both archive, and three of an own one."""
    made = []
    for at in range(6):
        name, text = ("both" if at % 2 else f"own{who}"), f"result {at} " * (20 + 300 * at)
        uuid = identify(name, f"t{at}", text)
        made.append(
            (Card(uuid, name, f"t{at}", "", "search", {"at": at}, "q", "s", len(text), (), 1e9 + at // 2), text)
        )
    return made


def replayed(file: str) -> str:
    """Replay a conversation under `archive`, and return the digest of all that was sent."""
    talk = conversation(
        asking(1, "when?", "gate", LONG[:4000], time=1e9),
        asking(2, "and now?", "hall", LONG[:4100], time=2e9),
        asking(3, "what did you say earlier about the gate?", "x", "short", time=3e9),
    )
    strategy = parse(f"archive(threshold=1000, store={file!r}, trigger='hybrid', wait={WAIT}, fresh=False)")
    digest = hashlib.sha256()
    for step in steps(strategy, talk):
        for message in step.context.messages:
            digest.update(f"{message.id} {message.text}\n".encode())
    return digest.hexdigest()


def use_run(path: Path, who: int) -> str:
    """Run a plan into a folder, or read the folder; a folder that is not complete yet may say so."""
    if who:
        try:
            return f"read {len(list(load(path).conversations()))}"
        except RunError as error:
            if "\n" in str(error) or str(path) not in str(error):
                raise AssertionError(f"not one line that names the folder: {error}") from error
            return "told that it is not complete"
    return execute(plan(path.parent / "some.jsonl", strategies=("none", "archive(threshold=100)")), path).digest


JOBS: dict[str, Callable[[Path, int], object]] = {
    "cassette": use_cassette,
    "archive": use_archive,
    "run": use_run,
}


def serve(pipe: Connection, barrier: Barrier) -> None:
    """Do one job after the other, each at the same moment as the other process, until there are no more."""
    while (order := pipe.recv()) is not None:
        job, path, who, delay = order
        barrier.wait(WAIT)
        time.sleep(delay)
        try:
            said = Said(JOBS[job](path, who))
        except UserError as error:
            said = Said(None, refused=str(error))
        except Exception as error:
            said = Said(None, escaped=f"{type(error).__name__}: {error}")
        pipe.send(said)


class Pair:
    """Two processes."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def both(self, job: str, path: Path, who: tuple[int, int], delays: tuple[float, float]) -> tuple[Said, Said]:
        """Have both do a job on one file at once."""
        for pipe, which, delay in zip(self._pipes, who, delays, strict=True):
            pipe.send((job, path, which, delay))
        one, other = (pipe.recv() for pipe in self._pipes)
        return one, other


@contextmanager
def pair() -> Iterator[Pair]:
    """Start two processes, and end them."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])  # what takes seconds is imported once
    barrier, ends = server.Barrier(2), [server.Pipe() for _ in range(2)]
    workers = [server.Process(target=serve, args=(theirs, barrier), daemon=True) for _, theirs in ends]
    for worker in workers:
        worker.start()
    try:
        yield Pair([ours for ours, _ in ends])
        for ours, _ in ends:
            ours.send(None)
        for worker in workers:
            worker.join(WAIT)
    finally:
        for worker in workers:
            worker.kill()


class Alone(NamedTuple):
    """The outcome of each job where one process does it, and then the other."""

    lines: list[bytes]
    """Replies of the cassette without the contested ones."""
    archive: tuple[object, object]
    """Answers of both processes."""
    rows: list[tuple[Card, str]]
    digest: str
    run: dict[str, str]


def alone(folder: Path) -> Alone:
    """Do all jobs one after the other."""
    recording(folder, conversations=2, turns=2)
    for who in (0, 1):
        use_cassette(folder / "cassette", who)
    answers = use_archive(folder / "archive.db", 0), use_archive(folder / "archive.db", 1)
    digest = use_run(folder / "run", 0)
    rows = rows_of(folder / "archive.db")
    # Results that two processes share, of one that replays, and those that the other's deletion must leave alone.
    assert {card.conversation for card, _ in rows} == {"both", "own0", "own1", "talk"}
    return Alone(lines_of(folder / "cassette"), answers, rows, digest, bytes_of(folder / "run"))


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a cassette but the contested ones, after reading all of the file."""
    with Cassette(path, read_only=True) as cassette:
        cassette.check()
        keys = {entry.key for entry in cassette.entries()} - CONTESTED
        return list(write_lines(cassette, keys))


def rows_of(path: Path) -> list[tuple[Card, str]]:
    """Return what an archive has."""
    store = ResultTable(str(path), WAIT)
    rows = [store.load(card.uuid) for card in store.cards(Visibility("nobody", 4e9), 1000)]
    return [row for row in rows if row is not None]


def try_cassette(both: Pair, path: Path, delays: tuple[float, float], expected: Alone) -> str:
    """Return what two processes on one cassette lost; empty if nothing."""
    said = both.both("cassette", path, (0, 1), delays)
    if trouble := _trouble(said):
        return trouble
    one, other = (each.answer for each in said)
    if any(one[key] != other[key] for key in CONTESTED):
        return "the processes have different replies to one request"
    return "" if lines_of(path) == expected.lines else "the replies are not those of one process"


def try_archive(both: Pair, path: Path, delays: tuple[float, float], expected: Alone) -> str:
    """Return what two processes on one archive lost; empty if nothing."""
    said = both.both("archive", path, (0, 1), delays)
    if trouble := _trouble(said):
        return trouble
    if tuple(each.answer for each in said) != expected.archive:
        return "a process got another answer than alone"
    return "" if rows_of(path) == expected.rows else "the rows are not those of one process"


def try_run(both: Pair, path: Path, delays: tuple[float, float], expected: Alone, reads: bool) -> str:
    """Return what two processes on one run folder lost; empty if nothing. The second runs as well, or reads it."""
    said = both.both("run", path, (0, int(reads)), delays)
    if any(each.escaped for each in said):
        return _trouble(said)
    if reads and said[0].refused:
        return f"refused because of a reader: {said[0].refused}"
    digests = [each.answer for each in said[: 1 if reads else 2] if not each.refused]
    if not digests or set(digests) != {expected.digest}:
        return f"not one of them finished alike: {said}"
    if any(each.refused not in ("", f"{path}: {WRITING}") for each in said):
        return f"refused for another reason: {said}"
    return "" if bytes_of(path) == expected.run else "the bytes are not those of one process"


def _trouble(said: Sequence[Said]) -> str:
    return "; ".join(filter(None, (each.refused or each.escaped for each in said)))


def _remove(folder: Path, job: str) -> None:
    for path in folder.glob(f"{job}[0-9]*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def attack(seed: int, tries: int) -> Outcome:
    """Let two processes meet on a cassette, an archive and a run folder, so many times each."""
    lost = []
    with TemporaryDirectory(dir=MEMORY) as name, pair() as both:
        folder = Path(name)
        expected = alone(folder)
        for number in range(tries):
            chance = Random(f"{seed}/{number}")
            for job in JOBS:
                # Every fourth time it is there already.
                path = folder / f"{job}{number - (number % 4 == 3)}"
                most = chance.choice((0, 0.001, 0.03 if job != "run" else 0.3))
                delays = chance.uniform(0, most), chance.uniform(0, most)
                match job:
                    case "cassette":
                        said = try_cassette(both, path, delays, expected)
                    case "archive":
                        said = try_archive(both, path, delays, expected)
                    case _:
                        said = try_run(both, path, delays, expected, reads=chance.random() < 0.25)
                if said:
                    lost.append(f"seed {seed}, try {number}, {job}: {said}")
                elif number % 4 == 3:
                    _remove(folder, job)
    return Outcome(tries * len(JOBS), tries * len(JOBS) - len(lost), lost)
