"""Choose the next settings to try: by Optuna, from the trials before.

Trial k follows from the seed, k, and the trials of the batches before its own: a sampler is created anew for each. So a
search that was stopped anywhere resumes with the same trials, and any number of workers gives the same result.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ctxbench.metrics.frontier import Point
from ctxbench.scenarios.errors import MissingExtra, SpecError

from .space import Choices, Numbers, SearchedStrategy, SearchSpace, Values

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial


BATCH = 4
"""Trials that are chosen at once, and may run side by side."""
RANDOM_FIRST = 8
"""Random trials of TPE before there is enough to learn from."""
AGAIN = 20
"""How often a setting that was tried already is drawn again, by the sampler and then at random."""


class Trial(NamedTuple):
    """A setting that is to be tried, or was."""

    name: str
    """The text of the strategy; where it rejects the setting, its values."""
    values: Values
    point: Point | None = None
    """Cost and quality; None = it is to be tried, or failed."""
    failed: str = ""
    """Why it failed."""


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
        every = (Trial(name_of(strategy, values), values) for values in space.all())
        return list(islice((setting for setting in every if setting.name not in tried), BATCH))
    settings, defaults = list[Trial](), {free.name: free.default for free in strategy.free}
    if not before and all(space.ranges[name].holds(value) for name, value in defaults.items()):
        settings.append(Trial(name_of(strategy, defaults), defaults))
    finished = [_frozen(space, trial) for trial in before]
    while len(settings) < BATCH:
        known = tried | {setting.name for setting in settings}
        settings.append(_drawn(strategy, space, finished, f"{seed} {len(before) + len(settings)}", known))
    return settings


def name_of(strategy: SearchedStrategy, values: Values) -> str:
    """Return the text of a setting; where the strategy rejects it, its values."""
    try:
        return strategy.at(values)
    except SpecError:
        return ", ".join(f"{name}={value!r}" for name, value in values.items())


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
        drawn = Trial(name_of(strategy, values), values)
        if drawn.name not in tried:
            break
    return drawn


def _distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return the space as Optuna's distributions. Choices are represented by their text."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions = dict[str, BaseDistribution]()
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
    state, values = (TrialState.COMPLETE, list(trial.point)) if trial.point else (TrialState.FAIL, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_trial(state=state, values=values, params=params, distributions=_distributions(space))
