"""Parse a strategy with free parameters, derive the ranges to search, and draw settings of them.

window(max_tokens=?)                       the range follows from the parameter's type, bounds and default
window(max_tokens=?[1000..64000:log])      from 1000 to 64000, on a logarithmic scale
window(reserve=?[0..0.5])                  from 0 to 0.5, evenly; whole numbers where both ends are
facts(place=?['start', 'end'])             these values, as Python literals

Optuna draws. Trial k follows from the seed, k, and the trials of the batches before its own, as a sampler is created
anew for each.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product, takewhile
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from ctxbench.metrics.frontier import Point
from ctxbench.scenarios import spec as text_of
from ctxbench.scenarios.errors import MissingExtra, SpecError
from ctxbench.strategies import plugins
from ctxbench.strategies.chain import parse, spec, strategies

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

DIGITS = 3
"""Significant digits of the settings tried, so that they can be read: 8120, not 8123, unless a range is narrower."""
AROUND = (2, 4, 8)  # how many times its default a number may be, and how small a part of it
LONG = 64  # the smallest part of a conversation that is tried as a limit
NEAR_END = 0.01  # how close to the end of a share's range it is searched, where the end itself is out of bounds
OF_LENGTH = ("max_tokens", "messages")  # parameters that limit what is sent

Values = Mapping[str, object]  # values of free parameters, by their names in the whole chain


@dataclass(frozen=True, slots=True)
class Numbers:
    """A range of numbers."""

    low: float
    high: float
    log: bool
    whole: bool

    def values(self) -> list[object] | None:
        """Return all values; None = too many to count."""
        if not self.whole:
            return [self.low] if self.low == self.high else None
        if self.high - self.low >= 10_000:
            return None
        return list(dict.fromkeys(self.rounded(value) for value in range(int(self.low), int(self.high) + 1)))

    def rounded(self, value: float) -> float:
        """Return a number with few digits, within the range."""
        value = min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)
        return round(value) if self.whole else float(value)

    def holds(self, value: object) -> bool:
        """Return whether a value is in the range."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def __str__(self) -> str:
        low, high = (f"{int(end)}" if self.whole else f"{end:g}" for end in (self.low, self.high))
        return f"{low}..{high}{':log' * self.log}"


@dataclass(frozen=True, slots=True)
class Choices:
    """A choice of some values."""

    of: tuple[object, ...]

    def values(self) -> list[object]:
        """Return all values."""
        return list(self.of)

    def holds(self, value: object) -> bool:
        """Return whether a value is among the choices, by type too: True is not 1."""
        return any(value == choice and type(value) is type(choice) for choice in self.of)

    def __str__(self) -> str:
        return ",".join(map(repr, self.of))


Range = Numbers | Choices


@dataclass(frozen=True, slots=True)
class Free:
    """One free parameter."""

    name: str
    """In the chain: `max_tokens`, or `window.max_tokens` where other stages have a free parameter of that name."""
    parameter: str
    stage: int
    hint: Any
    default: object  # None where it has none
    bounds: msgspec.Meta | None
    """Bounds of its field. Checks across parameters are not known here: a setting that one refuses fails."""
    given: str  # the range as the user wrote it; empty = it is derived

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that it may have, without None."""
        union = get_origin(self.hint) in (Union, UnionType)
        return tuple(kind for kind in get_args(self.hint) if kind is not NoneType) if union else (self.hint,)

    def takes(self, number: float) -> bool:
        """Return whether a number is within the bounds."""
        return self.bounds is None or text_of.is_within(number, self.bounds)


@dataclass(frozen=True, slots=True)
class SearchedStrategy:
    """A strategy with free parameters."""

    text: str  # as written, with single spaces
    calls: tuple[text_of.SpecCall, ...]
    free: tuple[Free, ...]

    def at(self, values: Values) -> str:
        """Return the strategy with these values, the others at their defaults. Raises SpecError."""
        stages = [dict(call.parameters) for call in self.calls]
        for free in self.free:
            del stages[free.stage][free.parameter]
            if free.name in values:
                stages[free.stage][free.parameter] = values[free.name]
        return spec(parse(" | ".join(map(_text, self.calls, stages))))


def _text(call: text_of.SpecCall, parameters: Mapping[str, object]) -> str:
    return f"{call.name!r}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"


# Quoted texts come first in the pattern and are matched whole, so that a "=?" in one of them is no free parameter.
_TEXT = r"""'(?:\\.|[^'\\])*+'?+|"(?:\\.|[^"\\])*+"?+"""
_TEXT_OR_FREE = re.compile(rf"""{_TEXT}|=\s*(?P<free>\?)(?:\[(?P<range>(?:{_TEXT}|[^\]'"])*)\])?""")


def searched(text: str) -> SearchedStrategy:
    """Parse a strategy with free parameters. Raises SpecError for an unknown strategy, or one without any."""
    ranges: dict[str, str] = {}

    def marked(match: re.Match[str]) -> str:
        if not match["free"]:
            return match[0]
        if match["range"] is not None and not match["range"].strip():
            raise SpecError(f"{text}: the range [] holds nothing: write [low..high], [low..high:log] or [a, b]")
        mark = f"?{len(ranges)}"
        ranges[mark] = (match["range"] or "").strip()
        return f"={mark!r}"

    written = _TEXT_OR_FREE.sub(marked, text)
    try:
        calls = tuple(text_of.calls(plugins.quote_files(written), "strategy"))
    except SpecError as error:
        if not ranges or not str(error).startswith("cannot read"):
            raise
        forms = "name=?, name=?[low..high], name=?[low..high:log] or name=?[a, b]"
        raise SpecError(f"cannot read this strategy: write {forms}; it was {text!r}") from None
    free: list[Free] = []
    for at, call in enumerate(calls):
        kind = _kind(call)
        fields, hints, bounds = text_of.parameters(kind), get_type_hints(kind), text_of.bounds(kind)
        defaults = {field.name: field.default for field in fields}
        for name, mark in call.parameters.items():
            if not isinstance(mark, str) or mark not in ranges:
                continue
            if name not in defaults:
                takes = f"it takes {', '.join(defaults) or 'none'}{text_of.nearest(name, defaults)}"
                raise SpecError(f"strategy {call.name!r} has no parameter {name!r}; {takes}")
            default = defaults[name] if isinstance(defaults[name], (bool, int, float, str)) else None
            free.append(Free(name, name, at, hints[name], default, bounds.get(name), ranges[mark]))
    if not free:
        names = [field.name for field in text_of.parameters(_kind(calls[0]))]
        takes = f" ({calls[0].name} takes {', '.join(names)})" if names else ""
        raise SpecError(f"nothing is to be found in {text!r}: write name=? for each parameter to search{takes}")
    # Each has a unique name: its own, with its stage's, or with its stage's number.
    stages = ((each, ("", f"{calls[each.stage].name}.", f"{each.stage + 1}.")) for each in free)
    options = [[stage + each.parameter for stage in prefixes] for each, prefixes in stages]
    times = Counter(chain.from_iterable(options))
    unique = [next(name for name in names if times[name] == 1) for names in options]
    named = (replace(each, name=name) for each, name in zip(free, unique, strict=True))
    return SearchedStrategy(" ".join(text.split()), calls, tuple(named))


def _kind(call: text_of.SpecCall) -> type[Any]:
    """Return the class of a stage. An unknown stage raises the SpecError that a run would."""
    if plugins.is_file(call.name):
        return plugins.load(call.name)
    kinds = strategies()
    if call.name not in kinds:
        parse(_text(call, call.parameters))
        raise SpecError(f"strategy {call.name!r} has no parameters to search")
    return kinds[call.name]


@dataclass(frozen=True)
class SearchSpace:
    """The ranges of all free parameters, and the origin of each range."""

    ranges: Mapping[str, Range]
    why: Mapping[str, str]
    beyond: Mapping[str, tuple[float, ...]]
    """The ends of each range past which the strategy takes more: better settings may lie beyond."""

    def size(self) -> int | None:
        """Return the number of settings; None = too many to count."""
        values = [range_.values() for range_ in self.ranges.values()]
        return None if None in values else math.prod(len(each or ()) for each in values)

    def all(self) -> Iterator[Values]:
        """Yield every setting of a space that has a size."""
        for values in product(*(range_.values() or () for range_ in self.ranges.values())):
            yield dict(zip(self.ranges, values, strict=True))


def space(strategy: SearchedStrategy, longest: Mapping[str, int]) -> SearchSpace:
    """Return the search space; `longest` has the longest conversation by OF_LENGTH. Raises SpecError."""
    ranges, why, beyond = dict[str, Range](), dict[str, str](), dict[str, tuple[float, ...]]()
    for free in strategy.free:
        range_, why[free.name] = (_given(free), "given") if free.given else _derived(free, longest)
        ranges[free.name], beyond[free.name] = range_, ()
        # There is no more than all of the longest conversation.
        if isinstance(range_, Numbers) and (free.given or free.parameter not in OF_LENGTH):
            past = [(range_.low, range_.low / 2), (range_.high, range_.high * 2)]
            more = [(end, round(value) if range_.whole else value) for end, value in past]
            beyond[free.name] = tuple(end for end, value in more if value != end and free.takes(value))
    return SearchSpace(ranges, why, beyond)


def _given(free: Free) -> Range:
    """Parse a range that the user gives, as the parameter takes it: whole numbers stand for fractions too."""
    what = f"{free.name}=?[{free.given[:60]}]"
    plain, _, scale = free.given.partition(":") if ".." in free.given else (free.given, "", "")
    low, dots, high = plain.partition("..")
    try:
        # With its comma one value is a tuple as well, and a comma within quotes or brackets separates nothing.
        values: Any = ast.literal_eval(f"({low},{high},)" if dots else f"({plain},)")
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"{what}: write low..high, low..high:log, or plain values (quote text: 'start')") from None
    if text_of.is_beyond(values):
        raise SpecError(f"{what}: no number may be beyond {text_of.LARGEST:,}")
    if not dots:
        # As keys 1, 1.0 and True are one: values of several types are left as they are.
        return Choices(tuple(dict.fromkeys(values)) if len({type(value) for value in values}) == 1 else values)
    kinds, whole = free.kinds, all(isinstance(end, int) for end in values)
    wrong = ""
    if len(values) != 2:
        wrong = "a range has two ends: write low..high"
    elif scale not in ("", "log"):
        wrong = f"{scale!r} is no scale: there is log, and none"
    elif not all(isinstance(end, (int, float)) and not isinstance(end, bool) and math.isfinite(end) for end in values):
        wrong = "both ends must be numbers"
    elif values[0] > values[1]:
        wrong = f"{values[0]} is more than {values[1]}"
    elif scale and values[0] <= 0:
        wrong = f"a logarithmic scale begins above 0, not at {values[0]}"
    elif not {int, float} & set(kinds):
        wrong = f"{free.name} is no number: give its values, ?[value, value]"
    elif float not in kinds and not whole:
        wrong = f"{free.name} takes whole numbers"
    elif free.bounds is not None and not all(map(free.takes, values)):
        wrong = f"{free.name} must be {text_of.limits(free.bounds)}"
    if wrong:
        raise SpecError(f"{what}: {wrong}")
    return Numbers(values[0], values[1], scale == "log", int in kinds and whole)


def _derived(free: Free, longest: Mapping[str, int]) -> tuple[Range, str]:
    """Return the range that follows from a parameter, and from what in it."""
    kinds, number = free.kinds, free.default
    if kinds == (bool,):
        return Choices((False, True)), "both"
    if get_origin(free.hint) is Literal:
        return Choices(get_args(free.hint)), "every value that there is"
    if isinstance(number, (int, float)) and number > 0 and {int, float} & set(kinds):
        whole = int in kinds
        if float in kinds and number <= 1 and not free.takes(1 + NEAR_END) and not free.takes(-NEAR_END):
            low, high = 0.0 if free.takes(0.0) else NEAR_END, 1.0 if free.takes(1.0) else 1 - NEAR_END
            return Numbers(low, high, False, False), "a share"
        # By halves and doubles, as far as the parameter's bounds allow.
        smaller = takewhile(free.takes, (max(1, round(number / by)) if whole else number / by for by in AROUND))
        larger = takewhile(free.takes, (number * by for by in AROUND))
        low, high = [number, *smaller][-1], [number, *larger][-1]
        return Numbers(low, high, low < high, whole), f"around its default, {number}"
    if int in kinds and number is None and free.parameter in OF_LENGTH:
        most = longest[free.parameter]
        low = max(1, most // LONG)
        return Numbers(low, max(low, most), True, True), "up to the longest conversation"
    raise SpecError(
        f"no range of {free.name!r} follows from its type and default: give it, {free.parameter}=?[low..high] or "
        f"{free.parameter}=?[value, value]"
    )


BATCH = 4  # trials that are chosen at once, and may run side by side
RANDOM_FIRST = 8  # random trials of TPE before there is enough to learn from
AGAIN = 20  # how often a setting that was tried already is drawn again, by the sampler and then at random


class Trial(NamedTuple):
    """A setting that is to be tried, or was."""

    name: str  # the text of the strategy; where it rejects the setting, its values
    values: Values
    point: Point | None = None  # cost and quality; None = it is to be tried, or failed
    failed: str = ""


def check() -> None:
    """Raise MissingExtra if Optuna is not installed; else keep it from writing on standard error."""
    try:
        import optuna
    except ImportError:
        raise MissingExtra("optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def batch(
    strategy: SearchedStrategy, space: SearchSpace, before: Sequence[Trial], seed: int, trials: int
) -> list[Trial]:
    """Return the settings of the next batch, given all trials of the batches before it; empty = no more.

    `trials` is the length of the search. A space with no more settings than that is gone through as a whole.
    """
    tried, size = {trial.name for trial in before}, space.size()
    if size is not None and size <= trials:
        every = (_setting(strategy, values) for values in space.all())
        return list(islice((setting for setting in every if setting.name not in tried), BATCH))
    settings, defaults = list[Trial](), {free.name: free.default for free in strategy.free}
    if not before and all(space.ranges[name].holds(value) for name, value in defaults.items()):
        settings.append(_setting(strategy, defaults))
    finished = [_frozen(space, trial) for trial in before]
    while len(settings) < BATCH:
        known = tried | {setting.name for setting in settings}
        settings.append(_drawn(strategy, space, finished, f"{seed} {len(before) + len(settings)}", known))
    return settings


def _setting(strategy: SearchedStrategy, values: Values) -> Trial:
    """Return a setting that is to be tried, or one that has failed since the strategy rejects it."""
    try:
        return Trial(strategy.at(values), values)
    except SpecError as error:
        return Trial(", ".join(f"{name}={value!r}" for name, value in values.items()), values, failed=str(error))


def _drawn(
    strategy: SearchedStrategy, space: SearchSpace, finished: Sequence[FrozenTrial], seed: str, tried: set[str]
) -> Trial:
    """Return a setting that was not tried if one turns up, else one that was."""
    import optuna
    from optuna.samplers import BaseSampler, RandomSampler, TPESampler

    drawn = Trial("", {})
    # By the number of the trial and the attempt, not from one random state: that would be lost with the process.
    for attempt in range(2 * AGAIN):
        number = int.from_bytes(hashlib.sha256(f"{seed} {attempt}".encode()).digest()[:4])
        # A sampler that is sure of itself may draw one setting for ever. A study in memory is made anew from the trials
        # before: a stored sampler state would not survive a stop.
        # NSGA-II needs generations, and 24 to 40 trials are few: so TPE draws, and at last chance (decision 31).
        sampler: BaseSampler = RandomSampler(seed=number)
        if attempt < AGAIN:
            sampler = TPESampler(seed=number, multivariate=True, n_startup_trials=RANDOM_FIRST)
        study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
        study.add_trials(finished)
        params = study.ask(_distributions(space)).params
        values = {
            name: range_.rounded(params[name])
            if isinstance(range_, Numbers)
            else next(choice for choice in range_.of if repr(choice) == params[name])
            for name, range_ in space.ranges.items()
        }
        drawn = _setting(strategy, values)
        if drawn.name not in tried:
            break
    return drawn


def _distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return the space as Optuna's distributions. Choices are represented by their text."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions: dict[str, BaseDistribution] = {}
    for name, range_ in space.ranges.items():
        match range_:
            case Numbers(low, high, log, True):
                distributions[name] = IntDistribution(int(low), int(high), log=log)
            case Numbers(low, high, log, _):
                distributions[name] = FloatDistribution(low, high, log=log)
            case Choices(of):
                distributions[name] = CategoricalDistribution([repr(value) for value in of])
    return distributions


def _frozen(space: SearchSpace, trial: Trial) -> FrozenTrial:
    """Return a finished trial as Optuna has it."""
    from optuna.trial import TrialState, create_trial

    is_choice = {name: isinstance(range_, Choices) for name, range_ in space.ranges.items()}
    params = {name: repr(value) if is_choice[name] else value for name, value in trial.values.items()}
    state = TrialState.COMPLETE if trial.point else TrialState.FAIL
    values = list(trial.point) if trial.point else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_trial(state=state, values=values, params=params, distributions=_distributions(space))
