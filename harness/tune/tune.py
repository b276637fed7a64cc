"""Search for settings on one part of the recordings, and measure the best of them on the other.

    ctxbench tune 'window(max_tokens=?)' standard

The conversations held out are measured once, at the end: neither their figures nor their lengths choose anything. A
search that was stopped anywhere resumes with the same trials, and any number of workers gives the same result.

Runs are made under `running/` and removed. The user's cache has the sums that cost and quality are made of.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import msgspec
import numpy as np

from ctxbench.metrics.figures import fixed
from ctxbench.metrics.frontier import Point, frontier
from ctxbench.metrics.models import model_names, prices_version
from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION, Floats, Interval, by_unit, mean_of, over_units
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError, SpecError
from ctxbench.scenarios.model import Conversation, Message, independent_units
from ctxbench.scenarios.source import Problems
from ctxbench.scenarios.spec import nearest
from ctxbench.strategies.chain import parse

from .. import cache
from ..answers.tally import Tally, run_tallies
from ..compare.figures import measured
from ..engine.plan import Plan, RunInputs, execute, written_to
from ..engine.workers import side_by_side
from ..folder.run import Run, load
from ..folder.store import alone, is_free, unwritable
from ..models import Settings
from .space import SearchedStrategy, SearchSpace, Trial, batch, check, searched
from .space import space as space_of

TOKENS = "tokens"  # the cost where no model is billed: tokens sent, including those of the strategy's own model calls
QUALITIES = ("answer_quality", "context_recall", "grounding")
"""Measures of quality: the first of these that the recordings allow is taken."""


class Task(msgspec.Struct, frozen=True):
    """A setting, and the recordings to measure it on."""

    spec: str
    part: str  # the part of the recordings: `train` or `held-out`
    folder: str
    cost: str  # the model to bill, or TOKENS
    qualities: tuple[str, ...]
    models: Settings  # how to reach the models that the setting names
    inputs: str  # a digest of the recordings and of what measures them

    @property
    def key(self) -> bytes:
        """Key of the figures in the user's cache; empty where they are not kept."""
        models = self.models.summariser, self.models.embedder, str(self.models.path())
        of = cache.of_strategy(parse(self.spec))
        return cache.key(self.inputs, self.cost, *self.qualities, *models, of) if of else b""


class Tried(msgspec.Struct, frozen=True):
    """The figures of a setting."""

    spec: str
    conversations: list[str]
    cost: list[float] = []  # cost of each conversation
    quality: dict[str, list[tuple[float, float]]] = {}
    """Contribution of each conversation to the two sums of each measure (`metrics/value.py`)."""
    lacking: int = 0  # calls that have neither the newest message nor one written in its place
    calls: int = 0
    failed: str = ""  # why there are no figures: the strategy failed in a conversation
    replies: list[Tally] = []  # replies of the strategy's own models


def try_packed(packed: bytes) -> Tried:
    """Try a task that came as MessagePack, as workers receive it."""
    return tried(msgspec.msgpack.decode(packed, type=Task))


def tried(task: Task) -> Tried:
    """Return the figures of a setting, from the cache or measured now."""
    store, key, folder = cache.results(), task.key, Path(task.folder)
    if (known := store.get(key)) is not None:
        return msgspec.msgpack.decode(known, type=Tried)
    running = folder / "running" / f"{task.part}-{cache.key(task.spec).hex()}"
    rmtree(running, ignore_errors=True)
    plan = Plan(
        RunInputs((str(folder / f"{task.part}.jsonl"),), "ctxbench"),
        (task.spec,),
        models=task.models,
        probes=bool({"answer_quality", "context_recall"} & set(task.qualities)),
        answers="answer_quality" in task.qualities,
    )
    # Only its sums are kept: the run of a trial is many times as large as its figures.
    try:
        execute(plan, running)
        run = load(running)
        measured_now = msgspec.structs.replace(_figures(task, run), replies=run_tallies(run))
    finally:
        rmtree(running, ignore_errors=True)
    # What failed, or lacks replies of calls that failed, is measured again, and so is all that is tried after it.
    if not (measured_now.failed or any(tally.failed for tally in measured_now.replies)):
        store.put({key: msgspec.msgpack.encode(measured_now)})
    return measured_now


def _figures(task: Task, run: Run) -> Tried:
    run_figures = measured(run, () if task.cost == TOKENS else (task.cost,), prices=BUNDLED)
    conversations, sums = list(run_figures.digests), run_figures.sums[task.spec]
    # Figures over fewer conversations would not compare with those of other settings.
    if failed := run_figures.failed.get(task.spec, {}):
        name, why = next(iter(failed.items()))
        more = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Tried(task.spec, conversations, failed=f"in {name}{more}: {why}")
    tokens = sums["tokens_sent"][:, 0] + sums["own_tokens"][:, 0]
    cost = (tokens if task.cost == TOKENS else sums[f"cost({task.cost})"][:, 0]).tolist()
    if any(map(math.isnan, cost)):
        why = "the price of a model that it calls is not known: --model tokens needs none"
        return Tried(task.spec, conversations, failed=why)
    quality = {name: sums[name].tolist() for name in task.qualities if name in sums}
    lacking, calls = int(sums["without_newest"][:, 0].sum()), int(sums["steps"][:, 0].sum())
    return Tried(task.spec, conversations, cost, quality, lacking, calls)


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """Cost and quality of a setting on some conversations."""

    cost: Interval | Missing  # mean cost of a conversation
    quality: Interval | Missing
    conversations: int = 0  # conversations in which the quality can be measured

    @property
    def point(self) -> Point | None:
        """Cost and quality, if both are known."""
        if isinstance(self.cost, Missing) or isinstance(self.quality, Missing):
            return None
        return Point(self.cost.mean, self.quality.mean)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting on both sides of the split."""

    spec: str
    chosen: bool  # whether it is on the frontier of the conversations searched on
    whole: bool  # whether it is the whole history, which nothing was chosen for
    train: TrialFigures
    held_out: TrialFigures
    against: BaselineComparison | None = None
    """The held-out figures against those of the whole history; None if it is that itself, or failed."""
    lacking: int = 0  # held-out calls that lack the newest message
    calls: int = 0
    failed: str = ""  # why it has no held-out figures


class BaselineComparison(NamedTuple):
    """The difference of a setting from the whole history, in pairs of conversations."""

    cost: Difference  # relative: −0.6 = 60 % cheaper
    quality: Difference


def figures(tried: Tried, quality: str, units: Mapping[str, str]) -> TrialFigures:
    """Return the figures of one setting. `units` has the independent unit of each conversation."""
    if tried.failed:
        none = Missing("failed", tried.failed)
        return TrialFigures(none, none)
    unit_of = np.array([units.get(name, name) for name in tried.conversations], object)
    cost, sums = _sums(tried, quality)
    has_any = sums[:, 1] > 0
    found: Interval | Missing = Missing("undefined", "no conversation has anything to measure it by")
    if has_any.any():
        found = over_units(by_unit(sums[has_any], unit_of[has_any].tolist()), mean_of, 0.0, 1.0)
    if isinstance(found, Interval) and found.mean == fixed(quality, tried.spec):
        found = Interval(found.mean, BY_CONSTRUCTION, BY_CONSTRUCTION)
    return TrialFigures(over_units(by_unit(cost, unit_of.tolist()), mean_of, 0.0), found, int(has_any.sum()))


def against(tried: Tried, whole: Tried, quality: str, units: Mapping[str, str]) -> BaselineComparison | None:
    """Return the difference of a setting from the whole history, or None if the setting failed."""
    if tried.failed:
        return None
    (before, base), (after, ours) = (_sums(side, quality) for side in (whole, tried))
    unit_of = [units.get(name, name) for name in whole.conversations]
    dearer = difference(Pairs("total", before, after, unit_of), relative=True)
    return BaselineComparison(dearer, difference(Pairs("ratio", base, ours, unit_of)))


def _sums(tried: Tried, quality: str) -> tuple[Floats, Floats]:
    """Return both sums of the cost and of the quality of each conversation (a row)."""
    nothing = [(0.0, 0.0)] * len(tried.cost)
    return np.column_stack([tried.cost, np.ones(len(tried.cost))]), np.array(tried.quality.get(quality, nothing), float)


def settings(tried: Mapping[str, Tried], quality: str, units: Mapping[str, str]) -> list[str]:
    """Return the settings that nothing dominates, the dearest first; of settings with the same figures the first."""
    points: dict[Point, str] = {}
    for spec, figures_of_setting in tried.items():
        if (point := figures(figures_of_setting, quality, units).point) is not None:
            points.setdefault(point, spec)
    return frontier({spec: point for point, spec in points.items()})


TRAIN, HELD = "train", "held-out"
WHOLE = "none"  # the whole history, which nothing was chosen for, shown beside the chosen settings


@contextmanager
def _entered(out: Path) -> Iterator[None]:
    """Lock a folder that is new, or that a search has written to. Raises RunError for any other."""
    if out.exists() and not (out / f"{TRAIN}.jsonl").is_file() and (not out.is_dir() or not is_free(out)):
        raise RunError(f"{out}: is not the folder of a search and not empty: name another with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with alone(out):
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

    def said(message: Message) -> bytes:
        # With the length, as texts run on into each other: otherwise "ab", "c" and "a", "bc" would be the same.
        text = f"{message.role} {len(message.text)} {message.text}".encode(errors="surrogatepass")
        return text + msgspec.json.encode(message.calls)

    texts = (b"".join(map(said, conversation.messages)) for conversation in conversations)
    digests = [hashlib.sha256(text).hexdigest() for text in texts]
    alike = DisjointSet([*(("unit", unit) for unit in units.values()), *(("content", name) for name in digests)])
    for conversation, name in zip(conversations, digests, strict=True):
        alike.merge(("unit", units[conversation.id]), ("content", name))
    groups = defaultdict[str, list[int]](list)
    for at, name in enumerate(digests):
        # The least digest of a group names it, so the name depends on no order.
        groups[min(other for kind, other in alike.subset(("content", name)) if kind == "content")].append(at)
    return groups


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
        _ = self.space  # its errors come before anything is written
        with _entered(self.out):
            for name, part in zip((TRAIN, HELD), self.parts, strict=True):
                written_to(self.out / f"{name}.jsonl", part)
            return self._result()

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

    def _result(self) -> Tuned:
        space, size, wanted = self.space, self.space.size(), (self.quality,) if self.quality else QUALITIES
        whole = [self._tried([WHOLE], part, wanted)[0] for part in (TRAIN, HELD)]
        (quality, why), units = _quality(whole, self.quality), self._units
        trials = self._trials(quality)
        failed = {trial.name: trial.failed for trial in trials if trial.failed}
        values_by_setting = {trial.name: trial.values for trial in trials if not trial.failed}
        if not values_by_setting:
            first = next((f"{name}: {why}" for name, why in failed.items()), "")
            raise RunError(f"no setting of {self.strategy} could be tried; the first: {first}")
        train = self._tried(list(values_by_setting), TRAIN, (quality,))
        tried_by_setting = {tried.spec: tried for tried in train}
        # A setting that costs more than the whole history and is no better is no choice.
        with_whole = {WHOLE: whole[0]} | tried_by_setting
        worth = [setting for setting in settings(with_whole, quality, units) if setting in tried_by_setting]
        chosen = worth or settings(tried_by_setting, quality, units)
        at_ends = [
            (name, end, sum(values_by_setting[setting][name] == end for setting in chosen))
            for name, ends in space.beyond.items()
            for end in ends
        ]
        names = dict.fromkeys(chosen)
        with suppress(SpecError):  # no defaults
            names |= {self.searched.at({}): None}
        sides = [[*self._tried([*names], part, (quality,)), of] for part, of in zip((TRAIN, HELD), whole, strict=True)]
        rows = (
            Setting(
                spec=spec,
                chosen=spec in chosen,
                whole=spec == WHOLE,
                train=figures(before, quality, units),
                held_out=figures(after, quality, units),
                against=None if spec == WHOLE else against(after, whole[1], quality, units),
                lacking=after.lacking,
                calls=after.calls,
                failed=after.failed,
            )
            for spec, before, after in zip([*names, WHOLE], *sides, strict=True)
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
            tried=tuple((tried.spec, figures(tried, quality, units)) for tried in train),
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
        """Return the figures of settings on a part of the recordings: those of the cache, or measured now."""
        models, inputs = msgspec.structs.replace(self.models, run=str(self.out)), self._inputs[part]
        tasks = {spec: Task(spec, part, str(self.out), self.cost, qualities, models, inputs) for spec in specs}
        new = [task for task in tasks.values() if task not in self._known]
        apart = [task for task in new if self.jobs > 1 and cache.results().get(task.key) is None]
        if len(apart) > 1:
            packed = map(msgspec.msgpack.encode, apart)
            side_by_side(try_packed, packed, self.jobs, lambda by: self._known.update({tasks[by.spec]: by}))
        self._known.update({task: tried(task) for task in new if task not in self._known})
        return [self._known[tasks[spec]] for spec in specs]

    @cached_property
    def _known(self) -> dict[Task, Tried]:
        """The settings that this search has tried."""
        return {}

    @cached_property
    def _inputs(self) -> dict[str, str]:
        """Digests of the recordings on each side, with the versions of what measures them."""
        sides = zip((TRAIN, HELD), self.parts, strict=True)
        return {name: cache.basis(prices_version(), *(said.digest() for said in part)) for name, part in sides}


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
