"""The money of live calls: set aside before a call, settled after it, counted in the cassette, for all processes.

What a command spends is booked on the account of the run folder that it works on, or on its own if it works on none.
The spend limit holds for the account, so that a command that is given again goes on with what is left. What a killed
process had set aside stays charged, as its calls may have been answered.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import astuple, replace

from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.scenarios.errors import SetupError, UserError
from ctxbench.strategies.base import ModelError

from ..folder.schema import Spending
from ..folder.store import ACCOUNT, account, read_manifest, write_manifest
from .cassette import Cassette

_ROUNDING = 1e-12  # sums of prices are floats: the last call that the limit allows must not fail by a rounding


class Purse:
    """The money of one command, shared by its processes."""

    def __init__(self, cassette: Cassette, command: str, limit: float | None = None, run: Path | None = None) -> None:
        """`run` is the folder of a run, or that of a search, which has no manifest."""
        self._cassette, self._limit, self._command = cassette, limit, command
        self._account = command if run is None else account(run)
        known = read_manifest(run).spent if run is not None and (run / "manifest.json").exists() else UNSET
        if known is not UNSET:
            with cassette.transaction():  # what was spent on the run with another cassette counts here too
                here = cassette.spent(self._account)
                if known.dollars > here.dollars + _ROUNDING:
                    lacking = (max(0, a - b) for a, b in zip(astuple(known), astuple(here), strict=True))
                    cassette.book(self._account, "", Spending(*lacking))

    def charge(self, model: str, most: TokenUsage) -> Charge:
        """Return the charge for a call of at most so many tokens."""
        return Charge(self, model, BUNDLED.cost(model, most))

    def reserve(self, model: str, most: float | None) -> None:
        """Set aside the most that a call can cost (None = not known).

        Raises ModelError if that would go over the limit, or if there is a limit and the price is not known.
        """
        if most is None and self._limit is not None:
            raise ModelError(f"{model}: its price is not known, so the spend limit cannot be kept: run without one")
        with self._cassette.transaction():
            # Read and set aside in one transaction: otherwise two workers could both see room for the last call.
            spent, limit = self._cassette.spent(self._account).dollars, self._limit
            over = limit is not None and spent + (most or 0.0) > limit + _ROUNDING
            # Set aside without a limit, too: a killed process leaves what its calls may have cost.
            change = Spending(refused=1) if over else Spending(dollars=most or 0.0)
            self._cassette.book(self._account, self._command, change)
        if over:
            raise ModelError(f"{model}: the spend limit of {in_dollars(limit or 0.0)} is reached")

    def book(self, change: Spending) -> None:
        """Add to what the command has spent."""
        with self._cassette.transaction():
            self._cassette.book(self._account, self._command, change)


class Charge:
    """The charge for one call, a block: what was set aside for it is settled at its end, however it ends.

    An answer costs what it costs. A failure that the model, or a mistake of the user, explains is free, but for tries
    that were lost. Anything else that ends the block, such as Ctrl-C, is charged as the most that the call can cost.
    """

    def __init__(self, purse: Purse, model: str, most: float | None) -> None:
        self._purse, self._model, self._most = purse, model, most
        self._open = False

    def __enter__(self) -> Self:
        self.renew()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._open and isinstance(error, ModelError | UserError):
            self._settle(Spending())
        elif self._open:
            self.lose()

    def renew(self) -> None:
        """Set aside the most that a try can cost. Raises ModelError where the limit does not allow it."""
        self._purse.reserve(self._model, self._most)
        self._open = True

    def pay(self, usage: TokenUsage) -> None:
        """Book an answer."""
        cost = BUNDLED.cost(self._model, usage)
        self._settle(Spending(1, cost or 0.0, int(cost is None)))

    def lose(self, usage: TokenUsage | None = None) -> None:
        """Book a try whose answer was lost, at its most where the provider reported no usage."""
        cost = BUNDLED.cost(self._model, usage) if usage else self._most
        self._settle(Spending(dollars=cost or 0.0, unpriced=int(cost is None), unanswered=1))

    def _settle(self, spent: Spending) -> None:
        self._open = False
        # $0.05 was set aside and the call cost $0.01: - 0.04 is booked.
        self._purse.book(replace(spent, dollars=spent.dollars - (self._most or 0.0)))


class Spent(NamedTuple):
    """Spending of a command, and of all commands on its account."""

    by_command: Spending
    by_run: Spending


def spending(cassette: Path, command: str, run: Path | None = None) -> Spent | None:
    """Return what was spent on a run folder, or by the command if it works on none; None where no model was needed."""
    try:
        # Opened in any case: whoever closes it last folds in what workers have left beside it.
        with Cassette(cassette, read_only=True) as sums:
            if run is not None and not (run / ACCOUNT).exists():
                return None
            name = command if run is None else account(run)
            return Spent(sums.spent(name, command), sums.spent(name))
    except SetupError:  # there is no cassette
        return None


def spent_on_run(cassette: Path, command: str, run: Path) -> Spending | UnsetType:
    """Return what all commands have spent on a run folder, as its manifest has it."""
    known = spending(cassette, command, run)
    if known is not None and (known.by_run.dollars or known.by_run.unpriced or known.by_run.unanswered):
        return known.by_run
    return read_manifest(run).spent


def note_spending(cassette: Path, command: str, run: Path) -> None:
    """Write what was spent on a run folder into its manifest."""
    manifest, sums = read_manifest(run), spent_on_run(cassette, command, run)
    if sums != manifest.spent:
        write_manifest(run, replace(manifest, spent=sums))


def in_dollars(amount: float) -> str:
    """Return a small amount as it is written, not in powers of ten: $0.00005."""
    return "$" + f"{amount:.12f}".rstrip("0").rstrip(".")
