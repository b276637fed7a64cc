"""The archive's table: exact, written once, and which addresses can be one."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Message, ToolCall
from ctxbench.strategies.archive import Archive
from ctxbench.strategies.archive.record import Card, identify
from ctxbench.strategies.archive.store import ResultTable
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Archived, Deleted, Failed
from tests.strategies.tool_results import LONG, Opening, archives, asking, at_file, conversation

ANY = st.text(st.characters(), max_size=60)  # every code point, lone surrogates and NUL with them


NUMBERS = (st.integers() | st.floats(allow_nan=False, allow_infinity=False)).map(str)


def rows(folder: Path, columns: str = "*") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "archive.db")) as connection:
        return connection.execute(f"SELECT {columns} FROM tool_result_archive ORDER BY created_at, uuid").fetchall()


@given(st.text(max_size=60), ANY | NUMBERS, ANY)
@example("\x00\x1a \r\n", "12345678901234567890123", "1.0")
@example("", "-0.0", "")
def test_any_result_comes_back_byte_for_byte(text: str, arguments: str, name: str) -> None:
    """Through the table and back: nothing is lost by archiving (001 §1.2), whatever the call and the ids hold."""
    operations = archives(Archive(threshold=1), name=name)
    result = Message("t", "tool", text + LONG)
    made = operations.process(result, ToolCall("c", name, arguments))
    assert made.text != result.text
    assert operations.load(operations.uuids["t"]) == result.text


def test_a_row_has_the_document_s_columns(tmp_path: Path) -> None:
    """001 §3.3: each column of a row, as another program reads it."""
    text = "# Gates\n" + LONG + "see https://example.org/gates and /srv/gates.csv"
    talk = conversation(asking(1, "when?", "gate hours", text, time=1_734_330_000.5), name="x" * 40)
    opened = Opening(at_file(tmp_path, fresh=False, thread="house"), talk)
    opened.at("a1")
    with closing(sqlite3.connect(tmp_path / "archive.db")) as connection:
        connection.row_factory = sqlite3.Row
        (row,) = connection.execute("SELECT * FROM tool_result_archive").fetchall()
        indexed = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL").fetchall()
    assert row["uuid"] == identify("x" * 40, "t1", text)
    assert row["conversation_id"] == identify("x" * 40, "", "")  # longer than its column
    assert row["thread_id"] == "house"
    assert row["tool_name"] == "search"
    assert json.loads(row["tool_input"]) == {"query": "gate hours"}
    assert row["query_summary"] == "gate hours"
    assert "07:45" in row["result_summary"]
    assert len(row["result_summary"]) <= 500
    assert row["result_full"] == text
    assert row["result_length"] == len(text)
    assert json.loads(row["sources"]) == ["https://example.org/gates", "/srv/gates.csv", "Gates"]
    assert row["created_at"] == "2024-12-16 06:20:00.500000"
    assert sorted(sql["sql"].split("(")[1] for sql in indexed) == ["conversation_id)", "thread_id)"]


def test_written_once(tmp_path: Path) -> None:
    """The same run again on the same store: the same events, the same rows."""
    talk = conversation(asking(1, "when?", "gate", LONG, time=1e9), asking(2, "x", "y", LONG, time=2e9))
    seen = []
    for _ in range(2):
        opened = Opening(at_file(tmp_path, fresh=False), talk)
        seen.append((opened.at("a2"), opened.events, rows(tmp_path)))
    assert seen[0] == seen[1]
    assert len(seen[0][2]) == 2


def test_two_conversations_that_write_the_same_id(tmp_path: Path) -> None:
    """The first row stands, and both load what they archived, for it is the same."""
    first, other = archives(at_file(tmp_path)), archives(at_file(tmp_path))
    result = Message("t", "tool", LONG)
    first.process(result, ToolCall("c", "search", '{"query": "one"}'))
    other.process(result, ToolCall("c", "search", '{"query": "two"}'))
    assert rows(tmp_path, "query_summary") == [("one",)]
    assert other.load(other.uuids["t"]) == LONG


def test_a_uuid_that_is_taken_by_other_content(tmp_path: Path) -> None:
    """The result is sent whole, for good, and it is said once; what is there is not overwritten."""
    talk = conversation(asking(1, "when?", "gate", LONG), asking(2, "so?", "x", "short"))
    strategy = at_file(tmp_path, fresh=False)
    card = Card(identify("talk", "t1", LONG), "talk", "", "search", None, "", "", 5, (), None)
    ResultTable(strategy.store).save(card, "other")
    opened = Opening(strategy, talk)
    assert opened.at("a1")["t1"] == LONG
    assert [each.instead for each in opened.events if isinstance(each, Failed)] == ["t1 is sent whole"]
    assert opened.at("a2")["t1"] == LONG
    assert opened.events == ()
    assert rows(tmp_path, "result_full") == [("other",)]


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("postgresql://host/db", "it is an address: give the path of an SQLite file"),
        ("{}/nowhere/archive.db", "there is no folder"),
        ("{}", "is a folder"),
        ("{}/text.db", "file is not a database"),
        ("{}/other.db", "another table of the name tool_result_archive"),
    ],
)
def test_a_store_that_cannot_be_is_refused(tmp_path: Path, store: str, said: str) -> None:
    """It is said before a run, and nothing is written."""
    (tmp_path / "text.db").write_text("these are no rows" * 100)
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE tool_result_archive (name TEXT)")
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(SpecError, match=said):
        parse(f"archive(store={store.format(tmp_path)!r})")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


WRITER = """
import sys
from ctxbench.strategies.archive.record import Card, identify
from ctxbench.strategies.archive.store import ResultTable
store, name = ResultTable(sys.argv[1], 20), sys.argv[2]
for at in range(40):
    for conversation in ("both", name):
        uuid = identify(conversation, f"t{at}", "text" * 500)
        store.save(Card(uuid, conversation, "", "tool", None, "", "", 2000, (), 1.0), "text" * 500)
print(sum(store.load(identify("both", f"t{at}", "text" * 500)) is not None for at in range(40)))
"""


def test_two_processes_on_one_store(tmp_path: Path) -> None:
    """Both make the table and write the same and their own rows at once; a third that starts later reads them all."""
    file = str(tmp_path / "archive.db")
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, file, name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    assert [each.communicate(timeout=60)[0] for each in running] == ["40\n", "40\n"]
    assert len(rows(tmp_path)) == 120
    later = ResultTable(file).load(identify("one", "t7", "text" * 500))
    assert later is not None
    assert later[1] == "text" * 500


DAY = 86_400.0


def test_what_is_too_old_is_deleted(tmp_path: Path) -> None:
    """By the recorded clock, not the wall's: after 7 days the row is gone, and the placeholder stays."""
    talk = conversation(
        asking(1, "a", "b", LONG, time=1e9),
        asking(2, "c", "d", LONG, time=1e9 + 6.9 * DAY),
        asking(3, "e", "f", "short", time=1e9 + 7.1 * DAY),
    )
    opened = Opening(at_file(tmp_path, keep_days=7), talk)
    opened.at("c3")
    uuids = {name: identify("talk", name, LONG) for name in ("t1", "t2")}
    assert opened.events[-1] == Deleted((uuids["t1"],))
    assert [row[0] for row in rows(tmp_path, "uuid")] == [uuids["t2"]]
    assert opened.at("a3")["t1"].startswith("📎")
    assert opened.events == ()
    assert "There is no archived result" in opened.calls(json.dumps({"uuid": uuids["t1"]}))
    assert opened.calls(json.dumps({"uuid": uuids["t2"]})) == LONG


@pytest.mark.parametrize("scope", ["thread", "all"])
def test_what_others_archived_is_deleted_when_it_is_due(tmp_path: Path, scope: str) -> None:
    """A conversation without results of its own deletes those there were and those that came since, after 7 days."""
    for name, time in (("one", 1e9), ("other", 1e9 + DAY)):
        talk = conversation(asking(1, "a", "b", LONG, time=time), name=name)
        Opening(at_file(tmp_path, fresh=False, thread="house"), talk).at("a1")
    here = conversation(*(asking(day, "a", "b", "short", time=1e9 + day * DAY + 1) for day in range(17)), name="here")
    opened = Opening(at_file(tmp_path, scope=scope, thread="house", keep_days=7), here)
    left = {}
    for day in range(2, 17):
        if day == 4:
            talk = conversation(asking(1, "a", "b", LONG, time=1e9 + 4 * DAY), name="third")
            Opening(at_file(tmp_path, fresh=False, thread="house"), talk).at("a1")
        opened.at(f"a{day}")
        left[day] = len(rows(tmp_path))
    assert [left[day] for day in (6, 7, 8, 10, 11)] == [3, 2, 1, 1, 0]


def test_other_conversations(tmp_path: Path) -> None:
    """What another archived earlier may be read with `scope`, in its thread only if so; what comes later never."""
    for name, thread, time in (("old", "house", 1e9), ("elsewhere", "garden", 1e9), ("future", "house", 3e9)):
        talk = conversation(asking(1, "a", "b", LONG + name, time=time), name=name)
        Opening(at_file(tmp_path, fresh=False, thread=thread), talk).at("a1")
    uuids = {name: identify(name, "t1", LONG + name) for name in ("old", "elsewhere", "future")}
    here = conversation(asking(1, "a", "b", "short", time=2e9), name="here")
    for scope, seen in (("conversation", []), ("thread", ["old"]), ("all", ["elsewhere", "old"])):
        opened = Opening(at_file(tmp_path, scope=scope, thread="house"), here)
        opened.at("a1")
        found = []
        for name, uuid in uuids.items():
            if text := opened.view.load(uuid):  # type: ignore[attr-defined]
                found.append(text[len(LONG) :])
                assert name == found[-1]
        assert sorted(found) == seen


def test_a_locked_store(tmp_path: Path) -> None:
    """The results are sent whole, with one event for all; at the next call storing them is tried again."""
    strategy = at_file(tmp_path, fresh=False)
    talk = conversation(asking(1, "a", "b", LONG), asking(2, "c", "d", LONG), asking(3, "e", "f", "short"))
    ResultTable(strategy.store).load("nobody")  # makes the table
    opened = Opening(strategy, talk)
    with closing(sqlite3.connect(tmp_path / "archive.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        sent = opened.at("a2")
        assert sent["t1"] == sent["t2"] == LONG
        why = f"{strategy.store}: database is locked (end the program that holds it)"
        assert opened.events == (Failed("archive", why, "what is left is sent whole, for now"),)
        other.execute("COMMIT")
    sent = opened.at("a3")
    assert sent["t1"].startswith("📎")
    assert sent["t2"].startswith("📎")
    assert [type(each) for each in opened.events] == [Archived, Archived]
