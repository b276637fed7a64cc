"""Damage to a cassette: each reply and sum read afterwards is right, or is refused in one line that names the file.

A damage is one of: bits flipped, bytes overwritten, pages swapped, the file cut; values changed, swapped, removed or
brought from another cassette; totals or whole tables changed or dropped. What is repaired after that is whole, and has
no reply that was not recorded so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from ctxbench.harness.folder.schema import Spending
from ctxbench.harness.models.cassette import Cassette, CassetteEntry, DamagedCassette, canonical, key_of, write_lines
from ctxbench.harness.models.cassette import entries as read_entries
from ctxbench.scenarios.errors import SetupError
from tests.attacks import Outcome, outcome
from tests.attacks.sqlite_files import MEMORY, Answers, Target, blank, cut, flip, sql, swap_pages

NAME = "cassette.sqlite"
ACCOUNTS = {"command": Spending(3, 0.25, unanswered=1), "run": Spending(7, 1.5)}
REPLIES = 40


def entries(name: str) -> list[CassetteEntry]:
    """Return recorded replies of all kinds, some longer than a page. Another name has other replies to the same."""
    made = []
    for number in range(REPLIES):
        request = canonical({"kind": "chat", "model": "m", "messages": f"question {number}, 请问 " * (1 + number)})
        match number % 4:
            case 0:
                vector = np.random.default_rng([number, len(name)]).random(96, np.float32)
                made.append(CassetteEntry(key_of(request), "embedding", "e", vector.tobytes()))
            case 1:
                made.append(
                    CassetteEntry(key_of(request), "choice", "m", f'{{"{name}":-0.{number}}}'.encode(), request)
                )
            case _:
                reply = f'{{"text":"{name} {number}: the gate opens at 07:{number}. {"Ask Mia. " * number * number}"}}'
                made.append(CassetteEntry(key_of(request), "chat", "m", reply.encode(), request))
    return made


def write(file: Path, name: str) -> bytes:
    """Write a cassette and return its bytes."""
    # Its own name is random: with another one, a seed would not do the same again.
    with patch("ctxbench.harness.models.rows.new_name", return_value=f"{len(name):032}"), Cassette(file) as cassette:
        cassette.put_many(entries(name))
        with cassette.transaction():
            for account, sums in ACCOUNTS.items():
                cassette.set_account(account, sums)
    return file.read_bytes()


def questions(cassette: Cassette) -> dict[str, Callable[[], object]]:
    """Return every way to read a cassette, by name."""
    keys = [entry.key for entry in entries("one")]
    asked: dict[str, Callable[[], object]] = {
        f"get {key[:6]}": lambda key=key: cassette.get(key)  # type: ignore[misc]
        for key in keys[::3]
    }
    asked["get all"] = lambda: cassette.get_many(keys)
    asked["get what is not there"] = lambda: cassette.get("0" * 64)
    asked["entries"] = lambda: list(cassette.entries())
    for name in (*ACCOUNTS, "nobody"):
        asked[f"account {name}"] = lambda name=name: cassette.account(name)  # type: ignore[misc]
    return asked


def answers(file: Path) -> Answers:
    """Return all answers of a whole cassette."""
    with Cassette(file) as cassette:
        return {name: ask() for name, ask in questions(cassette).items()}


@contextmanager
def target() -> Iterator[Target]:
    """Make a cassette, another one, and the answers of the first."""
    with TemporaryDirectory(dir=MEMORY) as where:
        folder = Path(where)
        whole, foreign = (write(folder / name, name) for name in ("one", "other"))
        (folder / NAME).write_bytes(whole)
        yield Target(folder, whole, foreign, (b"", b""), answers(folder / NAME), NAME)


VALUES = (None, "", "é", 7, -1.5, b"\xff\x00", "0" * 32, b'{"text":"other"}')


def change_value(place: Target, chance: Random) -> str:
    """Write another value into a column of a row, or into all rows."""
    with sql(place) as connection:
        table = chance.choice(("replies", "replies", "accounts", "totals"))
        column = chance.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
        row, value = chance.randrange(1, 1 + (REPLIES if table == "replies" else 2)), chance.choice(VALUES)
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", (value, row))
    return f"{table}.{column} of row {row} set to {value!r}"


def swap_values(place: Target, chance: Random) -> str:
    """Swap what two replies have in some columns."""
    with sql(place) as connection:
        columns = chance.sample(("kind", "model", "request", "reply", "digest"), chance.randrange(1, 6))
        one, other = chance.sample(range(1, 1 + REPLIES), 2)
        query = f"SELECT {', '.join(columns)} FROM replies WHERE rowid = ?"
        held = [connection.execute(query, (row,)).fetchone() for row in (one, other)]
        for row, values in zip((other, one), held, strict=True):
            sets = ", ".join(f"{column} = ?" for column in columns)
            connection.execute(f"UPDATE replies SET {sets} WHERE rowid = ?", (*values, row))
    return f"{', '.join(columns)} of rows {one} and {other} swapped"


def lose(place: Target, chance: Random) -> str:
    """Remove a row or all, an index's entry with it; or a table."""
    with sql(place) as connection:
        table = chance.choice(("replies", "accounts", "totals"))
        what = chance.choice(("DROP TABLE {}", "DELETE FROM {}", "DELETE FROM {} WHERE rowid = 2")).format(table)
        connection.execute(what)
    return what


def bring(place: Target, chance: Random) -> str:
    """Bring a row of another cassette, which is whole in itself, in place of one or as one more."""
    other = place.folder / "other"
    with sql(place) as connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        row = chance.randrange(1, 1 + REPLIES)
        name = "UPDATE OR IGNORE replies SET key = 'x' WHERE rowid = ?"
        if chance.random() < 0.3:
            connection.execute(name, (row,))
        connection.execute("REPLACE INTO replies SELECT * FROM other.replies WHERE rowid = ?", (row,))
        connection.execute("DETACH other")
    return f"row {row} of another cassette brought in"


DAMAGES: tuple[Callable[[Target, Random], str], ...] = (
    flip,
    blank,
    cut,
    swap_pages,
    change_value,
    swap_values,
    lose,
    bring,
)


def wrong(file: Path, expected: Answers, read_only: bool) -> str:
    """Return the first answer that is neither right nor refused with one line that names the file; empty if none is."""
    try:
        with Cassette(file, read_only=read_only, busy=0.05) as cassette:
            for name, ask in questions(cassette).items():
                try:
                    if ask() != expected[name]:
                        return f"{name}: silently other"
                except SetupError as error:
                    if NAME not in str(error) or "\n" in str(error):
                        return f"{name}: the error does not say where: {error}"
    except SetupError:
        return ""
    except Exception as error:
        return f"{type(error).__name__} escapes: {error}"
    return ""


def wrongly_repaired(file: Path) -> str:
    """Repair what is left, and return what is wrong with it then; empty if nothing is."""
    try:
        with DamagedCassette(file, busy=0.05) as damaged:
            damaged.repair()
    except SetupError:
        return ""
    except Exception as error:
        return f"repair: {type(error).__name__} escapes: {error}"
    with Cassette(file) as cassette:
        cassette.verify()
        if not set(cassette.entries()) <= set(entries("one")):
            return "repair kept a reply that was not recorded so"
        if any(cassette.account(name) not in (None, sums) for name, sums in ACCOUNTS.items()):
            return "repair kept a sum that was not so"
    return ""


def try_damage(place: Target, damage: Callable[[Target, Random], str], chance: Random) -> str:
    """Damage the cassette once, and return what is then silently wrong; empty if nothing is."""
    done = damage(place, chance)
    said = wrong(place.file, place.expected, read_only=chance.random() < 0.5) or wrongly_repaired(place.file)
    for name in ("-wal", "-shm", "-journal"):
        place.file.with_name(f"{NAME}{name}").unlink(missing_ok=True)
    return f"{done}: {said}" if said else ""


def lines(seed: int, tries: int) -> Outcome:
    """Flip a bit of exported replies, or cut a piece out of them, so many times: each is noticed when they are read."""
    lost = []
    chance = Random(seed)
    with target() as place, Cassette(place.file) as cassette:
        expected = list(cassette.entries())
        whole = b"".join(write_lines(cassette))
        for _ in range(tries):
            at, size = chance.randrange(len(whole) - 1), chance.choice((0, 0, 1, 8))
            new = bytes([whole[at] ^ 1 << chance.randrange(8)]) if not size else b""
            data = whole[:at] + new + whole[at + max(1, size) :]
            try:
                if list(read_entries(data.splitlines(keepends=True), "replies.jsonl")) != expected:
                    lost.append(f"seed {seed}: {size or 'a bit of 1'} bytes at {at}: silently other")
            except SetupError as error:
                if "replies.jsonl:" not in str(error) or "\n" in str(error):
                    lost.append(f"seed {seed}, byte {at}: the error does not say where: {error}")
            except Exception as error:
                lost.append(f"seed {seed}, byte {at}: {type(error).__name__} escapes: {error}")
    return outcome(tries, lost)


def attack(seed: int, tries: int) -> Outcome:
    """Damage a cassette so many times, each time a whole one. Half of the damages are flipped bits."""
    lost = []
    with target() as place:
        for number in range(tries):
            chance = Random(f"{seed}/{number}")
            said = try_damage(place, flip if number % 2 else chance.choice(DAMAGES), chance)
            if said:
                lost.append(f"seed {seed}, try {number}: {said}")
    return outcome(tries, lost)


def flips(seed: int, tries: int) -> Outcome:
    """Flip one to three bits of a cassette so many times."""
    lost = []
    with target() as place:
        for number in range(tries):
            said = try_damage(place, flip, Random(f"{seed}/{number}"))
            if said:
                lost.append(f"seed {seed}, try {number}: {said}")
    return outcome(tries, lost)
