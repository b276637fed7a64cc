"""What happens when the archive's store cannot be had, or only be read: results are sent whole, and it is said."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest
from sqlalchemy import event

from ctxbench.strategies.archive.record import StoreError, identify
from ctxbench.strategies.archive.store import ResultStore
from ctxbench.strategies.events import Archived, Failed
from tests.strategies.tool_results import LONG, Opening, asking, at_file, conversation


def test_a_locked_store(tmp_path: Path) -> None:
    """The results are sent whole, with one event for all; at the next call storing them is tried again."""
    strategy = at_file(tmp_path, fresh=False)
    talk = conversation(asking(1, "a", "b", LONG), asking(2, "c", "d", LONG), asking(3, "e", "f", "short"))
    ResultStore(strategy.store, 1).load("nobody")  # makes the table
    opened = Opening(strategy, talk)
    with closing(sqlite3.connect(tmp_path / "archive.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        sent = opened.at("a2")
        assert sent["t1"] == sent["t2"] == LONG
        assert opened.events == (
            Failed(
                "archive",
                f"{strategy.store}: database is locked (end the program that holds it)",
                "what is left is sent whole, for now",
            ),
        )
        other.execute("COMMIT")
    sent = opened.at("a3")
    assert sent["t1"].startswith("📎")
    assert sent["t2"].startswith("📎")
    assert [type(each) for each in opened.events] == [Archived, Archived]


def test_a_full_store(tmp_path: Path) -> None:
    """What does not fit any more is sent whole, and it is said; what was stored can be loaded."""
    strategy = at_file(tmp_path, fresh=False)
    opened = Opening(strategy, conversation(asking(1, "a", "b", LONG), asking(2, "c", "d", LONG * 9)))
    assert opened.at("a1")["t1"].startswith("📎")
    engine = opened.view.archives._store._engine  # type: ignore[attr-defined]
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count = 1"))
    assert opened.at("a2")["t2"] == LONG * 9
    why = f"{strategy.store}: database or disk is full (free some space)"
    assert opened.events == (Failed("archive", why, "what is left is sent whole, for now"),)
    assert opened.calls(json.dumps({"uuid": identify("talk", "t1", LONG)})) == LONG


def test_a_store_that_may_only_be_read(tmp_path: Path) -> None:
    """What is in it already is archived as if it had been written now; what is not is sent whole, and it is said."""
    strategy = at_file(tmp_path, fresh=False)
    talk = conversation(asking(1, "a", "b", LONG), asking(2, "c", "d", LONG + "more"))
    Opening(strategy, talk).at("a1")
    opened = Opening(strategy, talk)
    store = opened.view.archives._store  # type: ignore[attr-defined]
    event.listen(store._engine, "connect", lambda raw, _: raw.execute("PRAGMA query_only = 1"))
    assert opened.at("a1")["t1"].startswith("📎")
    assert opened.events == (Archived("t1", identify("talk", "t1", LONG), len(LONG)),)
    assert opened.at("a2")["t2"] == LONG + "more"
    [failed] = opened.events
    assert isinstance(failed, Failed)
    assert failed.why == f"{strategy.store}: attempt to write a readonly database (make it writable)"


def test_a_lock_is_waited_for_once(tmp_path: Path) -> None:
    """While a store stays locked only the first attempt waits, once; when it was reached, the next lock is again."""
    store = ResultStore(at_file(tmp_path).store, 0.4)

    def seconds() -> float:
        began = monotonic()
        with pytest.raises(StoreError, match="locked"):
            store.load("nobody")
        return monotonic() - began

    with closing(sqlite3.connect(tmp_path / "archive.db", isolation_level=None)) as other:
        for _ in range(2):
            other.execute("BEGIN EXCLUSIVE")
            assert 0.35 < seconds() < 0.75
            assert seconds() < 0.2
            assert seconds() < 0.2
            other.execute("COMMIT")
            assert store.load("nobody") is None


@pytest.mark.parametrize("trouble", ["folder", "not a database", "another table"])
def test_a_store_that_fails_later(tmp_path: Path, trouble: str) -> None:
    """What goes wrong after the strategy was made: all is sent whole, and it is said."""
    folder = tmp_path / "here"
    folder.mkdir()
    strategy = at_file(folder, fresh=False)
    if trouble == "folder":
        folder.rmdir()
    elif trouble == "not a database":
        (folder / "archive.db").write_text("these are no rows" * 100)
    else:
        with closing(sqlite3.connect(folder / "archive.db")) as connection:
            connection.execute("CREATE TABLE tool_result_archive (name TEXT)")
    opened = Opening(strategy, conversation(asking(1, "a", "b", LONG)))
    assert opened.at("a1")["t1"] == LONG
    assert [type(each) for each in opened.events] == [Failed]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is left as it is."""
    strategy = at_file(tmp_path, fresh=False)
    (tmp_path / "archive.db").write_text("these are no rows" * 100)
    opened = Opening(strategy, conversation(asking(1, "a", "b", LONG)))
    assert opened.at("a1")["t1"] == LONG
    why = f"{strategy.store}: file is not a database (name another store)"
    assert opened.events == (Failed("archive", why, "what is left is sent whole, for now"),)
    assert (tmp_path / "archive.db").read_text() == "these are no rows" * 100
