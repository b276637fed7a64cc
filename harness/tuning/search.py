"""Which setting is tried next: by Optuna, from what was tried before.

Trial k follows from the seed, k, and the trials of the batches before its own: a sampler is made anew for each. So a
search that was stopped anywhere goes on with the same trials, and any number of workers gives the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...scenarios.errors import MissingExtra, SpecError
from .asked import Asked, Values
from .space import Choices, Numbers, Range, Space

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

Sampler = Literal["tpe", "nsga2", "random"]
BATCH = 4
"""Trials that are chosen at once, and may be made side by side."""
POPULATION = 12
"""Of NSGA-II: Optuna's 50 is more than most searches have trials."""
RANDOM_FIRST = 8
"""Of TPE: trials before there is enough to learn from."""
AGAIN = 20
"""How often a setting that was tried already is drawn again, by the sampler, and then at random."""
DIRECTIONS: tuple[Literal["minimize", "maximize"], ...] = ("minimize", "maximize")


class Drawn(NamedTuple):
    """A setting, and what the sampler wants to find with it again: NSGA-II its generation."""

    values: Values
    noted: Mapping[str, Any] = MappingProxyType({})


def check() -> None:
    """Raise MissingExtra if Optuna is not there."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtra("optuna", "tune") from None


def batch(
    asked: Asked, space: Space, before: Sequence[FrozenTrial], sampler: Sampler, seed: int, trials: int
) -> list[Drawn]:
    """The settings of a whole batch, given all trials of the batches before, of a search of so many. Empty = no more.

    A space of no more settings than trials is gone through as a whole.
    """
    tried = {each.user_attrs["setting"] for each in before}
    size = space.size()
    if size is not None and size <= trials:
        return list(islice((Drawn(each) for each in space.all() if name_of(asked, each) not in tried), BATCH))
    made = [] if before else _defaults(space, asked)
    tried |= {name_of(asked, each.values) for each in made}
    with _quiet():
        while len(made) < BATCH:
            drawn = _drawn(asked, space, before, sampler, f"{seed} {len(before) + len(made)}", tried)
            tried.add(name_of(asked, drawn.values))
            made.append(drawn)
    return made


def name_of(asked: Asked, values: Values) -> str:
    """The text of a setting; where the strategy does not take it, the values."""
    try:
        return asked.at(values)
    except SpecError:
        return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _defaults(space: Space, asked: Asked) -> list[Drawn]:
    """The setting at which a search begins: the defaults, where all are in their ranges."""
    values = {each.name: each.default for each in asked.free}
    known = all(space.ranges[name].holds(value) for name, value in values.items())
    return [Drawn(values)] if known else []


def _drawn(
    asked: Asked, space: Space, before: Sequence[FrozenTrial], sampler: Sampler, seed: str, tried: set[str]
) -> Drawn:
    """A setting that was not tried, if one is found; else one that was."""
    drawn = Drawn({})
    for attempt in range(2 * AGAIN):
        number = int.from_bytes(hashlib.sha256(f"{seed} {attempt}".encode()).digest()[:4])
        drawn = _asked_of(space, before, _SAMPLERS[sampler if attempt < AGAIN else "random"](number))
        if name_of(asked, drawn.values) not in tried:
            break
    return drawn


def _asked_of(space: Space, before: Iterable[FrozenTrial], sampler: BaseSampler) -> Drawn:
    import optuna

    study = optuna.create_study(directions=list(DIRECTIONS), sampler=sampler)
    study.add_trials(before)
    study.ask(dict(distributions(space)))
    found = study.get_trials(deepcopy=False)[-1]
    return Drawn({name: _value(space.ranges[name], found.params[name]) for name in space.ranges}, found.system_attrs)


def _value(range_: Range, found: Any) -> object:
    if isinstance(range_, Choices):
        return next(each for each in range_.of if repr(each) == found)
    return range_.rounded(found)


def distributions(space: Space) -> Iterator[tuple[str, BaseDistribution]]:
    """The space as Optuna has it. Choices go by how they are written."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    for name, each in space.ranges.items():
        match each:
            case Numbers(low, high, log, True):
                yield name, IntDistribution(int(low), int(high), log=log)
            case Numbers(low, high, log, _):
                yield name, FloatDistribution(low, high, log=log)
            case Choices(of):
                yield name, CategoricalDistribution([repr(value) for value in of])


def as_params(space: Space, values: Values) -> dict[str, Any]:
    """A setting as Optuna has it."""
    return {name: repr(value) if isinstance(space.ranges[name], Choices) else value for name, value in values.items()}


def _tpe(seed: int) -> BaseSampler:
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, multivariate=True, n_startup_trials=RANDOM_FIRST)


def _nsga2(seed: int) -> BaseSampler:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(seed=seed, population_size=POPULATION)


def _random(seed: int) -> BaseSampler:
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)


_SAMPLERS: dict[Sampler, Callable[[int], BaseSampler]] = {"tpe": _tpe, "nsga2": _nsga2, "random": _random}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's lines on standard error."""
    import optuna

    usual = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(usual)
