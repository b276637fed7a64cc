"""What the calls of one command cost, all its worker processes together, and where they have to stop.

The sum is kept in the cassette. Before a call the most that it can cost is put on it, afterwards that is replaced by
what it did cost: so the limit holds with any number of processes. A call that got no answer counts as free.
"""

from __future__ import annotations

from typing import NamedTuple

from ...strategies.base import ModelError
from .cassette import Cassette

_ROUNDING = 1e-12


class Spent(NamedTuple):
    """What a command did at its providers."""

    calls: int = 0
    """Answered ones. What the cassette replays is none."""
    dollars: float = 0.0
    unpriced: int = 0
    """Calls among them whose price is not known."""
    refused: int = 0
    """Calls that were not made because of the limit."""


class Purse:
    """The money of one command."""

    def __init__(self, cassette: Cassette, run: str, limit: float | None = None) -> None:
        self._cassette, self._run, self._limit = cassette, run, limit

    def take(self, model: str, most: float | None) -> float:
        """Set aside the most that a call can cost (None = not known), and return it.

        Raises ModelError if that would go over the limit, or if there is a limit and the price is not known.
        """
        if self._limit is None:
            return 0.0
        if most is None:
            raise ModelError(f"{model}: its price is not known, so the spend limit cannot be kept: run without one")
        with self._cassette.transaction() as database:
            database.execute("INSERT OR IGNORE INTO spending (run) VALUES (?)", (self._run,))
            held = database.execute(
                "UPDATE spending SET dollars = dollars + ? WHERE run = ? AND dollars + ? <= ?",
                (most, self._run, most, self._limit + _ROUNDING),
            ).rowcount
            if not held:
                database.execute("UPDATE spending SET refused = refused + 1 WHERE run = ?", (self._run,))
        if not held:
            raise ModelError(f"{model}: the spend limit of {in_dollars(self._limit)} is reached")
        return most

    def pay(self, taken: float, cost: float | None) -> None:
        """A call was answered, for which `taken` had been set aside."""
        self._change(1, (cost or 0.0) - taken, int(cost is None))

    def give_back(self, taken: float) -> None:
        """A call got no answer."""
        if taken:
            self._change(0, -taken, 0)

    def spent(self) -> Spent:
        """All that this command did until now."""
        found = self._cassette.ask("SELECT calls, dollars, unpriced, refused FROM spending WHERE run = ?", (self._run,))
        return Spent(*found[0]) if found else Spent()

    def _change(self, calls: int, dollars: float, unpriced: int) -> None:
        with self._cassette.transaction() as database:
            database.execute("INSERT OR IGNORE INTO spending (run) VALUES (?)", (self._run,))
            database.execute(
                "UPDATE spending SET calls = calls + ?, dollars = dollars + ?, unpriced = unpriced + ? WHERE run = ?",
                (calls, dollars, unpriced, self._run),
            )


def in_dollars(amount: float) -> str:
    """$0.00005: a small amount as it is written, not in powers of ten."""
    return "$" + f"{amount:.12f}".rstrip("0").rstrip(".")
