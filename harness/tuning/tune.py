"""A search: settings are tried on one part of the recordings, and the frontier of these is measured on the other.

    ctxbench tune 'window(max_tokens=?)' standard

The conversations held out are measured once, at the end: neither their figures nor their lengths choose anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ...metrics.models import model_map
from ...metrics.prices import Prices
from ...metrics.tokens import TokenCounter
from ...scenarios.errors import RunError, SpecError
from ...scenarios.model import Conversation
from ...scenarios.source import Problems
from ...scenarios.spec import nearest
from ...strategies import plugins
from ...strategies.chain import packages, parse
from ..engine import side_by_side
from ..inputs import Inputs
from .asked import Asked, asked
from .figures import Figures, Setting, against, figures, settings
from .folder import HELD, TRAIN, entered
from .ranges import space as space_of
from .search import BATCH, Drawn, Sampler, batch, check, name_of
from .space import Space, written
from .split import HELD_OUT, Split, split, write
from .trials import Trials
from .trying import QUALITIES, TOKENS, Task, Tried, kept, tried, try_packed

WHOLE = "none"
"""The whole history: what nothing was chosen for, beside what was."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for."""

    strategy: str
    inputs: Inputs
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
    """What was found."""

    strategy: str
    space: Space
    cost: str
    quality: str
    why_quality: str
    train: int
    held_out: int
    """Conversations."""
    trials: int
    exhaustive: bool
    """Whether every setting was tried."""
    failed: tuple[tuple[str, str], ...]
    """Settings that have no figures, and why."""
    tried: tuple[tuple[str, Figures], ...]
    """Every other setting, once, on the conversations searched on."""
    settings: tuple[Setting, ...]
    """The frontier of these and the whole history, the dearest first; then the defaults and the whole history."""
    at_ends: tuple[tuple[str, float, int], ...]
    """Parameters, ends of their ranges beyond which the strategy takes more, and how many of the frontier are there."""
    worth: bool
    """Whether any setting is on that: else it is the frontier without the whole history, which dominates all."""
    problems: Problems


Say = Callable[[int, int], None]
"""Told how many trials are done, of how many."""


def tune(wanted: Wanted, out: Path, *, jobs: int = 1, overwrite: bool = False, say: Say = lambda *_: None) -> Tuned:
    """Search, or go on with a search. Raises a UserError for what cannot be searched."""
    check()
    search = asked(wanted.strategy)
    given = written(wanted.ranges, [each.name for each in search.free])
    if wanted.cost != TOKENS and Prices().tariff(wanted.cost) is None:
        close = nearest(wanted.cost, {**model_map(), TOKENS: None})
        remedy = "`ctxbench list prices` has the models, and `tokens` needs no price"
        raise RunError(f"the price of {wanted.cost} is not known{close} ({remedy})")
    problems = Problems()
    read = list(wanted.inputs.open(problems).conversations())
    if not read:
        first = f": {problems.found[0]}" if problems.found else ""
        raise RunError(f"no conversation could be read{first}")
    parts = split(read, wanted.held_out, wanted.seed)
    space = space_of(search, given, _longest(parts.train, wanted.encoding))
    with entered(out, _identity(wanted, search, space, parts), overwrite):
        write(parts.train, out / f"{TRAIN}.jsonl")
        write(parts.held_out, out / f"{HELD}.jsonl")
        return _Search(wanted, search, space, parts, problems, out, jobs, say).run()


@dataclass(frozen=True)
class _Search:
    """A search under way."""

    wanted: Wanted
    asked: Asked
    space: Space
    parts: Split
    problems: Problems
    out: Path
    jobs: int
    say: Say

    def run(self) -> Tuned:
        whole = self._task(WHOLE, TRAIN, self._qualities), self._task(WHOLE, HELD, self._qualities)
        on_train, on_held = self._tried(whole)
        quality, why = _quality(on_train, on_held, self.wanted.quality)
        trials = Trials(self.out, self.space)
        try:
            failed, found = self._search(trials, quality)
        finally:
            trials.close()
        if not found:
            raise RunError(f"no setting of {self.wanted.strategy} could be tried; the first: {_first(failed)}")
        train = self._all(list(found), TRAIN, quality)
        chosen, worth = self._chosen(train, quality)
        rows = self._measured(chosen, quality)
        size = self.space.size()
        return Tuned(
            self.asked.text,
            self.space,
            self.wanted.cost,
            quality,
            why,
            len(self.parts.train),
            len(self.parts.held_out),
            len(found) + len(failed),
            size is not None and size <= self.wanted.trials,
            tuple(failed.items()),
            tuple((each.spec, figures(each, quality)) for each in train),
            rows,
            tuple(self._at_ends([found[each] for each in chosen])),
            worth,
            self.problems,
        )

    def _chosen(self, train: Sequence[Tried], quality: str) -> tuple[list[str], bool]:
        """The frontier of what was tried and the whole history; that of what was tried alone, if the history has it
        to itself, and whether it is not so."""
        tried = {each.spec: each for each in train}
        whole = {WHOLE: self._all([WHOLE], TRAIN, quality)[0]}
        both = [each for each in settings(whole | tried, quality) if each in tried]
        return both or settings(tried, quality), bool(both)

    def _at_ends(self, chosen: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float, int]]:
        """Where more of the frontier may be beyond what was searched."""
        for name, ends in self.space.beyond.items():
            for end in ends:
                if there := sum(values[name] == end for values in chosen):
                    yield name, end, there

    def _measured(self, chosen: Sequence[str], quality: str) -> tuple[Setting, ...]:
        """What was chosen, the defaults and the whole history, on both sides of the split."""
        names = list(dict.fromkeys(each for each in (*chosen, self._default(), WHOLE) if each))
        train, held = (self._all(names, part, quality) for part in (TRAIN, HELD))
        whole = held[names.index(WHOLE)]
        return tuple(
            Setting(
                spec,
                spec in chosen,
                spec == WHOLE,
                figures(before, quality),
                figures(after, quality),
                None if spec == WHOLE else against(after, whole, quality),
                after.lacking,
                after.calls,
                after.failed,
            )
            for spec, before, after in zip(names, train, held, strict=True)
        )

    @property
    def _qualities(self) -> tuple[str, ...]:
        return (self.wanted.quality,) if self.wanted.quality else QUALITIES

    def _search(self, trials: Trials, quality: str) -> tuple[dict[str, str], dict[str, Mapping[str, Any]]]:
        """Make the trials that are not there yet. What failed, and why; what did not, and its values."""
        total = self.wanted.trials
        while (done := len(every := trials.all())) < total:
            self.say(done, total)
            before = every[: done - done % BATCH]
            drawn = batch(self.asked, self.space, before, self.wanted.sampler, self.wanted.seed, total)
            rest = drawn[done % BATCH : total - len(before)]
            if not rest:
                break
            self._batch(trials, rest, quality)
        self.say(total, total)
        failed: dict[str, str] = {}
        found: dict[str, Mapping[str, Any]] = {}
        for each in islice(trials.all(), total):
            name = each.user_attrs["setting"]
            if "failed" in each.user_attrs:
                failed[name] = each.user_attrs["failed"]
            else:
                found[name] = each.params
        return failed, found

    def _batch(self, trials: Trials, drawn: Sequence[Drawn], quality: str) -> None:
        """Try some settings, side by side if there are workers, and keep them in their order."""
        names: list[tuple[str, str]] = []
        for each in drawn:
            try:
                names.append((self.asked.at(each.values), ""))
            except SpecError as error:
                names.append((name_of(self.asked, each.values), str(error)))
        found = {each.spec: each for each in self._all([name for name, wrong in names if not wrong], TRAIN, quality)}
        for each, (name, wrong) in zip(drawn, names, strict=True):
            point = None
            if not wrong:
                made = found[name]
                wrong = made.failed
                point = None if wrong else figures(made, quality).point
                wrong = wrong or ("" if point else f"{quality} is undefined")
            trials.add(each, name, point, wrong)

    def _default(self) -> str:
        """The strategy at its defaults; empty where there are none."""
        try:
            return self.asked.at({})
        except SpecError:
            return ""

    def _all(self, specs: Sequence[str], part: str, quality: str) -> list[Tried]:
        return self._tried([self._task(spec, part, (quality,)) for spec in specs])

    def _task(self, spec: str, part: str, qualities: tuple[str, ...]) -> Task:
        return Task(spec, part, str(self.out), self.wanted.cost, qualities, self.wanted.encoding)

    def _tried(self, tasks: Iterable[Task]) -> list[Tried]:
        tasks = list(tasks)
        todo = list(dict.fromkeys(each for each in tasks if kept(each) is None))
        if self.jobs > 1 and len(todo) > 1:
            side_by_side(try_packed, map(msgspec.msgpack.encode, todo), self.jobs, lambda _: None)
        return [tried(each) for each in tasks]


def _quality(train: Tried, held: Tried, wanted: str) -> tuple[str, str]:
    """What quality is, and why: the first that the whole history has on both sides. Raises RunError if none is."""
    for which in (train, held):
        if which.failed:
            raise RunError(f"the whole history cannot be measured: {which.failed}")
    for least in (2, 1):
        for name in (wanted,) if wanted else QUALITIES:
            there = [sum(bottom > 0 for _, bottom in each.quality.get(name, [])) for each in (train, held)]
            if min(there) >= least:
                return name, f"{name} is there in {there[0]} and {there[1]} conversations"
    what = wanted or "answers, evidence of probes nor grounding"
    raise RunError(
        f"{'no ' if wanted else 'neither '}{what} can be measured on both sides of the split: quality is not known; "
        "give recordings with probes or tool calls, or another --seed"
    )


def _longest(conversations: Sequence[Conversation], encoding: str) -> dict[str, int]:
    counter = TokenCounter(encoding)
    return {
        "max_tokens": max(sum(map(counter.message, each.messages)) for each in conversations),
        "messages": max(len(each.messages) for each in conversations),
    }


def _first(failed: dict[str, str]) -> str:
    return next((f"{name}: {why}" for name, why in failed.items()), "")


def _identity(wanted: Wanted, search: Asked, space: Space, parts: Split) -> dict[str, Any]:
    """What must be the same for a search to go on."""
    said = hashlib.sha256("".join(each.digest() for part in parts for each in part).encode()).hexdigest()
    return {
        "strategy": search.text,
        "space": {name: str(each) for name, each in space.ranges.items()},
        "sampler": wanted.sampler,
        "seed": wanted.seed,
        "held out": wanted.held_out,
        "cost": wanted.cost,
        "quality": wanted.quality,
        "encoding": wanted.encoding,
        "recordings": said,
        "versions": {"ctxbench": version("ctxbench"), "optuna": version("optuna"), **_whose(search)},
    }


def _whose(search: Asked) -> dict[str, str]:
    """Of the stages that others bring: files by the digest of what is in them, packages by theirs."""
    files = {name: name for name in search.names() if plugins.is_file(name)}
    try:
        return files | packages(parse(search.at({})))
    except SpecError:  # no defaults
        return files
