"""Bill a stored run under the prices of any models, call by call and conversation by conversation.

    billed = bill(load("runs/standard"), [Scheme("claude-sonnet-5"), Scheme("gpt-5.6")])
    billed.conversations().groupby(["model", "strategy"], observed=True).cost.sum()

Nothing is run again: usage comes from the context log (`simulation.py`), money from usage and prices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ctxbench.metrics.cache.mechanisms import (
    FIVE_MINUTES,
    HOUR,
    AutomaticRules,
    BoundaryRules,
    ExplicitRules,
    UnitRules,
)
from ctxbench.metrics.cache.rules import STORED, day_of, rule_for
from ctxbench.metrics.prices import Price, Prices, Tariff
from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.events import Called

from ..folder.run import KEYS, Floats, Ints, Run
from . import OWN_MODELS, usual_prices
from .requests import CountedRequests, RunRequests, TokenFactors, billed_models, conversations_of, own_models
from .simulation import BOUND, Scheme, Usages, bounds, is_bounded, rule_of, simulated

if TYPE_CHECKING:
    import pandas as pd

    from ..folder.remote import RemoteFolder

MONEY = ("cost_read", "cost_written", "cost_fresh", "cost_output", "cost_storage")
"""The parts of a bill, in US dollars. Content that the caller creates to be stored counts as written."""
USED = ("read", "written", "written_1h", "fresh")
TOKENS = ("tokens", *USED, "created", "output")
_COSTS = ("cost", "cost_missed", "cost_own", "cost_refetch", "uncached")
SUMS = (*TOKENS, "found", "token_hours", *MONEY, *_COSTS, "hits", "eligible", "over_window")

OF_CALLS = ("tokens", "read", "cost", "cost_own")
"""Columns of single calls that a report draws, beside those of the steps and the pause: once made they are kept."""

REFETCH_OUTPUT = 23
"""Tokens of the tool call that reads something again: the median of 2,405 recorded ones of three agents."""

# Ints or Floats, as the name of the column says: a union would need a cast at each use.
Column = Any


@dataclass(frozen=True)
class Billed:
    """A run billed under several schemes. Columns of its tables:

    gap           seconds since the previous call of the conversation began; NaN for the first call and without times
    tokens        the prompt: read + written + written_1h + fresh
    created       tokens stored beside the prompt
    output        tokens of the recorded answer
    token_hours   storage
    cost_…        the parts of the cost in dollars; `cost` is their sum
    cost_missed   what is to be added to `cost` where calls find the share of the cached tokens that recorded ones did
    uncached      cost of the same request without a cache
    cost_own      the strategy's own model calls: NaN where a price is not known; calls that `offline` answered are
                  charged at the billed model's price
    cost_refetch  a model of what it would cost to read again what the context lacks (`_refetched`); NaN for the offline
                  optimum
    found         tokens read that were not created for this very call
    hits          1 if `found` is more than 0
    eligible      1 if the call could have read from a cache: it did, or it is not the first of its conversation and its
                  prompt has as many tokens as the model's shortest cached prefix
    over_window   1 if the prompt is larger than the model's context window; it is billed as if it were accepted
    """

    requests: RunRequests
    schemes: Sequence[Scheme]
    prices: Prices
    usages: Mapping[Scheme, Usages]
    factors: Mapping[str, TokenFactors]
    """By model: tokens that the provider counts for each of ours. Columns are in the provider's tokens."""
    counted: Mapping[str, CountedRequests]
    """By model: the requests with images, sounds, films, files and reasoning as its provider counts them."""
    thinking: bool = False  # whether recorded reasoning is part of later prompts
    own: Mapping[str, str] = field(default_factory=dict)
    """By conversation: the model that it is billed under where the scheme's is OWN_MODELS."""
    _of_calls: dict[Scheme, dict[str, Column]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def cached(self, scheme: Scheme) -> Ints:
        """Return the tokens that each call reads from the cache, in our counts."""
        read: Ints = self._of_own(scheme, lambda one: {"read": self.usages[one].read})["read"]
        return read

    def _own_models(self, *, by_step: bool = True) -> NDArray[np.str_]:
        """Return the own model of each step's conversation, or of each result's."""
        models = np.array([self.own[name] for name, _, _ in self.requests.results])
        return np.repeat(models, np.diff(self.requests.bounds)) if by_step else models

    def _of_own(
        self, scheme: Scheme, make: Callable[[Scheme], dict[str, Column]], *, by_step: bool = True
    ) -> dict[str, Column]:
        """Return the columns of a scheme; of OWN_MODELS, in each row those of its conversation's model."""
        schemes = under(scheme, self.own)
        columns = [make(one) for one in schemes]
        if len(schemes) == 1:
            return columns[0]
        models = self._own_models(by_step=by_step)
        here = [models == one.model for one in schemes]
        return {name: np.select(here, [of[name] for of in columns]) for name in columns[0]}

    def against_recorded(self, scheme: Scheme) -> tuple[int, float, float] | None:
        """Return the number of calls with a recorded cost, that cost, and the bill of the same calls under `none`."""
        messages = self.requests.run.arrow("messages", ["conversation", "at", "model", "usage_cost", "compacted"])
        calls = messages.filter(pc.greater(messages.column("usage_cost"), 0)).to_pandas().astype({"conversation": str})
        # After a compaction the recorded agent did not send the history.
        calls = calls[(calls.model == scheme.model) & ~calls.compacted]
        if scheme not in self.usages or not len(calls):
            return None
        both = self._of_none(scheme).merge(calls[["conversation", "at", "usage_cost"]], on=["conversation", "at"])
        return (len(both), float(both.usage_cost.sum()), float(both.cost.sum())) if len(both) else None

    def _as_recorded(self, scheme: Scheme, usage: Usages) -> tuple[Usages, float]:
        """Return usage with what earlier sessions left, and the share of the cached tokens that calls find."""
        if scheme not in self.usages:
            return usage, 1.0
        reads, rule = self.requests.recorded_reads(scheme.model), rule_of(scheme, None)
        is_marked = rule is not None and isinstance(rule.rules, ExplicitRules)
        warm = np.array([reads.warm.get(name, 0) for name, _, _ in self.requests.results], np.int64)
        least = np.repeat(warm, np.diff(self.requests.bounds)) * (scheme.warm and rule is not None)
        if is_marked:  # it is gone after a pause, as the rest is
            least[self.requests.gaps > (HOUR if scheme.placement == "hour" else FIVE_MINUTES)] = 0
        parts = np.cumsum([usage.read, usage.written_1h, usage.written, usage.fresh], axis=0)
        read, hour, written, fresh = np.diff(np.maximum(parts, np.minimum(least, parts[-1])), axis=0, prepend=0)
        found = reads.found if is_marked else getattr(rule and rule.rules, "reuse", 1.0)
        found = found if scheme.reuse is None else scheme.reuse
        return usage._replace(read=read, written=written, written_1h=hour, fresh=fresh), found

    def _of_none(self, scheme: Scheme) -> pd.DataFrame:
        """Return the calls of the whole history with their cost, by conversation and place of the answer (`at`)."""
        steps = self.calls(scheme, ["cost"]).assign(at=self.requests.at)
        return steps[steps.strategy == "none"].astype({"conversation": str})

    def special_prices(self, scheme: Scheme) -> dict[str, tuple[int, float]]:
        """Return how many recorded calls of the model had another price than text at the usual tier, by what had it,
        and their share of the bill of the whole history. Bills have none of these prices."""
        places: dict[str, set[tuple[str, int]]] = {}
        for place, message in self.requests.run.beyond_text.items():
            if (call := message.call) is not None and call.model == scheme.model:
                for what in (what for name, used in call.billed for what in self.prices.special(name, call, used)):
                    places.setdefault(what, set()).add(place)
        if not places or scheme not in self.usages:
            return {}
        whole = self._of_none(scheme).set_index(["conversation", "at"]).cost
        return {what: (len(of), float(whole[whole.index.isin(of)].sum() / whole.sum())) for what, of in places.items()}

    def _tariff(self, scheme: Scheme) -> Tariff:
        tariff = self.prices.tariff(scheme.model)
        assert tariff is not None  # `bill` checked it
        return tariff

    def calls(self, scheme: Scheme, columns: Collection[str] | None = None) -> pd.DataFrame:
        """Return one row per call, in the order of the run's steps. The offline optimum has no bill by call.

        Of a large run, all columns of some models take more memory than anything else: `columns` are those needed.
        """
        kept = self._of_calls.get(scheme, {})
        every = kept if columns is not None and kept.keys() >= set(columns) else self._columns(scheme)
        wanted = {name: column for name, column in every.items() if columns is None or name in columns}
        return self.requests.steps.assign(gap=self.requests.gaps, **wanted)

    def over_window(self, scheme: Scheme) -> int:
        """Return how many requests are larger than the window of the scheme's model."""
        usage = _in_provider_tokens(self.usages[scheme], self.factors[scheme.model].prompt)
        is_over = usage.prompts > (self._tariff(scheme).window or np.inf)
        if scheme not in self.schemes:  # one of OWN_MODELS: it has some of the conversations
            is_over &= self._own_models() == scheme.model
        return int(is_over.sum())

    def conversations(self) -> pd.DataFrame:
        """Return one row per conversation, strategy and scheme: sums over its calls.

        `base` is the cost of `none` under `Scheme.base`, and `break_even` the first turn from which on the strategy,
        with its own model calls, has cost less in all: NaN if that never lasts, and where `none` was not run.
        """
        import pandas as pd

        return pd.concat([self.conversations_under(scheme) for scheme in self.schemes], ignore_index=True)

    def conversations_under(self, scheme: Scheme) -> pd.DataFrame:
        """Return the rows of `conversations` under one scheme."""
        first = self.requests.bounds[:-1]

        def by_result(column: Column) -> Column:
            # `reduceat` takes no empty list of places: a run may have no calls.
            return np.add.reduceat(column, first) if first else column

        names = self.requests.steps.iloc[first][["conversation", "strategy"]].reset_index(drop=True)
        columns = self._columns(scheme)
        base = (columns if scheme == scheme.base else self._columns(scheme.base))["cost"]
        none = np.where(self._none >= 0, base[self._none], np.nan)
        sums = {name: by_result(columns[name]) for name in SUMS}
        even = self._break_even(columns["cost"] + columns["cost_own"] - none)
        # The optimum is one sum over a conversation: there is no turn from which on it is cheaper.
        if scheme.placement == BOUND:
            bound = self._of_own(scheme, lambda one: self._bound(one, sums["cost_output"]), by_step=False)
            sums, even = {**sums, **bound}, np.full(len(names), np.nan)
        rows = names.assign(model=scheme.model, placement=scheme.placement, calls=np.diff(self.requests.bounds))
        return rows.assign(**sums, base=by_result(none), break_even=even)

    def _bound(self, scheme: Scheme, output: Floats) -> dict[str, Floats]:
        """Return the sums under the offline optimum. Its parts in dollars, and which calls hit, are not known."""
        factor, tariff, counted = self.factors[scheme.model].prompt, self._tariff(scheme), self.counted[scheme.model]
        pieces = (replace(counted, requests=piece) for piece in self.requests.pieces())
        optima = [each for piece in pieces for each in bounds(piece, scheme, tariff, _priced_as(scheme), factor)]
        columns = {name: np.array([getattr(optimum, name) for optimum in optima]) for name in (*USED, "cost")}
        lacking = ("cost_read", "cost_written", "cost_fresh", "cost_refetch", "hits")
        unknown = dict.fromkeys(lacking, np.full(len(optima), np.nan))
        tokens = {name: _scaled(columns[name], factor) for name in USED}
        return {**unknown, **tokens, "found": tokens["read"], "cost": factor * columns["cost"] + output}

    def _columns(self, scheme: Scheme) -> dict[str, Column]:
        columns = self._of_own(scheme, self._columns_of)
        if self.requests.is_whole:  # of a piece of a run nobody asks for calls
            self._of_calls[scheme] = {name: columns[name] for name in OF_CALLS}
        return columns

    def _columns_of(self, scheme: Scheme) -> dict[str, Column]:
        factors, tariff, counted = self.factors[scheme.model], self._tariff(scheme), self.counted[scheme.model]
        usage = self.usages.get(scheme)
        if usage is None:  # nothing is cached
            none = np.zeros(len(counted.tokens), np.int64)
            usage = Usages(none, none, none, counted.tokens, none, none.astype(float))
        usage, output = _in_provider_tokens(usage, factors.prompt), _scaled(self.requests.output, factors.answer)
        usage, found = self._as_recorded(scheme, usage)
        tokens = usage.prompts
        sent = SentPrompts(tokens, output, tokens - usage.fresh)
        price = _prices(scheme, tariff, tokens, self.requests.started)
        # What is marked and not found is written again.
        again, hours = np.where(usage.written > 0, price.write, price.input), usage.token_seconds / 3600
        hits = (usage.read > 0) & (usage.created == 0)
        parts = (tokens, usage.read, usage.written, usage.written_1h, usage.fresh, usage.created, output)
        money = (
            usage.read * price.read,
            usage.written * price.write + usage.written_1h * price.write_1h + usage.created * price.input,
            usage.fresh * price.input,
            output * price.output,
            hours * price.storage,
        )
        return {
            **dict(zip(TOKENS, parts, strict=True)),
            "token_hours": hours,
            **dict(zip(MONEY, money, strict=True)),
            "cost": np.sum(money, axis=0),
            "cost_missed": usage.read * (1 - found) * (again - price.read),
            "cost_own": self._own(scheme, tariff, sent),
            "cost_refetch": self._refetched(scheme, tariff, sent),
            "uncached": tokens * price.input + output * price.output,
            "found": np.where(usage.created > 0, 0, usage.read),
            "hits": hits.astype(np.int64),
            "eligible": (hits | self._may_hit(scheme)).astype(np.int64),
            "over_window": (tokens > (tariff.window or np.inf)).astype(np.int64),
        }

    def _may_hit(self, scheme: Scheme) -> NDArray[np.bool_]:
        """Return which calls come after another one of their conversation and are long enough to be cached."""
        may_hit = self.requests.steps.step.to_numpy() > 0
        for first, last in pairwise(self.requests.bounds):
            rule = rule_of(scheme, _day(self.requests.started[first]))
            if rule is None or rule.rules is None:
                may_hit[first:last] = False
            elif not isinstance(rule.rules, UnitRules):
                may_hit[first:last] &= self.counted[scheme.model].tokens[first:last] >= rule.rules.least
        return may_hit

    def _own(self, scheme: Scheme, tariff: Tariff, sent: SentPrompts) -> Floats:
        """Return the cost of the strategies' own model calls at each step, where the prompts `sent` are charged."""
        rows, calls = self._own_calls
        total, factors = np.zeros(len(self.requests.steps)), self.factors[scheme.model]
        if not calls:
            return total
        counts = np.array([(call.input_tokens, call.output_tokens, call.cache_read) for call in calls], np.int64)
        asked, replied = _scaled(counts[:, 0], factors.prompt), _scaled(counts[:, 1], factors.answer)
        tokens, read = self._charged(scheme, asked, sent)
        # A recorded usage is in the provider's tokens, and says what was read.
        recorded = np.array([call.basis == "recorded" for call in calls])
        tokens, read = np.where(recorded, counts[:, 0], tokens), np.where(recorded, counts[:, 2], read)
        replied = np.where(recorded, counts[:, 1], replied)
        price = _prices(scheme, tariff, tokens, self.requests.started[rows])
        billed = (tokens - read) * price.input + read * price.read + replied * price.output
        paid = np.array([np.nan if call.cost is None else call.cost for call in calls], np.float64)
        free = np.array([call.basis != "run" or (call.model == FREE and call.role == "summariser") for call in calls])
        # Not `total[rows] +=`, which counts one of several calls of a step. NaN, for a price that is not known, stays.
        np.add.at(total, rows, np.where(free, billed, paid))
        return total

    def _charged(self, scheme: Scheme, asked: Ints, sent: SentPrompts) -> tuple[Ints, Ints]:
        """Return the prompt tokens of own calls, such as summaries, and those that are read from the cache.

        `asked`: tokens of the prompts that the run made for them. How a summary is asked for decides what it costs
        (`Prompt.kind`; sources in decision 18):

            separate   the tokens of its own prompt, at the plain price
            history    the tokens of the last prompt and its answer, at the plain price: nothing of a cache is shared
            extends    the same tokens, of which what the cache still has of the last prompt is read

        At the first step of a conversation there is no last prompt: the call's own is charged.
        """
        rows, calls = self._own_calls
        kinds = np.array([call.prompt for call in calls])
        later = ~np.isin(rows, self.requests.bounds[:-1]) & (kinds != "separate")
        last = np.where(later, rows - 1, 0)
        tokens = np.where(later, sent.tokens[last] + sent.output[last], asked)
        started = self.requests.started
        pauses = np.nan_to_num(started[rows] - started[last])
        cached = still_cached(scheme, started[rows], sent.tokens[last], sent.cached[last], pauses)
        return tokens, np.where(later & (kinds == "extends"), cached, 0)

    def _refetched(self, scheme: Scheme, tariff: Tariff, sent: SentPrompts) -> Floats:
        """Return at each step the cost of one further call that reads again what the recorded model used next.

        A step whose context lacks such values takes one call more: the context once more, read from the cache as it is
        right after the step's own call, then the messages that have the values, as plain input, and a tool call of
        `REFETCH_OUTPUT` tokens. What was read again is gone by the next step.
        """
        total = np.zeros(len(sent.tokens))
        again = _scaled(self.requests.ints("refetch_tokens"), self.factors[scheme.model].prompt)
        rows = np.flatnonzero(again)
        if not len(rows):
            return total
        tokens, marked, started = sent.tokens[rows], sent.cached[rows], self.requests.started[rows]
        cached = still_cached(scheme, started, tokens, marked, np.zeros(len(rows)))
        price = _prices(scheme, tariff, tokens + again[rows], started)
        plain = tokens - cached + again[rows]
        total[rows] = cached * price.read + plain * price.input + REFETCH_OUTPUT * price.output
        return total

    @cached_property
    def _own_calls(self) -> tuple[Ints, list[Called]]:
        """The strategies' own model calls, behind the row of the step at which each was made."""
        first = {(name, strategy): rows.start for name, strategy, rows in self.requests.results}
        events = self.requests.run.table("events").dropna(subset=["input_tokens"])
        decoder = msgspec.json.Decoder(Called)
        columns = (events[name].tolist() for name in ("conversation", "strategy", "step", "event"))
        made = [
            (first[name, strategy] + step, decoder.decode(text))
            for name, strategy, step, text in zip(*columns, strict=True)
            if (name, strategy) in first
        ]
        return np.array([row for row, _ in made], np.int64), [call for _, call in made]

    @cached_property
    def _none(self) -> Ints:
        """Index of the row for the same call under `none`, or -1."""
        results = self.requests.results
        none = {name: rows.start for name, strategy, rows in results if strategy == "none"}
        places = [none[name] + np.arange(rows.stop - rows.start) for name, _, rows in results if name in none]
        numbers = np.full(len(self.requests.steps), -1, np.int64)
        numbers[self.requests.steps.conversation.isin(none.keys())] = np.concatenate([*places, np.empty(0, np.int64)])
        return numbers

    def _break_even(self, ahead: Floats) -> Floats:
        """Return for each conversation and strategy the turn after which it stays cheaper than `none`, or NaN."""
        break_even = np.full(len(self.requests.bounds) - 1, np.nan)
        turns = self.requests.steps.turn.to_numpy()
        for number, (start, stop) in enumerate(pairwise(self.requests.bounds)):
            # Not `>= 0`: where a price is not known the sum is NaN, and nobody can say that it is cheaper.
            dearer = np.flatnonzero(~(np.cumsum(ahead[start:stop]) < 0))
            after = start if not len(dearer) else start + int(dearer[-1]) + 1
            if after < stop:
                break_even[number] = turns[after]
        return break_even


def check_prices(schemes: Sequence[Scheme], prices: Prices) -> None:
    """Raise RunError for a model whose price, or price of stored content, is not known."""
    for scheme in schemes:
        tariff = prices.tariff(scheme.model)
        if tariff is None:
            raise RunError(prices.unknown(scheme.model))
        if scheme.rules == "stored" and rule_for(scheme.model, None, STORED) and not tariff.storage:
            raise RunError(
                f"{scheme.model}: no price of stored content is known: give storage_per_hour in a file of prices"
            )


def bill(
    run: Run | RunRequests,
    schemes: Sequence[Scheme],
    prices: Prices | None = None,
    done: Callable[[], object] | None = None,
    thinking: bool = False,
    factor: float | None = None,
) -> Billed:
    """Bill a run under every scheme; `done` is called after each conversation and strategy.

    `thinking`: whether recorded reasoning is part of later prompts, as the model's provider keeps it.
    `factor`: tokens that the providers count for each of ours; None = as recorded, or as their family of models does.

    Raises RunError for a model whose price is not known: it is not free. The offline optimum (placement `hindsight`) is
    left out for models whose caches take no marks.
    """
    prices = prices or Prices()
    requests = run if isinstance(run, RunRequests) else RunRequests(run)
    is_own = any(scheme.model == OWN_MODELS for scheme in schemes)
    own = own_models(requests.run, prices, requests.recorded) if is_own else {}
    check_prices([one for scheme in schemes for one in under(scheme, own)], prices)
    billed_schemes = [
        scheme for scheme in schemes if scheme.placement != BOUND or all(map(is_bounded, under(scheme, own)))
    ]
    if schemes and not billed_schemes:
        raise RunError(
            f"{BOUND} bounds where cache marks are put, and {schemes[0].model} takes none: choose another placement"
        )
    if any(scheme.placement == BOUND for scheme in billed_schemes):  # the optimum begins with an empty cache
        billed_schemes = [scheme._replace(warm=False) for scheme in billed_schemes]
    single = [one for scheme in billed_schemes for one in under(scheme, own)]
    bases = (scheme.base for scheme in single)
    needed = list(dict.fromkeys((*(scheme for scheme in single if scheme.placement != BOUND), *bases)))
    models = dict.fromkeys(scheme.model for scheme in needed)
    given = None if factor is None else TokenFactors(factor, factor)
    factors = {name: given or requests.token_factors(name, thinking) for name in models}
    counted = {name: requests.counted_for(name, factors[name].prompt, thinking) for name in models}
    named = {scheme.model for scheme in billed_schemes}
    only = {model: names for model, names in conversations_of(requests.run, own).items() if model not in named}
    usages: dict[Scheme, Usages] = {}
    # Without media all models have the same requests, and share the work.
    for number, same in enumerate(dict.fromkeys(counted.values())):
        alike = [scheme for scheme in needed if counted[scheme.model] == same]
        usages.update(zip(alike, simulated(same, alike, None if number else done, only), strict=True))
    return Billed(requests, billed_schemes, prices, usages, factors, counted, thinking, own)


_LONG = 100  # steps of a run whose bills are stored: a shorter one is billed at once by whoever looks


def store_bills(run: Run, named: Sequence[str] = (), remote: RemoteFolder | None = None, jobs: int = 1) -> None:
    """Simulate the caches of a finished run under the models that it is billed under: the first look finds it stored,
    also in the store that the run's folder is a copy of. Pieces of the run are billed side by side.
    """
    if sum(run.arrow("results", ["steps"]).column("steps").to_pylist()) < _LONG:
        return
    schemes = [Scheme(model) for model in billed_models(run, named)]
    pieces = [piece.run.shards for piece in RunRequests(run).pieces()]
    if jobs > 1 and len(pieces) > 1:
        from ..engine.workers import side_by_side  # whoever looks at bills needs no workers

        models = [scheme.model for scheme in schemes]
        packed = (msgspec.msgpack.encode((str(run.folder), shards, models)) for shards in pieces)
        side_by_side(_store_piece, packed, min(jobs, len(pieces)), lambda _: None)
    else:
        for piece in RunRequests(run).pieces():
            bill(piece, schemes, usual_prices())
    if (part := billed_part(run)) is not run:
        bill(part, schemes, usual_prices())
    if remote is not None:
        remote.push_bills()


def _store_piece(packed: bytes) -> None:
    """Simulate the caches of one piece of a run, in a worker."""
    folder, shards, models = msgspec.msgpack.decode(packed, type=tuple[str, tuple[int, ...], list[str]])
    run = Run(Path(folder))
    bill(RunRequests(replace(run, shards=shards), RunRequests(run)), list(map(Scheme, models)), usual_prices())


# Messages put into requests up to which all conversations are billed: about a quarter of a minute.
_MOST_WORK = 3_000_000
# Work of a step beside its messages, in messages.
_STEP_WORK = 5


def billed_part(run: Run) -> Run:
    """Return a run, or of a large one an even sample of its conversations: reports bill that."""
    work = 0
    for piece in run.pieces():
        table = piece.arrow("steps", ["added_from", "added_to"])
        columns = (pc.list_flatten(table.column(name)) for name in ("added_from", "added_to"))
        starts, ends = (pc.sum(column, min_count=0).as_py() for column in columns)
        work += ends - starts + _STEP_WORK * len(table)
    if work <= _MOST_WORK:
        return run
    names = run.arrow("conversations", ["conversation"]).column("conversation").to_pylist()
    places = np.linspace(0, len(names) - 1, max(1, int(len(names) * _MOST_WORK / work)))
    return Run(run.folder, frozenset(names[at] for at in np.unique(places.round().astype(int))))


def under(scheme: Scheme, own: Mapping[str, str]) -> list[Scheme]:
    """Return the scheme itself, or for OWN_MODELS one scheme for each of the models in `own`, by conversation."""
    if scheme.model != OWN_MODELS:
        return [scheme]
    return [scheme._replace(model=model) for model in dict.fromkeys(own.values())]


def conversation_bills(run: Run, schemes: Sequence[Scheme], prices: Prices | None = None) -> pd.DataFrame:
    """Return the rows of `Billed.conversations`, the offline optimum not among them, some shards of a run at a time.

    Raises RunError for a model whose price is not known.
    """
    import pandas as pd

    prices = prices or usual_prices()
    check_prices([scheme for scheme in schemes if scheme.model != OWN_MODELS], prices)
    if not schemes:
        return pd.DataFrame(columns=[*KEYS, "model", "placement", "calls", *SUMS, "base", "break_even"])
    billed = [bill(piece, schemes, prices) for piece in RunRequests(run).pieces()]
    frames = [
        piece.conversations_under(scheme).astype(dict.fromkeys(KEYS, str)) for scheme in schemes for piece in billed
    ]
    rows = pd.concat(frames, ignore_index=True)
    # Names are categories in the order in which they come, as in a whole table.
    return rows.astype({key: pd.CategoricalDtype(list(dict.fromkeys(rows[key]))) for key in KEYS})


def _scaled(tokens: Ints, factor: float) -> Ints:
    """Return our counts as the provider's, in whole tokens."""
    return tokens if factor == 1 else np.rint(tokens * factor).astype(np.int64)


def _in_provider_tokens(usage: Usages, factor: float) -> Usages:
    """Return usage as the provider counts it. The parts still add up to the prompt: the places between them move."""
    if factor == 1:
        return usage
    parts = np.cumsum([usage.read, usage.written, usage.written_1h, usage.fresh], axis=0)
    read, written, written_1h, fresh = np.diff(_scaled(parts, factor), axis=0, prepend=0)
    return Usages(read, written, written_1h, fresh, _scaled(usage.created, factor), usage.token_seconds * factor)


FREE = "offline"
"""The extractive summariser: it is no model and costs nothing in the run, but is billed as if it were one."""


_DAY = 86_400


def _day(started: float) -> str | None:
    return None if np.isnan(started) else day_of(started)


class SentPrompts(NamedTuple):
    """Tokens of every row of the table `steps`, in the provider's counts."""

    tokens: Ints
    output: Ints
    cached: Ints  # tokens read or written


def still_cached(scheme: Scheme, started: Floats, tokens: Ints, marked: Ints, pauses: Floats) -> Ints:
    """Return how much of each prompt is cached after a pause in seconds, by the rules of its start (NaN = unknown)."""
    cached = np.zeros(len(tokens), np.int64)
    days, which = np.unique(started // _DAY, return_inverse=True)
    for at, day in enumerate(days * _DAY):
        here, rule = np.flatnonzero(which == at), rule_of(scheme, _day(day))
        match rule and rule.rules:
            case ExplicitRules():
                lifetime, had = HOUR if scheme.placement == "hour" else FIVE_MINUTES, marked[here]
            case BoundaryRules(lifetime=lifetime):
                had = marked[here]
            case AutomaticRules(lifetime=lifetime) | UnitRules(lifetime=lifetime) as rules:
                had = np.array(list(map(rules.read, tokens[here].tolist())), np.int64)
            case _:
                continue
        cached[here] = np.where(pauses[here] < lifetime, had, 0)
    return cached


def _prices(scheme: Scheme, tariff: Tariff, tokens: Ints, started: Floats) -> Any:
    """Return a `Price` of columns: by the size of each prompt, and by its hour where prices differ by the hour."""
    by_hour, above = tariff.off_peak or tariff.storage, [size for size, _ in tariff.tiers]
    hours = np.where(np.isnan(started) | (not by_hour), -1, started // 3600)
    # A price is looked up once for each hour of the recordings and each tier, not once for each call.
    places, which = np.unique(hours * len(above) + np.searchsorted(above[1:], tokens), return_inverse=True)
    found = ((int(place % len(above)), float(place // len(above))) for place in places)
    # A tier is for prompts of more than its size.
    rates = [tariff.at(above[tier] + 1, None if hour < 0 else 3600 * hour) for tier, hour in found]
    # The last of the six is None where stored content is not sold.
    priced = _priced_as(scheme)
    rows = np.array([[rate or 0.0 for rate in priced(price)[:6]] for price in rates]).reshape(-1, 6)[which]
    return Price(*rows.T)


def _priced_as(scheme: Scheme) -> Callable[[Price], Price]:
    """Return the change that a scheme makes to prices: design document 000 has its own cache discounts."""
    rule = rule_of(scheme, None)
    if rule is None or rule.pays is None:
        return lambda price: price
    read, write = rule.pays
    return lambda price: price._replace(
        read=price.input * read, write=price.input * write, write_1h=price.input * write
    )
