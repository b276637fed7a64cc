"""The money of live calls: set aside before a call, settled after it, counted in the cassette, for all processes.

Two accounts are charged with each call: that of the command, and that of the run folder it works on. The spend limit
holds for both, so that a command that is given again goes on with what is left. What a killed process had set aside
stays charged, as its calls may have been answered.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.scenarios.errors import SetupError
from ctxbench.strategies.base import ModelError

from ..folder.schema import Spending
from ..folder.store import account, read_manifest, write_manifest
from .cassette import Cassette

_ROUNDING = 1e-12  # sums of prices are floats: the last call that the limit allows must not fail by a rounding


class Purse:
    """The money of one command, shared by its processes."""

    def __init__(
        self,
        cassette: Cassette,
        command: str,
        limit: float | None = None,
        run: str = "",
        earlier: Spending = Spending(),  # noqa: B008
    ) -> None:
        """`run` is the account of the run folder, and `earlier` what it has cost by its manifest, on any cassette."""
        self._cassette, self._limit = cassette, limit
        self._accounts = dict.fromkeys((command, run or command), Spending())
        if run:
            self._accounts[run] = earlier

    def charge(self, model: str, most: TokenUsage) -> Charge:
        """Return the charge for a call of at most so many tokens."""
        return Charge(self, model, most)

    def reserve(self, model: str, most: float | None) -> None:
        """Set aside the most that a call can cost (None = not known).

        Raises ModelError if that would go over the limit, or if there is a limit and the price is not known.
        """
        if self._limit is None:
            # Set aside without a limit, too: settling takes it away
            # again, and a killed process leaves what it may have cost.
            self.book(Spending(dollars=most or 0.0))
            return
        if most is None:
            raise ModelError(f"{model}: its price is not known, so the spend limit cannot be kept: run without one")
        with self._cassette.transaction():
            # Read and set aside in one transaction: otherwise two workers could both see room for the last call.
            over = max(self.spent(name).dollars for name in self._accounts) + most > self._limit + _ROUNDING
            self._add(Spending(refused=1) if over else Spending(dollars=most))
        if over:
            raise ModelError(f"{model}: the spend limit of {in_dollars(self._limit)} is reached")

    def book(self, change: Spending) -> None:
        """Add to the sums of both accounts."""
        with self._cassette.transaction():
            self._add(change)

    def spent(self, name: str) -> Spending:
        """Return the sums of one account until now."""
        known = self._cassette.account(name) or Spending()
        return max(known, self._accounts[name], key=lambda sums: sums.dollars)  # sums only grow: the larger is newer

    def _add(self, change: Spending) -> None:
        for name in self._accounts:
            sums = self.spent(name)
            new = {field: getattr(sums, field) + getattr(change, field) for field in Spending.__struct_fields__}
            self._cassette.set_account(name, Spending(**new))


class Charge:
    """The charge for one call, a block: what was set aside for it is settled at its end, however it ends.

    An answer costs what it costs. A failure is free if the model says so by ModelError, but for tries that were lost.
    Anything else that ends the block, such as Ctrl-C, is charged as the most that the call can cost.
    """

    def __init__(self, purse: Purse, model: str, most: TokenUsage) -> None:
        self._purse, self._model = purse, model
        self._most = BUNDLED.cost(model, most)
        self._open = False

    def __enter__(self) -> Self:
        self.renew()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if not self._open:
            return
        if isinstance(error, ModelError):
            self._settle(Spending())
        else:
            self.lose()

    def renew(self) -> None:
        """Set aside the most that a try can cost. Raises ModelError where the limit does not allow it."""
        self._purse.reserve(self._model, self._most)
        self._open = True

    def pay(self, usage: TokenUsage, substituted: bool = False) -> None:
        """Book an answer. `substituted`: another model gave it."""
        cost = BUNDLED.cost(self._model, usage)
        self._settle(Spending(1, cost or 0.0, int(cost is None), substituted=int(substituted)))

    def lose(self, usage: TokenUsage | None = None) -> None:
        """Book a try whose answer was lost, at its most where the provider reported no usage."""
        cost = BUNDLED.cost(self._model, usage) if usage else self._most
        self._settle(Spending(dollars=cost or 0.0, unpriced=int(cost is None), unanswered=1))

    def _settle(self, spent: Spending) -> None:
        self._open = False
        # $0.05 was set aside and the call cost $0.01: - 0.04 is booked.
        self._purse.book(replace(spent, dollars=spent.dollars - (self._most or 0.0)))


def purse_of_run(cassette: Cassette, command: str, limit: float | None, folder: Path) -> Purse:
    """Return the purse of a command that works on a run folder, or on that of a search, which has no manifest."""
    known = read_manifest(folder).spent if (folder / "manifest.json").exists() else UNSET
    return Purse(cassette, command, limit, account(folder), Spending() if known is UNSET else known)


class Spent(NamedTuple):
    """Sums of the two accounts that a command charges."""

    by_command: Spending
    by_run: Spending
    """Over all commands on its run folder; the command's own if it works on none."""


def spending(cassette: Path, command: str, run: Path | None = None) -> Spent | None:
    """Return what a command has spent; None if it called no model."""
    try:
        with Cassette(cassette, read_only=True) as accounts:
            by_command = accounts.account(command)
            if by_command is None:
                return None
            return Spent(by_command, accounts.account(account(run)) or by_command if run else by_command)
    except SetupError:  # no model of this command needed one
        return None


def spent_on_run(cassette: Path, command: str, run: Path) -> Spending | UnsetType:
    """Return what all commands have spent on a run folder, as its manifest has it."""
    known = spending(cassette, command, run)
    by_run = Spending() if known is None else known.by_run
    if by_run.dollars or by_run.unpriced or by_run.unanswered or by_run.substituted:
        return by_run
    return read_manifest(run).spent


def note_spending(cassette: Path, command: str, run: Path) -> None:
    """Write what was spent on a run folder into its manifest."""
    manifest, sums = read_manifest(run), spent_on_run(cassette, command, run)
    if sums != manifest.spent:
        write_manifest(run, replace(manifest, spent=sums))


def in_dollars(amount: float) -> str:
    """Return a small amount as it is written, not in powers of ten: $0.00005."""
    return "$" + f"{amount:.12f}".rstrip("0").rstrip(".")
