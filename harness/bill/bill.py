"""The bill of a stored run, call by call and conversation by conversation, under the prices of any models.

    billed = bill(load("runs/standard"), [Scheme("claude-sonnet-5"), Scheme("gpt-5.6")])
    billed.conversations().groupby(["model", "strategy"], observed=True).cost.sum()

Nothing is run again: usage comes from the context log (`simulate.py`), money from usage and prices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from ...metrics.cache.rules import STORED, rule_for
from ...metrics.prices import Price, Prices, Tariff
from ...scenarios.errors import RunError
from ...strategies.events import Called
from ..folder.contexts import Floats, Ints
from ..folder.run import Run
from .requests import RunRequests
from .simulation import BOUND, Scheme, Usages, bounds, is_bounded, rule_of, simulated

MONEY = ("cost_read", "cost_written", "cost_fresh", "cost_output", "cost_storage")
"""The parts of a bill, in US dollars; what is created to be stored counts as written."""
USED = ("read", "written", "written_1h", "fresh")
TOKENS = ("tokens", *USED, "created", "output")
FREE = "offline"
"""The summariser that is no model."""
SUMS = (*TOKENS, "found", "token_hours", *MONEY, "cost", "cost_own", "uncached", "hits", "over_window")


Column = Any
"""Ints or Floats: which, the column's name says."""


@dataclass(frozen=True)
class Billed:
    """A run under several schemes. Columns:

    gap = seconds since the call before in the conversation began; NaN for the first, and where there are no times
    tokens = read + written + written_1h + fresh of the prompt; created beside it; output of the recorded answer
    token_hours of storage; the parts of the cost in dollars, and their sum; uncached = the same request without a cache
    cost_own = the strategy's own model calls (NaN where a price is not known; those that `offline` answered at the
    billed model's price); found = what was read but not created for this very call; hits = 1 if that is anything;
    over_window = 1 if the prompt is larger than the model's context window, and billed as if it were taken.
    """

    cells: RunRequests
    schemes: Sequence[Scheme]
    prices: Prices
    usages: Mapping[Scheme, Usages]

    def window(self, scheme: Scheme) -> int | None:
        """The most tokens that a prompt to the model may have, where that is known."""
        tariff = self.prices.tariff(scheme.model)
        return tariff.window if tariff else None

    def calls(self, scheme: Scheme) -> pd.DataFrame:
        """One row a call, in the order of the run's steps. The bound is not known by calls: it has none."""
        return self.cells.steps.assign(gap=self.cells.gaps, **self._columns(scheme))

    def conversations(self) -> pd.DataFrame:
        """One row for each conversation, strategy and scheme: sums over its calls, and when it breaks even.

        `break_even`: the first turn from which on the strategy, with its own model calls, has cost less than `none`
        under `Scheme.base` in all up to there; NaN if it never stays so, and where `none` was not run. `base`: the cost
        of `none` there.
        """
        first = self.cells.bounds[:-1]
        names = self.cells.steps.iloc[first][["conversation", "strategy"]].reset_index(drop=True)
        made = []
        for scheme in self.schemes:
            columns = self._columns(scheme)
            base = self._columns(scheme.base)["cost"]
            none = np.where(self._none >= 0, base[self._none], np.nan)
            sums = {name: np.add.reduceat(columns[name], first) if first else columns[name] for name in SUMS}
            even = self._break_even(columns["cost"] + columns["cost_own"] - none)
            if scheme.placement == BOUND:
                sums, even = {**sums, **self._bound(scheme, sums["cost_output"])}, np.full(len(names), np.nan)
            known = names.assign(model=scheme.model, placement=scheme.placement, calls=np.diff(self.cells.bounds))
            base_sums = np.add.reduceat(none, first) if first else none
            made.append(known.assign(**sums, base=base_sums, break_even=even))
        return pd.concat(made, ignore_index=True)

    def _bound(self, scheme: Scheme, output: Floats) -> dict[str, Floats]:
        """The sums that the lowest bill has instead. Its parts in dollars, and which calls hit, are not known."""
        tariff = self.prices.tariff(scheme.model)
        assert tariff is not None  # `bill` has asked
        found = list(bounds(self.cells, scheme, tariff, _priced_as(scheme)))
        unknown = dict.fromkeys(("cost_read", "cost_written", "cost_fresh", "hits"), np.full(len(found), np.nan))
        tokens = {name: np.array([getattr(each, name) for each in found]) for name in USED}
        tokens["found"] = tokens["read"]
        return {**unknown, **tokens, "cost": np.array([each.cost for each in found]) + output}

    def _columns(self, scheme: Scheme) -> dict[str, Column]:
        usage, cells = self.usages.get(scheme) or _nothing(self.cells), self.cells
        tariff = self.prices.tariff(scheme.model)
        assert tariff is not None  # `bill` has asked
        price = _Columns.of(tariff, _priced_as(scheme), cells.tokens, cells.started)
        hours = usage.token_seconds / 3600
        tokens = (cells.tokens, usage.read, usage.written, usage.written_1h, usage.fresh, usage.created, cells.output)
        money = (
            usage.read * price.read,
            usage.written * price.write + usage.written_1h * price.write_1h + usage.created * price.input,
            usage.fresh * price.input,
            cells.output * price.output,
            hours * price.storage,
        )
        return {
            **dict(zip(TOKENS, tokens, strict=True)),
            "token_hours": hours,
            **dict(zip(MONEY, money, strict=True)),
            "cost": np.sum(money, axis=0),
            "cost_own": self._own(scheme, tariff),
            "uncached": cells.tokens * price.input + cells.output * price.output,
            "found": np.where(usage.created > 0, 0, usage.read),
            "hits": ((usage.read > 0) & (usage.created == 0)).astype(np.int64),
            "over_window": (cells.tokens > (tariff.window or np.inf)).astype(np.int64),
        }

    def _own(self, scheme: Scheme, tariff: Tariff) -> Floats:
        """What the strategies' own model calls cost, at the steps at which they were made.

        What `offline` summarised for nothing costs what the billed model takes for as many tokens: in use, a summary is
        never free.
        """
        own, (rows, calls) = np.zeros(len(self.cells.steps)), self._own_calls
        if not calls:
            return own
        read = np.array([each.input_tokens for each in calls], np.int64)
        written = np.array([each.output_tokens for each in calls], np.int64)
        price = _Columns.of(tariff, _priced_as(scheme), read, self.cells.started[rows])
        billed = read * price.input + written * price.output
        paid = np.array([np.nan if each.cost is None else each.cost for each in calls], np.float64)
        free = np.array([each.model == FREE and each.role == "summariser" for each in calls])
        np.add.at(own, rows, np.where(free, billed, paid))  # NaN, if not known, stays
        return own

    @cached_property
    def _own_calls(self) -> tuple[Ints, list[Called]]:
        """The strategies' own model calls, and the row of the step of each."""
        steps, first = self.cells.steps, self.cells.bounds[:-1]
        events = self.cells.run.table("events").dropna(subset=["input_tokens"])
        cell = dict(zip(_keys(steps.iloc[first]), first, strict=True))
        decoder = msgspec.json.Decoder(Called)
        made = [
            (cell[key] + step, decoder.decode(text))
            for key, step, text in zip(_keys(events), events.step.tolist(), events.event.tolist(), strict=True)
            if key in cell
        ]
        return np.array([row for row, _ in made], np.int64), [call for _, call in made]

    @cached_property
    def _none(self) -> Ints:
        """Of each row, that of the same call under `none`; -1 where there is none."""
        steps, bounds = self.cells.steps, self.cells.bounds
        keys = list(_keys(steps.iloc[bounds[:-1]]))
        none = {name: row for (name, strategy), row in zip(keys, bounds, strict=False) if strategy == "none"}
        made = np.full(len(steps), -1, np.int64)
        for (name, _), first, last in zip(keys, bounds, bounds[1:], strict=False):
            if name in none:
                made[first:last] = np.arange(none[name], none[name] + last - first)
        return made

    def _break_even(self, ahead: Floats) -> Floats:
        """Of each cell, the turn from which on the sum of what it costs more than `none` is under zero."""
        made = np.full(len(self.cells.bounds) - 1, np.nan)
        turns = self.cells.steps.turn.to_numpy()
        for cell, (start, stop) in enumerate(pairwise(self.cells.bounds)):
            dearer = np.flatnonzero(~(np.cumsum(ahead[start:stop]) < 0))
            after = start if not len(dearer) else start + int(dearer[-1]) + 1
            if after < stop:
                made[cell] = turns[after]
        return made


def bill(
    run: Run | RunRequests,
    schemes: Sequence[Scheme],
    prices: Prices | None = None,
    done: Callable[[], object] | None = None,
) -> Billed:
    """Bill a run under every scheme. Raises RunError for a model whose price is not known: it is not free.

    `done` is called after each cell.

    The placement `hindsight` is a bound, and left out for models whose caches want no marks.
    """
    prices = prices or Prices()
    for scheme in schemes:
        tariff = prices.tariff(scheme.model)
        if tariff is None:
            raise RunError(prices.unknown(scheme.model))
        if (
            scheme.stored
            and rule_for(scheme.model, None, STORED)
            and any(price.storage is None for _, price in tariff.tiers)
        ):
            raise RunError(
                f"{scheme.model}: no price of stored content is known: give storage_per_hour in --prices FILE"
            )
    cells = run if isinstance(run, RunRequests) else RunRequests(run)
    wanted = [scheme for scheme in schemes if scheme.placement != BOUND or is_bounded(scheme)]
    if schemes and not wanted:
        raise RunError(
            f"{BOUND} is a bound on where marks are put, and {schemes[0].model} wants none: take another placement"
        )
    bases = (scheme.base for scheme in wanted)
    needed = list(dict.fromkeys((*(scheme for scheme in wanted if scheme.placement != BOUND), *bases)))
    usages = dict(zip(needed, simulated(cells, needed, done), strict=True))
    return Billed(cells, wanted, prices, usages)


def _nothing(cells: RunRequests) -> Usages:
    """Where nothing is cached."""
    none = np.zeros(len(cells.tokens), np.int64)
    return Usages(none, none, none, cells.tokens, none, none.astype(float))


@dataclass(frozen=True)
class _Columns:
    """The prices of every row."""

    input: Floats
    output: Floats
    read: Floats
    write: Floats
    write_1h: Floats
    storage: Floats

    @classmethod
    def of(cls, tariff: Tariff, changed: Callable[[Price], Price], tokens: Ints, started: Floats) -> _Columns:
        """By the size of the prompt, and by its hour where prices differ by the hour."""
        known: list[Price] = []
        which = np.zeros(len(tokens), np.int64)
        hours = np.where(np.isnan(started), -1, started // 3600) if tariff.times else np.zeros(len(tokens))
        above = [size for size, _ in tariff.tiers]
        for hour in np.unique(hours):
            here = hours == hour
            when = hour * 3600.0 if tariff.times and hour >= 0 else None
            prices = [tariff.at(size + 1, when) for size in above]
            which[here] = len(known) + np.maximum(np.searchsorted(above, tokens[here]) - 1, 0)
            known += prices
        rows = np.array([[each or 0.0 for each in changed(price)] for price in known]).reshape(-1, 6)[which]
        return cls(*rows.T)


def _priced_as(scheme: Scheme) -> Callable[[Price], Price]:
    """Design document 000 has its own discounts."""
    rule = rule_of(scheme, None)
    if rule is None or rule.pays is None:
        return lambda price: price
    read, write = rule.pays
    return lambda price: price._replace(
        read=price.input * read, write=price.input * write, write_1h=price.input * write
    )


def _keys(frame: pd.DataFrame) -> zip[tuple[str, str]]:
    """Conversation and strategy of each row."""
    return zip(frame.conversation.tolist(), frame.strategy.tolist(), strict=True)
