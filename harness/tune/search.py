"""Which setting is tried next: by Optuna, from what was tried before.

Trial k follows from the seed, k, and the trials of the batches before its own: a sampler is made anew for each. So a
search that was stopped anywhere goes on with the same trials, and any number of workers gives the same.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...scenarios.errors import MissingExtra, RunError, SpecError
from .space import Choices, Numbers, Range, SearchedStrategy, SearchSpace, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.study import Study
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


class SampledSetting(NamedTuple):
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
    asked: SearchedStrategy, space: SearchSpace, before: Sequence[FrozenTrial], sampler: Sampler, seed: int, trials: int
) -> list[SampledSetting]:
    """The settings of a whole batch, given all trials of the batches before, of a search of so many. Empty = no more.

    A space of no more settings than trials is gone through as a whole.
    """
    tried = {each.user_attrs["setting"] for each in before}
    size = space.size()
    if size is not None and size <= trials:
        return list(islice((SampledSetting(each) for each in space.all() if name_of(asked, each) not in tried), BATCH))
    made = [] if before else _defaults(space, asked)
    tried |= {name_of(asked, each.values) for each in made}
    with _quiet():
        while len(made) < BATCH:
            drawn = _drawn(asked, space, before, sampler, f"{seed} {len(before) + len(made)}", tried)
            tried.add(name_of(asked, drawn.values))
            made.append(drawn)
    return made


def name_of(asked: SearchedStrategy, values: Values) -> str:
    """The text of a setting; where the strategy does not take it, the values."""
    try:
        return asked.at(values)
    except SpecError:
        return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _defaults(space: SearchSpace, asked: SearchedStrategy) -> list[SampledSetting]:
    """The setting at which a search begins: the defaults, where all are in their ranges."""
    values = {each.name: each.default for each in asked.free}
    known = all(space.ranges[name].holds(value) for name, value in values.items())
    return [SampledSetting(values)] if known else []


def _drawn(
    asked: SearchedStrategy,
    space: SearchSpace,
    before: Sequence[FrozenTrial],
    sampler: Sampler,
    seed: str,
    tried: set[str],
) -> SampledSetting:
    """A setting that was not tried, if one is found; else one that was."""
    drawn = SampledSetting({})
    for attempt in range(2 * AGAIN):
        number = int.from_bytes(hashlib.sha256(f"{seed} {attempt}".encode()).digest()[:4])
        drawn = _asked_of(space, before, _SAMPLERS[sampler if attempt < AGAIN else "random"](number))
        if name_of(asked, drawn.values) not in tried:
            break
    return drawn


def _asked_of(space: SearchSpace, before: Iterable[FrozenTrial], sampler: BaseSampler) -> SampledSetting:
    import optuna

    study = optuna.create_study(directions=list(DIRECTIONS), sampler=sampler)
    study.add_trials(before)
    study.ask(dict(distributions(space)))
    found = study.get_trials(deepcopy=False)[-1]
    return SampledSetting(
        {name: _value(space.ranges[name], found.params[name]) for name in space.ranges}, found.system_attrs
    )


def _value(range_: Range, found: Any) -> object:
    if isinstance(range_, Choices):
        return next(each for each in range_.of if repr(each) == found)
    return range_.rounded(found)


def distributions(space: SearchSpace) -> Iterator[tuple[str, BaseDistribution]]:
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


def as_params(space: SearchSpace, values: Values) -> dict[str, Any]:
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


FILE, NAME = "study.db", "tune"


class Trials:
    """All that were finished, in order."""

    def __init__(self, folder: Path, space: SearchSpace) -> None:
        self._space, self._file = space, folder / FILE
        self._study = self._opened()

    def _opened(self) -> Study:
        import optuna

        usual = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            return optuna.create_study(
                storage=f"sqlite:///{self._file}", study_name=NAME, directions=list(DIRECTIONS), load_if_exists=True
            )
        except Exception as error:  # SQLAlchemy's, Alembic's and Optuna's own
            raise RunError(f"{self._file}: cannot be used ({type(error).__name__}): --overwrite begins anew") from None
        finally:
            optuna.logging.set_verbosity(usual)

    def all(self) -> list[FrozenTrial]:
        """Every trial, in order."""
        return self._study.get_trials(deepcopy=False)

    def add(self, drawn: SampledSetting, setting: str, figures: tuple[float, float] | None, failed: str) -> None:
        """Keep a trial: its cost and quality, or why there are none."""
        from optuna.trial import TrialState, create_trial

        about: dict[str, Any] = {"setting": setting} | ({"failed": failed} if failed else {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = create_trial(
                state=TrialState.FAIL if figures is None else TrialState.COMPLETE,
                values=None if figures is None else list(figures),
                params=as_params(self._space, drawn.values),
                distributions=dict(distributions(self._space)),
                user_attrs=about,
                system_attrs=dict(drawn.noted),
            )
            try:
                self._study.add_trial(trial)
            except Exception as error:  # a full disk comes as SQLAlchemy's own
                raise RunError(f"{self._file}: cannot be written ({type(error).__name__})") from None

    def close(self) -> None:
        """Let go of the file."""
        storage: Any = self._study._storage
        getattr(storage, "_backend", storage).engine.dispose()
