"""Search for settings on one part of the recordings, and measure the best of them on the other.

    ctxbench tune 'window(max_tokens=?)' standard

The conversations held out are measured once, at the end: neither their figures nor their lengths choose anything.

Optuna chooses the next settings. Trial k follows from the seed, k, and the trials of the batches before its own, as a
sampler is created anew for each: a search that was stopped anywhere resumes with the same trials, and any number of
workers gives the same result.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ctxbench.metrics.frontier import Point
from ctxbench.metrics.models import model_names
from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import MissingExtra, RunError, SpecError
from ctxbench.scenarios.model import Conversation, independent_units
from ctxbench.scenarios.source import Problems
from ctxbench.scenarios.spec import nearest
from ctxbench.strategies import plugins
from ctxbench.strategies.chain import packages, parse

from ..answers.tally import Tally
from ..engine.plan import RunInputs, written_to
from ..engine.workers import side_by_side
from ..folder.store import alone, is_free, unwritable
from ..models import Settings
from .space import Choices, Numbers, SearchedStrategy, SearchSpace, Values, searched
from .space import space as space_of
from .trial import (
    FIGURES,
    QUALITIES,
    TOKENS,
    Setting,
    Task,
    TrialFigures,
    Tried,
    against,
    figures,
    settings,
    stored,
    tried,
    try_packed,
)

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

TRAIN, HELD = "train", "held-out"
WHOLE = "none"  # the whole history, which nothing was chosen for, shown beside the chosen settings


@contextmanager
def _entered(out: Path) -> Iterator[None]:
    """Lock a folder that is new, or that a search has written to. Raises RunError for any other."""
    if out.exists() and not (out / FIGURES).is_dir() and (not out.is_dir() or not is_free(out)):
        raise RunError(f"{out}: is not the folder of a search and not empty: name another with --out")
    try:
        (out / FIGURES).mkdir(parents=True, exist_ok=True)
        with alone(out):
            # What lacks replies of calls that failed is measured again, and so is all that was tried after it.
            for file in sorted((out / FIGURES).glob("*.json")):
                if (known := stored(file)) and any(tally.failed for tally in known.replies):
                    file.unlink()
            yield
            rmtree(out / "running", ignore_errors=True)
    except OSError as error:
        raise unwritable(out, error) from None


HELD_OUT = 0.5
"""Not the usual third or fifth: one to three parameters are hard to overfit, conversations to judge by are scarce."""


class Split(NamedTuple):
    """Conversations searched on and held out, each in the order in which they were read."""

    train: list[Conversation]
    held_out: list[Conversation]


def split(conversations: Sequence[Conversation], seed: int = 0) -> Split:
    """Hold half of the independent units out. Raises RunError where that leaves nothing on one side.

    What depends on each other stands on one side: a session with its subagents, the languages of one generated
    conversation, and the same conversation under two names.
    """
    groups = _independent_groups(conversations)
    if len(groups) < 2:
        alike = f"{len(conversations)} conversations that say the same, or are of one session"
        raise RunError(
            f"{'one conversation' if len(conversations) == 1 else alike}: none can be held out, and the best of many "
            "settings on the conversation that chose it says nothing of others: give more recordings"
        )

    def place(name: str) -> str:
        return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()

    # Apart by probes, so that both sides of the split have some to measure quality by.
    probed = {name: any(conversations[at].probes for at in group) for name, group in groups.items()}
    held = set[str]()
    for side in (True, False):
        order = sorted((name for name in groups if probed[name] == side), key=place)
        held.update(order[: round(len(order) * HELD_OUT)])
    if not held:  # one of each
        held.add(min(groups, key=lambda name: (not probed[name], place(name))))
    out = {at for name in held for at in groups[name]}
    parts = ([conversation for at, conversation in enumerate(conversations) if (at in out) == side] for side in (0, 1))
    return Split(*parts)


def _independent_groups(conversations: Sequence[Conversation]) -> dict[str, list[int]]:
    """Return the conversations, by index, in groups that share unit or content, by a digest of what the group says."""
    from scipy.cluster.hierarchy import DisjointSet

    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    digests = []
    for conversation in conversations:
        digest = hashlib.sha256()
        for message in conversation.messages:
            # With the length, as texts run on into each other: otherwise "ab", "c" and "a", "bc" would be the same.
            digest.update(f"{message.role} {len(message.text)} {message.text}".encode(errors="surrogatepass"))
            digest.update(msgspec.json.encode(message.calls))
        digests.append(digest.hexdigest())
    alike = DisjointSet([*(("unit", unit) for unit in units.values()), *(("content", name) for name in digests)])
    for conversation, name in zip(conversations, digests, strict=True):
        alike.merge(("unit", units[conversation.id]), ("content", name))
    groups = defaultdict[str, list[int]](list)
    for at, name in enumerate(digests):
        # The least digest of a group names it, so the name depends on no order.
        groups[min(other for kind, other in alike.subset(("content", name)) if kind == "content")].append(at)
    return groups


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


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    strategy: str
    space: SearchSpace
    cost: str
    quality: str
    why_quality: str
    train: int  # number of conversations
    held_out: int
    trials: int
    exhaustive: bool  # whether every setting was tried
    failed: tuple[tuple[str, str], ...]  # settings that have no figures, and why
    tried: tuple[tuple[str, TrialFigures], ...]  # every other setting, once, on the conversations searched on
    settings: tuple[Setting, ...]
    """The frontier of these and the whole history, the dearest first; then the defaults and the whole history."""
    at_ends: tuple[tuple[str, float, int], ...]
    """Parameters, ends of ranges past which the strategy takes more, and how many frontier settings are there."""
    worth: bool
    """Whether any setting is on that frontier. If not, the settings are the frontier without the whole history, which
    dominates all of them."""
    problems: Problems
    replies: tuple[Tally, ...] = ()  # replies of the models that settings name for themselves


@dataclass(frozen=True)
class Search:
    """A search: the strategy, recordings and length."""

    strategy: str
    inputs: RunInputs
    out: Path
    trials: int = 40
    seed: int = 0
    cost: str = "claude-sonnet-5"
    quality: str = ""  # one of QUALITIES; empty = the first that the recordings allow
    models: Settings = Settings()  # noqa: RUF009
    """How to reach the models that settings name for themselves, and what they may cost."""
    jobs: int = 1
    done: Callable[[int], None] = lambda _: None  # called with the number of trials that are new
    problems: Problems = field(default_factory=Problems)

    def run(self) -> Tuned:
        """Search, or resume a search. Raises a UserError for what cannot be searched."""
        check()
        space = self.space
        with _entered(self.out):
            for name, part in zip((TRAIN, HELD), self.parts, strict=True):
                written_to(self.out / f"{name}.jsonl", part)
            return self._result(space, space.size())

    @cached_property
    def searched(self) -> SearchedStrategy:
        """The strategy and its free parameters."""
        return searched(self.strategy)

    @cached_property
    def parts(self) -> Split:
        """The recordings, divided."""
        return split(self.inputs.conversations(self.problems), self.seed)

    @cached_property
    def space(self) -> SearchSpace:
        """The ranges of the free parameters, by the lengths of the conversations searched on alone."""
        strategy = self.searched
        if self.cost != TOKENS and BUNDLED.tariff(self.cost) is None:
            close = nearest(self.cost, {**model_names(), TOKENS: None})
            remedy = "`ctxbench list prices` has the models, and `tokens` needs no price"
            raise RunError(f"the price of {self.cost} is not known{close} ({remedy})")
        counter, train = TokenCounter(), self.parts.train
        # A length that is held out would choose as well.
        tokens = max(sum(map(counter.message, conversation.messages)) for conversation in train)
        messages = max(len(conversation.messages) for conversation in train)
        return space_of(strategy, {"max_tokens": tokens, "messages": messages})

    def _result(self, space: SearchSpace, size: int | None) -> Tuned:
        wanted = (self.quality,) if self.quality else QUALITIES
        quality, why = _quality([self._tried([WHOLE], part, wanted)[0] for part in (TRAIN, HELD)], self.quality)
        trials = self._trials(quality)
        failed = {trial.name: trial.failed for trial in trials if trial.failed}
        values_by_setting = {trial.name: trial.values for trial in trials if not trial.failed}
        if not values_by_setting:
            first = next((f"{name}: {why}" for name, why in failed.items()), "")
            raise RunError(f"no setting of {self.strategy} could be tried; the first: {first}")
        train = self._tried(list(values_by_setting), TRAIN, (quality,))
        tried_by_setting = {tried.spec: tried for tried in train}
        # A setting that costs more than the whole history and is no better is no choice.
        with_whole = {WHOLE: self._tried([WHOLE], TRAIN, (quality,))[0]} | tried_by_setting
        worth = [setting for setting in settings(with_whole, quality, self._units) if setting in tried_by_setting]
        chosen = worth or settings(tried_by_setting, quality, self._units)
        at_ends = [
            (name, end, sum(values_by_setting[setting][name] == end for setting in chosen))
            for name, ends in space.beyond.items()
            for end in ends
        ]
        default = []
        with suppress(SpecError):  # no defaults
            default.append(self.searched.at({}))
        names = list(dict.fromkeys([*chosen, *default, WHOLE]))
        sides = [self._tried(names, part, (quality,)) for part in (TRAIN, HELD)]
        history, units = sides[1][names.index(WHOLE)], self._units
        rows = (
            Setting(
                spec=spec,
                chosen=spec in chosen,
                whole=spec == WHOLE,
                train=figures(before, quality, units),
                held_out=figures(after, quality, units),
                against=None if spec == WHOLE else against(after, history, quality, units),
                lacking=after.lacking,
                calls=after.calls,
                failed=after.failed,
            )
            for spec, before, after in zip(names, *sides, strict=True)
        )
        return Tuned(
            strategy=self.searched.text,
            space=space,
            cost=self.cost,
            quality=quality,
            why_quality=why,
            train=len(self.parts.train),
            held_out=len(self.parts.held_out),
            trials=len(values_by_setting) + len(failed),
            exhaustive=size is not None and size <= self.trials,
            failed=tuple(failed.items()),
            tried=tuple((tried.spec, figures(tried, quality, self._units)) for tried in train),
            settings=tuple(rows),
            at_ends=tuple(end for end in at_ends if end[2]),
            worth=bool(worth),
            problems=self.problems,
            replies=tuple(tally for tried in (*train, *sides[1]) for tally in tried.replies),
        )

    @cached_property
    def _units(self) -> Mapping[str, str]:
        return independent_units({conversation.id: conversation.meta for part in self.parts for conversation in part})

    def _trials(self, quality: str) -> list[Trial]:
        """Try settings. A stopped search draws the same ones again, and finds the figures of those it finished."""
        trials = list[Trial]()
        while len(trials) < self.trials:
            sampled = batch(self.searched, self.space, trials, self.seed, self.trials)[: self.trials - len(trials)]
            if not sampled:
                break
            tried = iter(self._tried([setting.name for setting in sampled if not setting.failed], TRAIN, (quality,)))
            for setting in sampled:
                if not setting.failed:
                    found = next(tried)
                    point = figures(found, quality, self._units).point
                    setting = setting._replace(
                        point=point, failed=found.failed or ("" if point else f"{quality} is undefined")
                    )
                trials.append(setting)
            self.done(len(sampled))
        return trials

    def _tried(self, specs: Sequence[str], part: str, qualities: tuple[str, ...]) -> list[Tried]:
        """Return the figures of settings on a part of the recordings: the stored ones, or measured now."""
        models = msgspec.structs.replace(self.models, run=str(self.out))
        tasks = [Task(spec, part, str(self.out), self.cost, qualities, models, self._inputs) for spec in specs]
        todo = list(dict.fromkeys(task for task in tasks if self.jobs > 1 and stored(task.file) is None))
        if len(todo) > 1:
            side_by_side(try_packed, map(msgspec.msgpack.encode, todo), self.jobs, lambda _: None)
        return [tried(task) for task in tasks]

    @cached_property
    def _inputs(self) -> str:
        """A digest of the recordings on both sides, and of the versions of what measures them."""
        files = {name: name for name in self.searched.names() if plugins.is_file(name)}
        with suppress(SpecError):  # no defaults
            files |= packages(parse(self.searched.at({})))
        digests = [conversation.digest() for part in self.parts for conversation in part]
        return hashlib.sha256(repr((digests, version("ctxbench"), files)).encode()).hexdigest()


def _quality(sides: Sequence[Tried], named: str) -> tuple[str, str]:
    """Return the quality, and why: the first that the whole history has on both sides. Raises RunError if none is."""
    for part in sides:
        if part.failed:
            raise RunError(f"the whole history cannot be measured: {part.failed}")
    for least in (2, 1):  # one conversation has no interval
        for name in (named,) if named else QUALITIES:
            measurable = [sum(bottom > 0 for _, bottom in part.quality.get(name, [])) for part in sides]
            if min(measurable) >= least:
                return name, f"{name} is there in {measurable[0]} and {measurable[1]} conversations"
    what = f"no {named}" if named else "neither answers, evidence of probes nor grounding"
    raise RunError(
        f"{what} can be measured on both sides of the split: quality is not known; give recordings with probes or tool "
        "calls, or another --seed"
    )
