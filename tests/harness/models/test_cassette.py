"""The cassette: what it keeps, with several processes at once, of another version, read only, as lines."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from ctxbench.harness.models.cassette import Cassette, CassetteEntry, canonical, key_of
from ctxbench.scenarios.errors import SetupError


def entry(number: int, reply: bytes = b'{"text":"yes"}') -> CassetteEntry:
    """A chat entry."""
    request = canonical({"kind": "chat", "model": "m", "number": number})
    return CassetteEntry(key_of(request), "chat", "m", reply, request)


def test_a_key_is_the_request_and_nothing_else() -> None:
    """The order of fields does not change a key, any value does; a key is the same in every process."""
    one = canonical({"model": "m", "temperature": 0.3, "messages": [{"role": "user", "content": "你好"}]})
    other = canonical({"messages": [{"content": "你好", "role": "user"}], "temperature": 0.3, "model": "m"})
    assert one == other == '{"messages":[{"content":"你好","role":"user"}],"model":"m","temperature":0.3}'
    assert key_of(one) == "354a9b56858bb7a0236ec064fe1034bde1c900d28f19de4c0c9c9b6731084d8b"
    assert key_of(one) != key_of(canonical({"model": "m", "temperature": 0.4, "messages": []}))


def test_what_is_put_is_got(tmp_path: Path) -> None:
    """Replies and vectors come back as the same bytes, also after closing; what was never put is None."""
    vector = np.arange(4, dtype=np.float32).tobytes()
    with Cassette(tmp_path / "new folder" / "c.sqlite") as cassette:
        cassette.put(entry(1))
        cassette.put(CassetteEntry("k", "embedding", "e", vector))
        assert cassette.get("nothing") is None
    with Cassette(tmp_path / "new folder" / "c.sqlite", read_only=True) as cassette:
        assert cassette.get(entry(1).key) == b'{"text":"yes"}'
        assert cassette.get_many(["k", "nothing", entry(1).key]) == {"k": vector, entry(1).key: b'{"text":"yes"}'}
        cassette.check()
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["c.sqlite"]


def _record(path: str, who: int, replies: int) -> None:
    with Cassette(Path(path)) as cassette:
        for number in range(replies):
            mine = f"{who}".encode()
            kept = cassette.put(entry(number, mine))
            assert kept == cassette.get(entry(number).key)


def test_several_processes_at_once(tmp_path: Path) -> None:
    """Four processes that make one cassette and record the same requests lose none, and agree on the replies."""
    path = tmp_path / "c.sqlite"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_record, args=(str(path), who, 200)) for who in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    with Cassette(path, read_only=True) as cassette:
        cassette.check()
        assert cassette._open.execute("SELECT COUNT(*) FROM replies").fetchone() == (200,)


def test_a_file_that_is_no_cassette(tmp_path: Path) -> None:
    """A text, another database, a folder, a cassette of a later version are refused by name, and left as they are."""
    (tmp_path / "text").write_text("not a database, but long enough to look for a header " * 9)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine (a)")
    other.close()
    with Cassette(tmp_path / "later") as cassette, cassette.transaction() as database:
        database.execute("PRAGMA user_version=9")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name, says in [("text", "not a database"), ("other", "no cassette"), ("later", "a cassette of version 9")]:
        for read_only in (True, False):
            with pytest.raises(SetupError, match=f"{name}: .*{says}"):
                Cassette(tmp_path / name, read_only=read_only)
    (tmp_path / "folder").mkdir()
    with pytest.raises(SetupError, match="folder: "):
        Cassette(tmp_path / "folder")
    assert {path: path.read_bytes() for path in before} == before


def test_a_damaged_cassette(tmp_path: Path) -> None:
    """Damage in the middle of the file is found by `check`, and said in one line with what to do."""
    path = tmp_path / "c"
    with Cassette(path) as cassette:
        cassette.put_many([entry(number, b"x" * 500) for number in range(500)])
    data = bytearray(path.read_bytes())
    data[60000:80000] = b"\0" * 20000
    path.write_bytes(data)
    with pytest.raises(SetupError, match=r"c: .*: move it away, or name another") as caught, Cassette(path) as cassette:
        cassette.check()
    assert "\n" not in str(caught.value)


def test_a_locked_cassette(tmp_path: Path) -> None:
    """A cassette that another program holds is said to be so, after a while."""
    with Cassette(tmp_path / "c"):
        pass
    other = sqlite3.connect(tmp_path / "c", isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
        with Cassette(tmp_path / "c", read_only=True, busy=0.05) as reader:
            assert reader.get("k") is None
        with pytest.raises(SetupError, match="locked: end the program that holds the cassette"):
            Cassette(tmp_path / "c", busy=0.05)
    finally:
        other.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A cassette is replayed where nothing may be written (a checkout in CI), as a user that is not root."""
    folder = tmp_path / "ro"
    with Cassette(folder / "c") as cassette:
        cassette.put(entry(1))
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            with Cassette(folder / "c", read_only=True) as cassette:
                known = cassette.get(entry(1).key)
            with pytest.raises(SetupError, match="add --replay if it has all replies"):
                Cassette(folder / "c")
            os._exit(0 if known else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    folder.chmod(0o755)
