"""Run folders in an object store: the same bytes as on a disk, whoever stops, and one run at a time."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ctxbench
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder import remote as remotes
from ctxbench.harness.folder.remote import LEASE, RemoteFolder, located
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import LOCK
from ctxbench.scenarios.errors import RunError, UserError
from tests.harness import command
from tests.harness.answers.builders import talks
from tests.harness.runs import bytes_of, plan, recording

fsspec = pytest.importorskip("fsspec")
ADDRESS = "memory://bucket/runs/one"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recordings of two shards, and a run of them on a disk."""
    folder = tmp_path_factory.mktemp("made")
    path = recording(folder, conversations=300, turns=1, size=1)
    execute(plan(path), folder / "run")
    return path, folder / "run"


@pytest.fixture
def store() -> Iterator[Any]:
    """An empty store in memory."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def at(folder: Path) -> RemoteFolder:
    return RemoteFolder(ADDRESS, folder)


def run(path: Path, folder: Path, **how: Any) -> None:
    execute(plan(path), folder, remote=at(folder), **how)


def stored(files: Any, folder: Path) -> dict[str, str]:
    """The digests of what the store has."""
    for name in files.find("/bucket/runs/one"):
        to = folder / name.removeprefix("/bucket/runs/one/")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(files.cat_file(name))
    return bytes_of(folder)


def on_disk(folder: Path) -> dict[str, str]:
    return {name: digest for name, digest in bytes_of(folder).items() if name != LOCK}


def test_the_store_has_the_bytes_of_a_disk(made: tuple[Path, Path], store: Any, tmp_path: Path) -> None:
    """A run into a store leaves the files of a run folder there, and nothing else."""
    run(made[0], tmp_path / "copy")
    assert stored(store, tmp_path / "stored") == on_disk(made[1])


def test_another_machine_reads_it(made: tuple[Path, Path], store: Any, tmp_path: Path) -> None:
    """Whoever has no copy gets one, times too; whoever has one fetches nothing but the manifest and the times."""
    run(made[0], tmp_path / "copy")
    other = at(tmp_path / "other")
    other.pull()
    assert load(other.copy).table("timings").equals(load(tmp_path / "copy").table("timings"))
    assert bytes_of(other.copy) == on_disk(tmp_path / "copy")
    fetched: list[str] = []
    whole = store.cat
    store.cat = lambda names, **how: fetched.extend(names) or whole(names, **how)
    try:
        other.pull()
    finally:
        del store.cat
    assert fetched.pop(0).endswith("/manifest.json")
    assert fetched == [name for name in store.find("/bucket") if "/timings/" in name]


def test_a_run_that_was_stopped_anywhere_goes_on(
    made: tuple[Path, Path], store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is stopped before its nth object is put, on a machine that is gone then; another one finishes it."""
    whole = RemoteFolder._put
    for last in (0, 1, 3, 7, 12, 18, 24, 31):
        store.store.clear()
        count = 0

        def stopping(self: RemoteFolder, name: str, data: bytes, *, last: int = last, **how: str) -> None:
            nonlocal count
            if (count := count + 1) > last:
                raise KeyboardInterrupt
            whole(self, name, data, **how)

        monkeypatch.setattr(RemoteFolder, "_put", stopping)
        with pytest.raises(KeyboardInterrupt):
            run(made[0], tmp_path / f"gone{last}")
        monkeypatch.setattr(RemoteFolder, "_put", whole)
        run(made[0], tmp_path / f"other{last}")
        assert stored(store, tmp_path / f"stored{last}") == on_disk(made[1])
        load(tmp_path / f"stored{last}")


def test_a_flipped_bit_in_the_store_is_told(made: tuple[Path, Path], store: Any, tmp_path: Path) -> None:
    """Whoever reads a run whose object has changed is told which; the same run command makes it again."""
    run(made[0], tmp_path / "copy")
    name = "/bucket/runs/one/steps/00001-002.parquet"
    data = store.cat_file(name)
    store.pipe_file(name, data[:40] + bytes([data[40] ^ 1]) + data[41:])
    other = at(tmp_path / "other")
    other.pull()
    with pytest.raises(RunError, match=r"steps/00001-002\.parquet is not as it was written"):
        load(other.copy)
    seen = list[bool]()
    run(made[0], tmp_path / "new", check=lambda _: seen.append((tmp_path / "new" / "manifest.json").exists()))
    assert store.cat_file(name) == data
    assert seen == [True]  # what the store has is looked at before its strategies run


def test_one_run_at_a_time(
    made: tuple[Path, Path], store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run renews its lease, another one on another machine is refused; it may begin when the first is done."""
    monkeypatch.setattr(remotes, "BEAT", 0.05)
    first, second = at(tmp_path / "first"), at(tmp_path / "second")
    told: list[str] = []
    second.tell = told.append
    with first.alone():
        with pytest.raises(RunError, match=r"memory://bucket/runs/one: another run is writing there"), second.alone():
            pass
        assert store.exists(f"/bucket/runs/one/{LEASE}")
    assert told == [f"{ADDRESS}: a run was writing there: looking for 0 s whether it still is"]
    with second.alone():
        pass
    assert not store.exists(f"/bucket/runs/one/{LEASE}")


def test_a_dead_lease_is_taken_over_once(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several that find the same lease dead at one moment, one has it; the others are refused."""
    monkeypatch.setattr(remotes, "BEAT", 0.1)
    at(tmp_path / "dead")._put(LEASE, b"owner 7")
    over, held, refused = threading.Event(), list[int](), list[str]()

    def take(number: int) -> None:
        try:
            with at(tmp_path / str(number)).alone():
                held.append(number)
                over.wait(30)
        except RunError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while len(held) + len(refused) < len(threads):
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    assert len(held) == 1
    assert not store.find("/bucket")


def test_names_that_lead_out_are_not_copied(made: tuple[Path, Path], store: Any, tmp_path: Path) -> None:
    """Objects whose names lead out of the folder, or are no file of a run, are left where they are."""
    run(made[0], tmp_path / "deep/copy")
    store.store["/bucket/runs/one/steps/../../../../out"] = store.store["/bucket/runs/one/manifest.json"]
    store.pipe_file("/bucket/runs/one/notes/mine.txt", b"mine")
    at(tmp_path / "deep/other").pull()
    assert not list(tmp_path.rglob("out"))
    assert not list(tmp_path.rglob("mine.txt"))
    run(made[0], tmp_path / "deep/copy", overwrite=True)
    assert store.cat_file("/bucket/runs/one/notes/mine.txt") == b"mine"


def test_a_place_that_cannot_be_reached(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of an unknown kind, with no run or with a secret in it, is one line that has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RunError, match=r"^memory://bucket/none: no run is here"):
        ctxbench.load("memory://bucket/none")
    with pytest.raises(UserError, match="nowhere://bucket/run: cannot be reached"):
        located("nowhere://bucket/run")
    with pytest.raises(RunError, match="no password, token or signature may be in the name of a run"):
        located("https://me:hunter2222@host/run")
    assert located("file:///some/run%20one") == (Path("/some/run one"), None)
    assert located(tmp_path) == (tmp_path, None)


def test_commands_take_an_address(made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run --out` and `report` take an address, and say it, from one process to the next and without the copy."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ("run", made[0], "-s", "none", "-s", "last_turn", "--jobs", "2")
    done = command.ctxbench(*words, "--out", "local://store/run", cwd=tmp_path)
    assert "results: local://store/run/" in done.stdout
    shutil.rmtree(tmp_path / "cache")
    shown = command.ctxbench("report", "local://store/run", "--print-only", cwd=tmp_path)
    assert shown.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    command.ctxbench(*words, "--out", (tmp_path / "plain").as_uri(), cwd=tmp_path)
    stored = bytes_of(tmp_path / "store/run")
    assert stored == on_disk(tmp_path / "plain")
    assert any(name.startswith("bills/") for name in stored)


def test_answers_are_put_beside_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lab answer` at an address puts answers and grades there: another machine's report has them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ("run", talks(tmp_path), "-s", "none", "-s", "last_turn")
    command.ctxbench(*words, "--answerer", "none", "--out", "local://store/run", cwd=tmp_path)
    assert not (tmp_path / "store/run/answers").exists()
    command.ctxbench("lab", "answer", "local://store/run", cwd=tmp_path)
    command.ctxbench(*words, "--out", "plain", cwd=tmp_path)
    for part in ("answers", "grades"):
        assert bytes_of(tmp_path / "store/run" / part) == bytes_of(tmp_path / "plain" / part) != {}
    shutil.rmtree(tmp_path / "cache")
    shown = command.ctxbench("report", "local://store/run", "--print-only", cwd=tmp_path).stdout
    assert shown == command.ctxbench("report", "plain", "--print-only", cwd=tmp_path).stdout.replace(
        "ctxbench report plain", "ctxbench report local://store/run"
    )
