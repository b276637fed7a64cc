"""Damage to the archive's SQLite file: each reading afterwards is right, or is refused with a StoreError.

A damage is one of: bits flipped, bytes zeroed, pages swapped, the file cut; rows changed, swapped, removed, doubled or
brought from another archive; the whole file another archive's, under a store that has read the first; a rollback
journal, left by a writer that was killed, damaged or gone. What is lost is printed with the seed that does it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

from ctxbench.strategies.archive.record import Card, StoreError, Visibility, identify
from ctxbench.strategies.archive.store import ResultStore, address_problem
from tests.attacks import Outcome, outcome

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LATE = 2e9
Answers = dict[str, object]


def results(name: str, count: int = 12) -> list[tuple[Card, str]]:
    """Return archived results of three conversations in two threads, some longer than a page."""
    made = []
    for at in range(count):
        conversation, message = f"{name}{at % 3}", f"t{at}"
        text = f"{name} {at}: the gate opens at 07:{at:02}. Ask Mia Berg, 请问. " * (3 + at * at)
        arguments = {"query": f"gate {at}", "limit": at, "where": ["hall", None, 1.5]}
        made.append(
            (
                Card(
                    identify(conversation, message, text),
                    conversation,
                    message,
                    "house" if at % 2 else "",
                    "search",
                    arguments,
                    f"gate {at}",
                    f"The gate opens at 07:{at:02}.",
                    len(text),
                    ("https://example.org/gates", f"/srv/{at}.csv"),
                    1e9 + at if at % 5 else None,
                ),
                text,
            )
        )
    return made


def address(file: Path) -> str:
    """Return the address of a store in a file."""
    return f"sqlite:///{file}"


def filled(file: Path, name: str) -> ResultStore:
    """Return a store that has these results."""
    store = ResultStore(address(file), 0.05)
    for card, text in results(name):
        store.save(card, text)
    return store


def questions(store: ResultStore) -> dict[str, Callable[[], object]]:
    """Return every way to read a store, by name; the deletion comes last."""
    asked: dict[str, Callable[[], object]] = {}
    for card, _ in results("one"):
        asked[f"load {card.message}"] = lambda uuid=card.uuid: store.load(uuid)  # type: ignore[misc]
    first = results("one")[1][0].uuid
    asked["load as another"] = lambda: store.load(first, Visibility("nobody", LATE, "house"))
    asked["load what is hidden"] = lambda: store.load(first, Visibility("nobody", LATE, "garden"))
    asked["load what is not there"] = lambda: store.load("00000000-0000-0000-0000-000000000000")
    asked["cards of all"] = lambda: store.cards(Visibility("one0", LATE), 1000)
    asked["newest card"] = lambda: store.cards(Visibility("nobody", LATE), 1)
    asked["cards of a thread"] = lambda: store.cards(Visibility("nobody", LATE, "house"), 1000)
    for card, text in results("one")[1::4]:
        asked[f"save {card.message} again"] = lambda card=card, text=text: store.save(card, text)  # type: ignore[misc]
    asked["delete of a conversation"] = lambda: store.delete(1e9 + 9, conversation="one2")
    asked["delete of a thread"] = lambda: store.delete(1e9 + 8, thread="house")
    return asked


def answers(store: ResultStore) -> Answers:
    """Return all answers of a whole store."""
    return {name: ask() for name, ask in questions(store).items()}


def wrong(store: Callable[[], ResultStore], expected: Answers) -> str:
    """Return the first answer that is neither right nor refused with one line that names the file; empty if none is."""
    try:
        asked = questions(store())
    except StoreError:
        return ""
    for name, ask in asked.items():
        try:
            answer = ask()
        except StoreError as error:
            if "archive.db" not in str(error) or "\n" in str(error):
                return f"{name}: the error does not say where: {error}"
        except Exception as error:
            return f"{name}: {type(error).__name__} escapes: {error}"
        else:
            # Saved again, what was lost is there again: that there was nothing is right, too.
            if answer != expected[name] and not (answer is None and name.startswith("save")):
                return f"{name}: silently other"
    return ""


class Target(NamedTuple):
    """A folder in which to damage an archive, with what it is made of."""

    folder: Path
    whole: bytes
    foreign: bytes
    """Another archive's file."""
    torn: tuple[bytes, bytes]
    """The file and its journal as a writer left them that was killed between two writes."""
    expected: Answers
    name: str = "archive.db"

    @property
    def file(self) -> Path:
        """File of the archive."""
        return self.folder / self.name

    @property
    def journal(self) -> Path:
        """Rollback journal beside it."""
        return self.folder / f"{self.name}-journal"


@contextmanager
def target() -> Iterator[Target]:
    """Make an archive, another one, and the answers of the first."""
    with TemporaryDirectory(dir=MEMORY) as where:
        folder = Path(where)
        for name, which in ((32 * "1", "one"), (32 * "2", "other")):
            # The archive's name is random: with another one, a seed would not do the same again.
            with patch("ctxbench.strategies.archive.store.new_name", return_value=name):
                filled(folder / which, which)
        whole, foreign = ((folder / which).read_bytes() for which in ("one", "other"))
        torn = _torn(folder / "one")
        (folder / "archive.db").write_bytes(whole)
        expected = answers(ResultStore(address(folder / "archive.db"), 0.05))
        (folder / "archive.db").write_bytes(whole)
        yield Target(folder, whole, foreign, torn, expected)


def _torn(file: Path) -> tuple[bytes, bytes]:
    """Return a file and its journal in the middle of a transaction that has reached the disk in part."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE tool_result_archive SET result_summary = 'changed', result_full = 'changed'")
        journal = file.with_name(f"{file.name}-journal")
        torn = file.read_bytes(), journal.read_bytes()
        connection.execute("ROLLBACK")
    return torn


def flip(place: Target, chance: Random) -> str:
    """Flip one to three bits."""
    data, where = bytearray(place.whole), []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at, bit = chance.randrange(len(data)), chance.randrange(8)
        data[at] ^= 1 << bit
        where.append(f"{at}.{bit}")
    place.file.write_bytes(data)
    return f"bits flipped: {' '.join(where)}"


def blank(place: Target, chance: Random) -> str:
    """Put zeros, or other bytes, in place of some."""
    size = chance.choice((1, 16, 512, 4096))
    at = chance.randrange(len(place.whole)) // size * size
    new = bytes(size) if chance.random() < 0.5 else chance.randbytes(size)
    place.file.write_bytes((place.whole[:at] + new + place.whole[at + size :])[: len(place.whole)])
    return f"{size} bytes written at {at}"


def cut(place: Target, chance: Random) -> str:
    """Cut the file, but not to nothing: an empty file is how every archive begins."""
    at = chance.choice((chance.randrange(1, len(place.whole)), chance.randrange(1, len(place.whole) // 4096) * 4096))
    place.file.write_bytes(place.whole[:at])
    return f"cut at {at}"


def swap_pages(place: Target, chance: Random) -> str:
    """Swap two pages, or put one in place of another, of this archive or of another."""
    size = 4096
    one, other = (chance.randrange(len(place.whole) // size) * size for _ in range(2))
    data, source = bytearray(place.whole), chance.choice((place.whole, place.foreign))
    if chance.random() < 0.5:
        data[other : other + size] = place.whole[one : one + size]
    data[one : one + size] = source[other : other + size].ljust(size, b"\0")
    place.file.write_bytes(data)
    return f"pages {one} and {other} swapped"


def _columns(connection: sqlite3.Connection) -> list[str]:
    return [row[1] for row in connection.execute("PRAGMA table_info(tool_result_archive)")]


def _two(connection: sqlite3.Connection, chance: Random) -> list[str]:
    uuids = [row[0] for row in connection.execute("SELECT uuid FROM tool_result_archive ORDER BY uuid")]
    return chance.sample(uuids, 2)


SQL_VALUES = (
    None,
    "",
    "other",
    7,
    -1.5,
    b"\xff\x00",
    "[1,",
    '{"query": "x"}',
    "2024-99-99",
    "2031-01-01 00:00:00.000000",
)


def change_row(place: Target, chance: Random) -> str:
    """Write another value into a column of a row."""
    with sql(place) as connection:
        (uuid, _), column = _two(connection, chance), chance.choice(_columns(connection))
        value = chance.choice(SQL_VALUES)
        try:
            connection.execute(f"UPDATE tool_result_archive SET {column} = ? WHERE uuid = ?", (value, uuid))
        except sqlite3.IntegrityError:  # a column that must have a value
            connection.execute(f"UPDATE tool_result_archive SET {column} = 'none' WHERE uuid = ?", (uuid,))
    return f"{column} of {uuid} set to {value!r}"


def swap_rows(place: Target, chance: Random) -> str:
    """Swap what two rows hold, in one column or in all but the uuid."""
    with sql(place) as connection:
        uuids, columns = _two(connection, chance), [name for name in _columns(connection) if name != "uuid"]
        columns = columns if chance.random() < 0.3 else chance.sample(columns, chance.randrange(1, 3))
        query = f"SELECT {', '.join(columns)} FROM tool_result_archive WHERE uuid = ?"
        held = [connection.execute(query, (uuid,)).fetchone() for uuid in uuids]
        for uuid, values in zip(uuids, reversed(held), strict=True):
            sets = ", ".join(f"{column} = ?" for column in columns)
            connection.execute(f"UPDATE tool_result_archive SET {sets} WHERE uuid = ?", (*values, uuid))
    return f"{', '.join(columns)} of {' and '.join(uuids)} swapped"


def lose_rows(place: Target, chance: Random) -> str:
    """Remove rows, one or all."""
    with sql(place) as connection:
        uuids = _two(connection, chance)[: chance.randrange(1, 3)]
        if chance.random() < 0.2:
            connection.execute("DELETE FROM tool_result_archive")
            return "all rows removed"
        for uuid in uuids:
            connection.execute("DELETE FROM tool_result_archive WHERE uuid = ?", (uuid,))
    return f"{', '.join(uuids)} removed"


def double_row(place: Target, chance: Random) -> str:
    """Write a row a second time under another uuid, in place of a third one or as one more."""
    with sql(place) as connection:
        one, other = _two(connection, chance)
        columns = ", ".join(name for name in _columns(connection) if name != "uuid")
        new = other if chance.random() < 0.5 else "00000000-0000-0000-0000-000000000000"
        connection.execute("DELETE FROM tool_result_archive WHERE uuid = ?", (new,))
        query = f"INSERT INTO tool_result_archive (uuid, {columns}) SELECT ?, {columns} FROM tool_result_archive"
        connection.execute(f"{query} WHERE uuid = ?", (new, one))
    return f"{one} doubled as {new}"


def foreign_row(place: Target, chance: Random) -> str:
    """Bring a row of another archive, which is whole in itself, in place of one or as one more."""
    other = place.folder / "other.db"
    other.write_bytes(place.foreign)
    with sql(place) as connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        row = connection.execute("SELECT * FROM other.tool_result_archive ORDER BY uuid").fetchall()[
            chance.randrange(12)
        ]
        if chance.random() < 0.5:
            connection.execute("DELETE FROM tool_result_archive WHERE uuid = ?", (_two(connection, chance)[0],))
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO tool_result_archive VALUES ({marks})", row)
    return f"{row[0]} of another archive brought in"


def change_count(place: Target, chance: Random) -> str:
    """Change, or lose, the row that counts the others; or one of the tables or indexes as a whole."""
    with sql(place) as connection:
        names = connection.execute("SELECT type, name FROM sqlite_master WHERE sql NOT NULL ORDER BY name").fetchall()
        kind, name = chance.choice(names)
        if kind == "table" and name != "tool_result_archive" and chance.random() < 0.8:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            column, value = chance.choice(columns), chance.choice((0, 7, "x"))
            connection.execute(f"UPDATE {name} SET {column} = ?", (7 if column == "id" else value,))
            return f"{name}.{column} set to {value!r}"
        connection.execute(f"DROP {kind} {name}")
    return f"{kind} {name} dropped"


@contextmanager
def sql(place: Target) -> Iterator[sqlite3.Connection]:
    """Open the target, whole, as a database."""
    place.file.write_bytes(place.whole)
    with closing(sqlite3.connect(place.file, isolation_level=None)) as connection:
        yield connection


def tear(place: Target, chance: Random) -> str:
    """Leave the file as a killed writer did, with its journal flipped, cut, another's or gone."""
    data, journal = place.torn[0], bytearray(place.torn[1])
    what = chance.choice(("whole", "flipped", "cut", "gone", "zeroed"))
    if what == "flipped":
        at = chance.randrange(len(journal))
        journal[at] ^= 1 << chance.randrange(8)
    elif what == "cut":
        del journal[chance.randrange(len(journal)) :]
    elif what == "zeroed":
        at = chance.randrange(len(journal)) // 512 * 512
        journal[at : at + 512] = bytes(len(journal[at : at + 512]))
    place.file.write_bytes(data)
    if what != "gone":
        place.journal.write_bytes(journal)
    return f"journal {what}"


DAMAGES: tuple[Callable[[Target, Random], str], ...] = (
    flip,
    blank,
    cut,
    swap_pages,
    change_row,
    swap_rows,
    lose_rows,
    double_row,
    foreign_row,
    change_count,
    tear,
)


def try_damage(place: Target, damage: Callable[[Target, Random], str], chance: Random) -> str:
    """Damage the archive once, and return what is then silently wrong; empty if nothing is."""
    done = damage(place, chance)
    try:
        address_problem(address(place.file))
        said = wrong(lambda: ResultStore(address(place.file), 0.05), place.expected)
    except Exception as error:
        said = f"the address: {type(error).__name__} escapes: {error}"
    finally:
        place.journal.unlink(missing_ok=True)
    return f"{done}: {said}" if said else ""


def try_exchange(place: Target, chance: Random) -> str:
    """Put another archive's file under a store that has read the first, and return what is then silently wrong."""
    place.file.write_bytes(place.whole)
    store = ResultStore(address(place.file), 0.05)
    store.load(results("one")[chance.randrange(12)][0].uuid)
    place.file.write_bytes(place.foreign)
    said = wrong(lambda: store, place.expected)
    return f"file exchanged: {said}" if said else ""


def attack(seed: int, tries: int) -> Outcome:
    """Damage an archive so many times, each time a whole one."""
    lost = []
    with target() as place:
        for number in range(tries):
            chance = Random(f"{seed}/{number}")
            if number % 50 == 49:
                said = try_exchange(place, chance)
            else:
                said = try_damage(place, flip if number % 3 == 0 else chance.choice(DAMAGES), chance)
            if said:
                lost.append(f"seed {seed}, try {number}: {said}")
    return outcome(tries, lost)
