"""Which message is where: the tables of all parts, in memory."""

from __future__ import annotations

from collections.abc import Callable

from .errors import Damaged
from .index import Index, Part
from .part import Table


class Catalogue:
    """The place of every message that is not deleted. A table is read once: no file is written twice."""

    def __init__(self) -> None:
        self.parts: dict[int, Part] = {}
        self.tables: dict[int, Table] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """By id: the number of its part, and its place in it."""
        self.faults: tuple[Damaged, ...] = ()
        """Tables that cannot be read. What they name is not known to be there, nor to be absent."""

    def read(self, index: Index, table: Callable[[Part], Table]) -> None:
        """Take in an index. Only the tables that are new are read. Raises FileNotFoundError, and then nothing
        changed."""
        tables, faults = dict[int, Table](), list[Damaged]()
        for part in index.parts:
            try:
                tables[part.number] = self.tables.get(part.number) or table(part)
            except Damaged as error:
                faults.append(error)
        stale = [part for number, part in self.parts.items() if number in self.tables]
        now = {part.number: part for part in index.parts}
        for part in stale:
            if now.get(part.number) is not part:
                for at, id in enumerate(self.tables[part.number].ids):
                    if self.places.get(id) == (part.number, at):
                        del self.places[id]
        for part in index.parts:
            if part.number in tables and self.parts.get(part.number) is not part:
                gone = {at for at, _ in part.deleted}
                for at, id in enumerate(tables[part.number].ids):
                    if at not in gone:
                        self.places[id] = (part.number, at)
        self.parts, self.tables, self.faults = now, tables, tuple(faults)

    def known(self, id: str) -> bool:
        """Whether a message is there. Raises Damaged if that cannot be known."""
        if id in self.places:
            return True
        if self.faults:
            raise self.faults[0]
        return False

    @property
    def ids(self) -> list[str]:
        """The ids of all messages, in the order of the parts."""
        return [
            id
            for number, table in self.tables.items()
            for at, id in enumerate(table.ids)
            if self.places.get(id) == (number, at)
        ]
