"""Search for settings on one part of the recordings, and measure the best of them on the other.

    ctxbench tune 'window(max_tokens=?)' standard

The conversations held out are measured once, at the end: neither their figures nor their lengths choose anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ctxbench.metrics.models import model_names
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import RunError, SpecError
from ctxbench.scenarios.model import Conversation, independent_units
from ctxbench.scenarios.source import Problems
from ctxbench.scenarios.spec import nearest
from ctxbench.strategies import plugins
from ctxbench.strategies.chain import packages, parse

from ..answers.tally import Tally
from ..engine.plan import RunInputs
from ..engine.workers import side_by_side
from ..folder.files import placed
from ..folder.store import alone, is_free, unwritable
from ..models import Settings
from .search import SampledSetting, Sampler, batch, check, name_of, trial
from .space import SearchedStrategy, SearchSpace, searched, written
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
    with_failed_calls,
)

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

TRAIN, HELD = "train", "held-out"
_RESULTS = ("tune.json", f"{TRAIN}.jsonl", f"{HELD}.jsonl", "frontier.svg", "frontier.png")


@contextmanager
def _entered(out: Path, overwrite: bool) -> Iterator[None]:
    """Lock a folder that is new, or that a search has written to. Raises RunError for any other."""
    if out.exists() and not (out / FIGURES).is_dir() and (not out.is_dir() or not is_free(out)):
        raise RunError(f"{out}: is not the folder of a search and not empty: name another with --out")
    try:
        (out / FIGURES).mkdir(parents=True, exist_ok=True)
        with alone(out):
            if overwrite:
                for file in (out / FIGURES).iterdir():
                    file.unlink()
                for name in _RESULTS:
                    (out / name).unlink(missing_ok=True)
            # What lacks replies of calls that failed is measured again, and so is all that was tried after it.
            for file in with_failed_calls(out):
                file.unlink()
            yield
            rmtree(out / "running", ignore_errors=True)
    except OSError as error:
        raise unwritable(out, error) from None


def keep(result: object, out: Path) -> None:
    """Write the result."""
    try:
        with placed(out / "tune.json") as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    except OSError as error:
        raise unwritable(out, error) from None


HELD_OUT = 0.5
"""Not the usual third or fifth: one to three parameters are hard to overfit, conversations to judge by are scarce."""


class Split(NamedTuple):
    """Conversations searched on and held out, each in the order in which they were read."""

    train: list[Conversation]
    held_out: list[Conversation]


def split(conversations: Sequence[Conversation], share: float = HELD_OUT, seed: int = 0) -> Split:
    """Hold a share of the independent units out. Raises RunError where that leaves nothing on one side.

    What depends on each other stands on one side: a session with its subagents, the languages of one generated
    conversation, and the same conversation under two names.
    """
    groups = _independent_groups(conversations)
    if len(groups) < 2:
        what = (
            "one conversation"
            if len(conversations) == 1
            else f"{len(conversations)} conversations that say the same, or are of one session"
        )
        raise RunError(
            f"{what}: none can be held out, and the best of many settings on the conversation that chose it says "
            "nothing of others: give more recordings"
        )
    # Apart by probes, so that both sides of the split have some to measure quality by.
    probed = {name: any(conversations[at].probes for at in group) for name, group in groups.items()}
    held: set[str] = set()
    for side in (True, False):
        order = sorted((name for name in groups if probed[name] == side), key=lambda name: _place(name, seed))
        held.update(order[: _size(len(order), share)])
    if not held:  # one of each
        held.add(min(groups, key=lambda name: (not probed[name], _place(name, seed))))
    out = {at for name in held for at in groups[name]}
    return Split(
        [conversation for at, conversation in enumerate(conversations) if at not in out],
        [conversations[at] for at in sorted(out)],
    )


def _independent_groups(conversations: Sequence[Conversation]) -> dict[str, list[int]]:
    """Return the indices of the conversations in groups that share neither unit nor content, each by a digest.

    The digest is of what they say, so it depends neither on their names nor on their order.
    """
    from scipy.cluster.hierarchy import DisjointSet

    units = independent_units({conversation.id: conversation.meta for conversation in conversations})
    digests = [_content_digest(conversation) for conversation in conversations]
    alike = DisjointSet([*(("unit", unit) for unit in units.values()), *(("content", digest) for digest in digests)])
    for conversation, digest in zip(conversations, digests, strict=True):
        alike.merge(("unit", units[conversation.id]), ("content", digest))
    groups: dict[str, list[int]] = {}
    for at, digest in enumerate(digests):
        # The least digest of a group names it, so the name depends on no order.
        name = min(inner for kind, inner in alike.subset(("content", digest)) if kind == "content")
        groups.setdefault(name, []).append(at)
    return groups


def _size(number: int, share: float) -> int:
    """Return how many of `number` to hold out: at least one, and not all, where there are two."""
    return 0 if number < 2 else min(max(1, round(number * share)), number - 1)


def _content_digest(conversation: Conversation) -> str:
    """Return a digest of the messages, whatever the conversation is called."""
    digest = hashlib.sha256()
    for message in conversation.messages:
        # With the length, as texts run on into each other: otherwise "ab", "c" and "a", "bc" would be the same.
        digest.update(f"{message.role} {len(message.text)} {message.text}".encode(errors="surrogatepass"))
        digest.update(msgspec.json.encode(message.calls))
    return digest.hexdigest()


def _place(digest: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {digest}".encode()).hexdigest()


WHOLE = "none"
"""The whole history, which nothing was chosen for, shown beside the chosen settings."""


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """A search: the strategy, recordings, ranges and length."""

    strategy: str
    inputs: RunInputs
    ranges: tuple[str, ...] = ()
    trials: int = 40
    sampler: Sampler = "tpe"
    seed: int = 0
    held_out: float = HELD_OUT
    cost: str = "claude-sonnet-5"
    quality: str = ""
    """One of QUALITIES; empty = the first that the recordings allow."""
    encoding: str = "o200k_base"


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    strategy: str
    space: SearchSpace
    cost: str
    quality: str
    why_quality: str
    train: int
    held_out: int
    """Number of conversations."""
    trials: int
    exhaustive: bool
    """Whether every setting was tried."""
    failed: tuple[tuple[str, str], ...]
    """Settings that have no figures, and why."""
    tried: tuple[tuple[str, TrialFigures], ...]
    """Every other setting, once, on the conversations searched on."""
    settings: tuple[Setting, ...]
    """The frontier of these and the whole history, the dearest first; then the defaults and the whole history."""
    at_ends: tuple[tuple[str, float, int], ...]
    """Parameters, ends of ranges past which the strategy takes more, and how many frontier settings are there."""
    worth: bool
    """Whether any setting is on that frontier. If not, the settings are the frontier without the whole history, which
    dominates all of them."""
    problems: Problems
    replies: tuple[Tally, ...] = ()
    """Replies of the models that settings name for themselves."""


Say = Callable[[int, int], None]
"""Called with the number of trials done, and of all trials."""


def tune(
    request: TuneRequest,
    out: Path,
    *,
    models: Settings = Settings(),  # noqa: B008
    jobs: int = 1,
    overwrite: bool = False,
    say: Say = lambda *_: None,
) -> Tuned:
    """Search, or resume a search. Raises a UserError for what cannot be searched.

    `models` says how to reach the models that settings name for themselves, and what they may cost.
    """
    check()
    search = searched(request.strategy)
    ranges = written(request.ranges, [free.name for free in search.free])
    if request.cost != TOKENS and Prices().tariff(request.cost) is None:
        close = nearest(request.cost, {**model_names(), TOKENS: None})
        remedy = "`ctxbench list prices` has the models, and `tokens` needs no price"
        raise RunError(f"the price of {request.cost} is not known{close} ({remedy})")
    problems = Problems()
    conversations = list(request.inputs.open(problems).conversations())
    if not conversations:
        first = f": {problems.errors[0]}" if problems.errors else ""
        raise RunError(f"no conversation could be read{first}")
    parts = split(conversations, request.held_out, request.seed)
    # From the conversations searched on alone: a length that is held out would choose as well.
    space = space_of(search, ranges, _longest(parts.train, request.encoding))
    with _entered(out, overwrite):
        for name, part in ((TRAIN, parts.train), (HELD, parts.held_out)):
            with placed(out / f"{name}.jsonl") as draft:
                draft.write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in part))
        models = msgspec.structs.replace(models, run=str(out))
        return _Search(request, search, space, parts, problems, out, models, jobs, say).run()


@dataclass(frozen=True)
class _Search:
    """A running search."""

    request: TuneRequest
    strategy: SearchedStrategy
    space: SearchSpace
    parts: Split
    problems: Problems
    out: Path
    models: Settings
    jobs: int
    say: Say

    def run(self) -> Tuned:
        whole = self._task(WHOLE, TRAIN, self._qualities), self._task(WHOLE, HELD, self._qualities)
        on_train, on_held = self._tried(whole)
        quality, why = _quality(on_train, on_held, self.request.quality)
        failed, values_by_setting = self._search(quality)
        if not values_by_setting:
            first = next((f"{name}: {why}" for name, why in failed.items()), "")
            raise RunError(f"no setting of {self.request.strategy} could be tried; the first: {first}")
        train = self._all(list(values_by_setting), TRAIN, quality)
        chosen, worth = self._chosen(train, quality)
        rows = self._measured(chosen, quality)
        held = self._all([setting.spec for setting in rows], HELD, quality)
        size = self.space.size()
        return Tuned(
            self.strategy.text,
            self.space,
            self.request.cost,
            quality,
            why,
            len(self.parts.train),
            len(self.parts.held_out),
            len(values_by_setting) + len(failed),
            size is not None and size <= self.request.trials,
            tuple(failed.items()),
            tuple((trial.spec, figures(trial, quality, self._units)) for trial in train),
            rows,
            tuple(self._at_ends([values_by_setting[setting] for setting in chosen])),
            worth,
            self.problems,
            tuple(tally for trial in (*train, *held) for tally in trial.replies),
        )

    def _chosen(self, train: Sequence[Tried], quality: str) -> tuple[list[str], bool]:
        """Return the frontier of all trials and the whole history, and True.

        If the whole history dominates every trial, return the frontier of the trials alone, and False.
        """
        tried = {trial.spec: trial for trial in train}
        whole = {WHOLE: self._all([WHOLE], TRAIN, quality)[0]}
        # A setting that costs more than the whole history and is no better is no choice.
        on_frontier = [setting for setting in settings(whole | tried, quality, self._units) if setting in tried]
        return on_frontier or settings(tried, quality, self._units), bool(on_frontier)

    def _at_ends(self, chosen: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float, int]]:
        """Yield the ends of ranges past which more of the frontier may lie."""
        for name, ends in self.space.beyond.items():
            for end in ends:
                if settings_at_end := sum(values[name] == end for values in chosen):
                    yield name, end, settings_at_end

    def _measured(self, chosen: Sequence[str], quality: str) -> tuple[Setting, ...]:
        """Measure the chosen settings, the defaults and the whole history on both sides of the split."""
        names = list(dict.fromkeys(setting for setting in (*chosen, self._default(), WHOLE) if setting))
        train, held = (self._all(names, part, quality) for part in (TRAIN, HELD))
        whole = held[names.index(WHOLE)]
        return tuple(
            Setting(
                spec,
                spec in chosen,
                spec == WHOLE,
                figures(before, quality, self._units),
                figures(after, quality, self._units),
                None if spec == WHOLE else against(after, whole, quality, self._units),
                after.lacking,
                after.calls,
                after.failed,
            )
            for spec, before, after in zip(names, train, held, strict=True)
        )

    @cached_property
    def _units(self) -> Mapping[str, str]:
        conversations = (*self.parts.train, *self.parts.held_out)
        return independent_units({conversation.id: conversation.meta for conversation in conversations})

    @property
    def _qualities(self) -> tuple[str, ...]:
        return (self.request.quality,) if self.request.quality else QUALITIES

    def _search(self, quality: str) -> tuple[dict[str, str], dict[str, Mapping[str, Any]]]:
        """Try settings. Return those that failed with the reasons, and the others with their values.

        A stopped search draws the same settings anew, and finds the figures of those that were finished.
        """
        trials: list[FrozenTrial] = []
        total = self.request.trials
        while len(trials) < total:
            self.say(len(trials), total)
            sampled = batch(self.strategy, self.space, trials, self.request.sampler, self.request.seed, total)
            if not sampled:
                break
            trials += self._batch(sampled[: total - len(trials)], quality)
        self.say(total, total)
        failed = {trial.user_attrs["setting"]: trial.user_attrs.get("failed", "") for trial in trials}
        return (
            {name: why for name, why in failed.items() if why},
            {trial.user_attrs["setting"]: trial.params for trial in trials if "failed" not in trial.user_attrs},
        )

    def _batch(self, batch: Sequence[SampledSetting], quality: str) -> Iterator[FrozenTrial]:
        """Try some settings, side by side if there are workers, and yield the trials in their order."""
        refused: dict[str, str] = {}
        names = [name_of(self.strategy, sampled.values) for sampled in batch]
        for name, sampled in zip(names, batch, strict=True):
            try:
                self.strategy.at(sampled.values)
            except SpecError as error:
                refused[name] = str(error)
        taken = self._all([name for name in names if name not in refused], TRAIN, quality)
        tried_by_setting = {tried.spec: tried for tried in taken}
        for name, sampled in zip(names, batch, strict=True):
            point, why = None, refused.get(name, "")
            if not why:
                tried = tried_by_setting[name]
                point = None if tried.failed else figures(tried, quality, self._units).point
                why = tried.failed or ("" if point else f"{quality} is undefined")
            yield trial(self.space, sampled, name, point, why)

    def _default(self) -> str:
        """Return the strategy at its defaults, or an empty text where there are none."""
        try:
            return self.strategy.at({})
        except SpecError:
            return ""

    def _all(self, specs: Sequence[str], part: str, quality: str) -> list[Tried]:
        return self._tried([self._task(spec, part, (quality,)) for spec in specs])

    def _task(self, spec: str, part: str, qualities: tuple[str, ...]) -> Task:
        request = self.request
        return Task(spec, part, str(self.out), request.cost, qualities, request.encoding, self.models, self._inputs)

    @cached_property
    def _inputs(self) -> str:
        """A digest of the recordings on both sides, and of the versions of what measures them."""
        files = {name: name for name in self.strategy.names() if plugins.is_file(name)}
        with suppress(SpecError):  # no defaults
            files |= packages(parse(self.strategy.at({})))
        digests = [conversation.digest() for part in self.parts for conversation in part]
        return hashlib.sha256(repr((digests, version("ctxbench"), files)).encode()).hexdigest()

    def _tried(self, tasks: Iterable[Task]) -> list[Tried]:
        tasks = list(tasks)
        todo = list(dict.fromkeys(task for task in tasks if stored(task) is None))
        if self.jobs > 1 and len(todo) > 1:
            side_by_side(try_packed, map(msgspec.msgpack.encode, todo), self.jobs, lambda _: None)
        return [tried(task) for task in tasks]


def _quality(train: Tried, held: Tried, named: str) -> tuple[str, str]:
    """Return the quality, and why: the first that the whole history has on both sides. Raises RunError if none is."""
    for part in (train, held):
        if part.failed:
            raise RunError(f"the whole history cannot be measured: {part.failed}")
    for least in (2, 1):  # one conversation has no interval
        for name in (named,) if named else QUALITIES:
            measurable = [sum(bottom > 0 for _, bottom in part.quality.get(name, [])) for part in (train, held)]
            if min(measurable) >= least:
                return name, f"{name} is there in {measurable[0]} and {measurable[1]} conversations"
    what = named or "answers, evidence of probes nor grounding"
    raise RunError(
        f"{'no ' if named else 'neither '}{what} can be measured on both sides of the split: quality is not known; "
        "give recordings with probes or tool calls, or another --seed"
    )


def _longest(conversations: Sequence[Conversation], encoding: str) -> dict[str, int]:
    counter = TokenCounter(encoding)
    return {
        "max_tokens": max(sum(map(counter.message, conversation.messages)) for conversation in conversations),
        "messages": max(len(conversation.messages) for conversation in conversations),
    }
