"""Choose the next settings to try: by Optuna, from the trials before.

Trial k follows from the seed, k, and the trials of the batches before its own: a sampler is created anew for each. So a
search that was stopped anywhere resumes with the same trials, and any number of workers gives the same result.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxbench.scenarios.errors import MissingExtra, SpecError

from .space import Choices, Numbers, SearchedStrategy, SearchSpace, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial


BATCH = 4
"""Trials that are chosen at once, and may run side by side."""
RANDOM_FIRST = 8
"""Random trials of TPE before there is enough to learn from."""
AGAIN = 20
"""How often a setting that was tried already is drawn again, by the sampler and then at random."""


class SampledSetting(NamedTuple):
    """A setting that is to be tried."""

    name: str
    """The text of the strategy; where it rejects the setting, its values."""
    values: Values


def check() -> None:
    """Raise MissingExtra if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtra("optuna", "tune") from None


def batch(
    strategy: SearchedStrategy,
    space: SearchSpace,
    before: Sequence[FrozenTrial],
    seed: int,
    trials: int,
) -> list[SampledSetting]:
    """Return the settings of the next batch, given all trials of the batches before it; empty = no more.

    `trials` is the length of the search. A space with no more settings than that is gone through as a whole.
    """
    tried, size = {trial.user_attrs["setting"] for trial in before}, space.size()
    if size is not None and size <= trials:
        every = (SampledSetting(name_of(strategy, values), values) for values in space.all())
        return list(islice((setting for setting in every if setting.name not in tried), BATCH))
    settings = []
    defaults = {free.name: free.default for free in strategy.free}
    if not before and all(space.ranges[name].holds(value) for name, value in defaults.items()):
        settings.append(SampledSetting(name_of(strategy, defaults), defaults))
    with _quiet():
        while len(settings) < BATCH:
            known = tried | {setting.name for setting in settings}
            settings.append(_drawn(strategy, space, before, f"{seed} {len(before) + len(settings)}", known))
    return settings


def name_of(strategy: SearchedStrategy, values: Values) -> str:
    """Return the text of a setting; where the strategy rejects it, its values."""
    try:
        return strategy.at(values)
    except SpecError:
        return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _drawn(
    strategy: SearchedStrategy, space: SearchSpace, before: Sequence[FrozenTrial], seed: str, tried: set[str]
) -> SampledSetting:
    """Return a setting that was not tried if one turns up, else one that was."""
    import optuna
    from optuna.samplers import BaseSampler, RandomSampler, TPESampler

    drawn = SampledSetting("", {})
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
        study.add_trials(before)
        study.ask(distributions(space))
        trial = study.get_trials(deepcopy=False)[-1]
        values = {name: _value(range_, trial.params[name]) for name, range_ in space.ranges.items()}
        drawn = SampledSetting(name_of(strategy, values), values)
        if drawn.name not in tried:
            break
    return drawn


def _value(range_: Numbers | Choices, sampled: Any) -> object:
    if isinstance(range_, Choices):
        return next(choice for choice in range_.of if repr(choice) == sampled)
    return range_.rounded(sampled)


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return the space as Optuna's distributions. Choices are represented by their text."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def distribution(range_: Numbers | Choices) -> BaseDistribution:
        match range_:
            case Numbers(low, high, log, True):
                return IntDistribution(int(low), int(high), log=log)
            case Numbers(low, high, log, _):
                return FloatDistribution(low, high, log=log)
            case Choices(of):
                return CategoricalDistribution([repr(value) for value in of])

    return {name: distribution(range_) for name, range_ in space.ranges.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's lines on standard error."""
    import optuna

    usual = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(usual)


def trial(space: SearchSpace, sampled: SampledSetting, point: tuple[float, float] | None, failed: str) -> FrozenTrial:
    """Return a finished trial: its cost and quality, or why there are none."""
    from optuna.trial import TrialState, create_trial

    ranges = space.ranges
    params = {
        name: repr(value) if isinstance(ranges[name], Choices) else value for name, value in sampled.values.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_trial(
            state=TrialState.FAIL if point is None else TrialState.COMPLETE,
            values=None if point is None else list(point),
            params=params,
            distributions=distributions(space),
            user_attrs={"setting": sampled.name} | ({"failed": failed} if failed else {}),
        )
