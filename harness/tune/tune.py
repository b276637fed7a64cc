"""A search: settings are tried on one part of the recordings, and the frontier of these is measured on the other.

    ctxbench tune 'window(max_tokens=?)' standard

The conversations held out are measured once, at the end: neither their figures nor their lengths choose anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

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
from ..engine.plan import RunInputs
from ..engine.workers import side_by_side
from ..folder.store import alone, is_free, placed, unwritable
from .search import BATCH, SampledSetting, Sampler, Trials, batch, check, name_of
from .space import SearchedStrategy, SearchSpace, asked, written
from .space import space as space_of
from .trial import (
    QUALITIES,
    TOKENS,
    Setting,
    Task,
    TrialFigures,
    Tried,
    against,
    figures,
    kept,
    settings,
    tried,
    try_packed,
)

TRAIN, HELD = "train", "held-out"
_SEARCH, _RESULT = "search.json", "tune.json"
_FOLDERS = ("figures", "running")
_FILES = (_SEARCH, _RESULT, "study.db", f"{TRAIN}.jsonl", f"{HELD}.jsonl", "frontier.svg", "frontier.png")


@contextmanager
def entered(out: Path, identity: Mapping[str, Any], overwrite: bool) -> Iterator[None]:
    """Have a folder to oneself, new or with the same search in it. Raises RunError for any other."""
    try:
        _make(out)
        with alone(out):
            if overwrite:
                _clear(out)
            _enter(out / _SEARCH, identity)
            rmtree(out / "running", ignore_errors=True)
            yield
            rmtree(out / "running", ignore_errors=True)
    except OSError as error:
        raise unwritable(out, error) from None


def keep(result: Any, out: Path) -> None:
    """Write the result."""
    try:
        with placed(out / _RESULT) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    except OSError as error:
        raise unwritable(out, error) from None


def _make(out: Path) -> None:
    if (out / _SEARCH).exists():
        return
    if out.exists() and (not out.is_dir() or not is_free(out)):
        raise RunError(f"{out}: is not the folder of a search and not empty: name another with --out")
    out.mkdir(parents=True, exist_ok=True)


def _clear(out: Path) -> None:
    """Remove what a search made, and nothing else."""
    for name in _FOLDERS:
        rmtree(out / name, ignore_errors=True)
    for name in _FILES:
        (out / name).unlink(missing_ok=True)


def _enter(path: Path, identity: Mapping[str, Any]) -> None:
    """Note what is searched, or see that it is the same."""
    if not path.exists():
        with placed(path) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n")
        return
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RunError(f"{path}: damaged: add --overwrite, or name another --out") from None
    differ = [key for key, value in identity.items() if found.get(key) != value]
    if differ:
        what = ", ".join(differ)
        raise RunError(
            f"{path.parent}: holds another search (it differs in {what}): add --overwrite, or name another --out"
        )


HELD_OUT = 0.5


class Split(NamedTuple):
    """Conversations, each in the order in which they were read."""

    train: list[Conversation]
    held_out: list[Conversation]


def split(conversations: Sequence[Conversation], share: float = HELD_OUT, seed: int = 0) -> Split:
    """Hold a share of the conversations out. Raises RunError where that leaves nothing on one side."""
    by_digest: dict[str, Conversation] = {}
    digests = [_said(each) for each in conversations]
    for digest, each in zip(digests, conversations, strict=True):
        by_digest.setdefault(digest, each)
    if len(by_digest) < 2:
        what = (
            "one conversation" if len(conversations) == 1 else f"{len(conversations)} conversations that say the same"
        )
        raise RunError(
            f"{what}: none can be held out, and the best of many settings on the conversation that chose it says "
            "nothing of others: give more recordings"
        )
    held: set[str] = set()
    for probed in (True, False):
        order = sorted(
            (d for d, each in by_digest.items() if bool(each.probes) == probed), key=lambda d: _place(d, seed)
        )
        held.update(order[: _size(len(order), share)])
    if not held:  # one of each
        held.add(min(by_digest, key=lambda digest: (not by_digest[digest].probes, _place(digest, seed))))
    pairs = list(zip(digests, conversations, strict=True))
    return Split([each for d, each in pairs if d not in held], [each for d, each in pairs if d in held])


def write(conversations: Sequence[Conversation], file: Path) -> None:
    """As ctxbench JSONL, lossless."""
    with placed(file) as draft:
        draft.write_bytes(b"".join(each.to_json() + b"\n" for each in conversations))


def _size(number: int, share: float) -> int:
    """How many of so many: at least one, and not all, where there are two."""
    return 0 if number < 2 else min(max(1, round(number * share)), number - 1)


def _said(conversation: Conversation) -> str:
    """A digest of what is said, whatever the conversation is called."""
    found = hashlib.sha256()
    for message in conversation.messages:
        found.update(f"{message.role} {len(message.text)} {message.text}".encode(errors="surrogatepass"))
        found.update(msgspec.json.encode(message.calls))
    return found.hexdigest()


def _place(digest: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {digest}".encode()).hexdigest()


WHOLE = "none"
"""The whole history: what nothing was chosen for, beside what was."""


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What is asked for."""

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
    """What was found."""

    strategy: str
    space: SearchSpace
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
    tried: tuple[tuple[str, TrialFigures], ...]
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


def tune(
    wanted: TuneRequest, out: Path, *, jobs: int = 1, overwrite: bool = False, say: Say = lambda *_: None
) -> Tuned:
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

    wanted: TuneRequest
    asked: SearchedStrategy
    space: SearchSpace
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

    def _batch(self, trials: Trials, drawn: Sequence[SampledSetting], quality: str) -> None:
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


def _identity(wanted: TuneRequest, search: SearchedStrategy, space: SearchSpace, parts: Split) -> dict[str, Any]:
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


def _whose(search: SearchedStrategy) -> dict[str, str]:
    """Of the stages that others bring: files by the digest of what is in them, packages by theirs."""
    files = {name: name for name in search.names() if plugins.is_file(name)}
    try:
        return files | packages(parse(search.at({})))
    except SpecError:  # no defaults
        return files
