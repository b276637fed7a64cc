"""Paths in, conversations out: find the files, detect their formats, read them, check every conversation.

All recordings come in here. Nothing is lost in silence: what cannot be read is in `Problems.errors`, files of a folder
that are no recordings are in `Problems.ignored`; files named twice, conversations renamed and parts of an unknown type
are in `Problems.notes`.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from . import packed, spec
from .errors import Place, RecordingError
from .files import shipped
from .model import Call, Conversation, Message, Probe, check, usage_faults
from .readers import UNNAMED, Reader, readers
from .readers.huggingface import HUB, HuggingFace, from_address, names_files
from .readers.requests import UNIQUE, numbered
from .source import (
    COMPRESSED,
    HEAD,
    MISFIT,
    Problems,
    decode,
    file_head,
    files_of,
    is_compressed,
    is_table,
    is_value,
    key_paths,
    record_head,
    unique_name,
    unreadable,
)

# Message and remedy when a batch has no conversation: a batch with files, and one without.
_NO_CONVERSATION = {
    True: ("no conversation is in it", "leave it out"),
    False: ("no conversation is there, and no path is given", "name the files or folders to read"),
}
_FORMATS = "`ctxbench list formats` names what is read; --format chooses one of them"
_LOG = 4  # key paths of a shape that tell a log from a data set
_SMALL = 1 << 16  # a larger file is not searched for brackets without content
_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"')  # how a file of JSON begins, which is damaged if it cannot be parsed
_BRACKETS = re.compile(rb"[\s\[\]{},]*+")


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that one reader reads together."""

    reader: Reader
    files: tuple[Path, ...]


def read(batches: Iterable[Batch], problems: Problems, first: Iterable[Conversation] = ()) -> Iterator[Conversation]:
    """Yield the conversations of `first`, then every conversation of the batches that passes the checks.

    Ids are made unique by a suffix `~2`, `~3` …; a note says so once all are read. A call counts once in all batches:
    another note says how many stand there again.
    """
    seen, calls, unnamed = dict[str, int](), _Calls(problems), Counter[str]()
    renamed, longer = list[str](), list[str]()

    def named(conversation: Conversation) -> Conversation:
        if (name := unique_name(conversation.id, seen)) != conversation.id:
            (longer if conversation.meta.get("parent") == conversation.id else renamed).append(name)
        return replace(conversation, id=name)

    yield from map(named, first)
    for calls.batch, batch in enumerate(batches):
        where = Place(str(batch.files[0]) if batch.files else f"--format {format_name(batch.reader)}")
        empty, sound, errors, ignored = True, 0, len(problems.errors), len(problems.ignored)
        try:
            for place, conversation in batch.reader.read(batch.files, problems):
                empty = False
                if conversation.id == UNNAMED:
                    unnamed[place.file] += 1
                    name = numbered(Path(place.file).stem, unnamed[place.file])
                    conversation = replace(conversation, id=name)
                # bad usage or evidence must not cost the conversation; any other fault does
                conversation = without_bad_usage(conversation, place, problems)
                conversation = without_bad_probes(conversation, place, problems)
                conversation = without_orphans(conversation, place, problems)
                try:
                    check(conversation, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                sound += 1
                where_from = Place(packed.shown(place.file), place.line, place.field)
                conversation = replace(conversation, source=conversation.source or str(where_from))
                if (counted := calls.once(conversation)) is not None:
                    calls.names.append((counted := named(counted)).id)
                    yield counted
            silent = empty and (errors, ignored) == (len(problems.errors), len(problems.ignored))
            if silent and not (batch.files and batch.reader.folder):  # a folder's files may belong to another folder's
                raise RecordingError(where, *_NO_CONVERSATION[bool(batch.files)])
        except RecordingError as error:
            problems.add(_explained(error, batch) if empty and problems.strict else error)
        except OSError as error:
            problems.add(unreadable(Path(where.file), error))
        # Most records of a file may be of another form than the one that its keys hint at.
        of_batch = problems.errors[errors:]
        misfits = 0 if sound or len(batch.files) != 1 else sum(error.remedy.endswith(MISFIT) for error in of_batch)
        keys = key_paths(record_head(batch.files[0])) if misfits >= 2 and 2 * misfits > len(of_batch) else frozenset()
        if any(_fit(shape, keys) for shape in batch.reader.shapes):
            problems.errors[errors:] = [RecordingError(Place(where.file), _misfit(batch.files[0]), _FORMATS)]
        elif empty and len(problems.errors) > errors:
            problems.errors[errors] = _explained(problems.errors[errors], batch)
    if renamed:
        some = ", ".join(renamed[:4]) + " …" * (len(renamed) > 4)
        had, were = ("conversation", "was") if len(renamed) == 1 else ("conversations", "were")
        problems.notes.append(f"{len(renamed)} {had} had the id of an earlier one and {were} given another: {some}")
    if longer:
        some = ", ".join(longer[:4]) + " …" * (len(longer) > 4)
        was = "recording goes" if len(longer) == 1 else "recordings go"
        how = "one independent unit with it, and calls of both count once; leave the copy out to see the session whole"
        problems.notes.append(f"{len(longer)} {was} on where an earlier copy of the same session ends ({some}): {how}")
    problems.note_unknown()


class _Recorded(NamedTuple):
    """A conversation whose calls are known."""

    id: str  # as it is recorded
    parent: str
    unit: str  # its independent unit; empty = itself
    messages: int
    batch: int


class _Calls:
    """The calls of one reading. Each counts where it is read first, in whatever recordings it stands again.

    A call is known by the id that the provider gave to it or to its response, else, in other files, by its time,
    answer and usage. A fork may lack the times of what it copied: its calls are known by answer and usage among those
    of the parent that it names. Memory holds two hashes of 64 bits for each call, and the names of conversations.
    """

    def __init__(self, problems: Problems) -> None:
        self.batch = 0
        self.names: list[str] = []
        """Final ids of the conversations that were kept."""
        self._problems = problems
        self._recorded: list[_Recorded] = []
        self._units: dict[str, str] = {}
        self._first: dict[int, int] = {}  # by hash the number of the conversation that has a call

    def once(self, conversation: Conversation) -> Conversation | None:
        """Return a conversation with its repeated calls as copies; None if an earlier one of its id, or an agent of
        its session, has all of it.

        Its parent is the conversation that has the last of them, unless it names one; both are one unit.
        """
        number, meta = len(self._recorded), conversation.meta
        parent = str(meta.get("parent") or "")
        unit = str(meta.get("unit") or self._units.get(parent, parent))
        copies, has_own = dict[int, int](), False
        for at, message in enumerate(conversation.messages):
            call = message.call
            if call is None or call.copied or call.was_stopped:
                continue
            known_as, noted_as = _keys(message, call, conversation.id, parent)
            first = next((self._first[key] for key in known_as if key in self._first), number)
            # Without ids two calls of one file may well be alike: trials that ran side by side.
            if first != number and (call.request_id or self._recorded[first].batch != self.batch):
                copies[at] = first
            elif known_as:
                has_own = True
            for key in noted_as:
                self._first.setdefault(key, first)
        if copies:
            self._problems.repeated[conversation.id] += len(copies)
            origin = next(reversed(copies.values()))  # of the last one
            known = self._recorded[origin]
            is_same = known.id == conversation.id or (
                parent == known.parent and conversation.id.startswith(f"{parent}/")
            )
            if is_same and not has_own and len(conversation.messages) <= known.messages:
                return None
            shared = known.unit or self.names[origin]
            if known.parent != conversation.id:  # else it is the origin of what was read first
                meta = {**meta, **({} if parent else {"parent": self.names[origin]})}
                meta |= {"unit": shared} if parent and unit != shared else {}
            unit = shared
            messages = list(conversation.messages)
            for at in copies:
                call = replace(messages[at].call or Call(), usage=None, iterations=(), copied=True)
                messages[at] = replace(messages[at], call=call)
            conversation = replace(conversation, messages=tuple(messages), meta=meta)
        self._recorded.append(_Recorded(conversation.id, parent, unit, len(conversation.messages), self.batch))
        self._units.setdefault(conversation.id, unit or conversation.id)
        return conversation


def _keys(message: Message, call: Call, name: str, parent: str) -> tuple[list[int], list[int]]:
    """Return the hashes by which a call may be known already, and those by which it will be."""
    usage = call.usage
    if len(call.request_id) >= UNIQUE:
        keys = [hash((call.request_id, usage is None))]
        return keys, keys
    # One writer sets blanks in JSON, another none.
    answer = message.text, *((made.name, "".join(made.arguments.split())) for made in message.calls)
    if call.request_id:  # it may be made up, and be that of several calls
        keys = [hash((call.request_id, usage is None, answer, usage and usage.input))]
        return keys, keys
    if usage is None:
        return [], []
    told, time = hash((answer, usage)), message.time if call.started is None else call.started
    known_as, noted_as = [hash(("fork", name, told))], [hash(("own", name, told))]
    if time is not None:
        at = hash((time // 0.001, told))  # exporters of the same span cut its time to micro- or milliseconds
        return [at, *known_as], [at, *noted_as]
    if parent:
        forked = hash(("fork", parent, told))
        return [forked, hash(("own", parent, told)), *known_as], [forked, *noted_as]
    return known_as, noted_as


def growth_noted(conversations: Iterable[Conversation], problems: Problems) -> Iterator[Conversation]:
    """Yield conversations; those that begin with all messages of an earlier one are one unit with it, and noted.

    Forks are not: they name their parents, and their first calls are known to be copies.
    """
    grown, unit_of = list[str](), dict[int, str]()
    for conversation in conversations:
        key, unit = 0, ""
        for message in conversation.messages:
            unit = unit or unit_of.get(key, "")
            key = hash((key, message.role, message.text, *(call.arguments for call in message.calls)))
        if unit and not any(message.call is not None and message.call.copied for message in conversation.messages):
            grown.append(conversation.id)
            conversation = replace(conversation, meta={"unit": unit, **conversation.meta})
        if conversation.messages:
            unit_of[key] = str(conversation.meta.get("unit", conversation.id))
        yield conversation
    if len(grown) > 1:  # one may be by chance: a greeting, then another chat that began alike
        some = ", ".join(grown[:4]) + " …" * (len(grown) > 4)
        problems.notes.append(
            f"{len(grown):,} conversations begin with all of an earlier one ({some}): requests of one growing chat, "
            "logged one by one? They count as one independent unit, each with its calls: keep the last of each chat"
        )


def find(paths: Iterable[Path], problems: Problems, form: str | None = None) -> list[Batch]:
    """Return the batches that stand at these paths, in the order of the paths; folders are walked in sorted order.

    A path that does not exist and a named file of no known format are problems; such a file inside a folder is only
    listed in `problems.ignored`. `form` is a reader written as text, which then reads every file. A file that is named
    twice is read once. Files of one recording are one batch, whether they or their folder are named.
    """
    fixed_reader = parse_format(form) if form else None
    # Files that one reader reads together: those of one folder if the reader wants that, else each alone.
    groups: dict[tuple[Reader, Path], list[Path]] = {}
    for path, files in files_of(paths, problems):
        for file in files:
            try:
                reader = fixed_reader or detect(file)
            except RecordingError as error:
                problems.add(error)
                continue
            if reader is None:
                why = _why_unread(file)
                if path in (file, Path(packed.shown(str(file)))):
                    problems.add(why or RecordingError(Place(str(file)), _misfit(file), _FORMATS))
                else:
                    problems.ignored.append(f"{file}: {why.what}" if why else str(file))
            else:
                groups.setdefault((reader, reader.folder_of(file) if reader.folder else file), []).append(file)
    return [Batch(reader, tuple(sorted(group))) for (reader, _), group in groups.items()]


def is_remote(name: str) -> bool:
    """Return whether an input is the address of a data set on the hub, and names no file or folder there."""
    return name.startswith(HUB) and not names_files(name)


def remote(address: str, form: str | None = None) -> Batch:
    """Return the data set of an address as a batch without files; options come from `form` if it is of that reader.

    Raises RecordingError for an address that names none.
    """
    reader = parse_format(form) if form else None
    return Batch(from_address(address, reader if isinstance(reader, HuggingFace) else None), ())


def detect(path: Path) -> Reader | None:
    """Return the reader that recognises a file, or whose shape fits its start best; None if none does.

    It has its default options. Raises RecordingError if the file cannot be read.
    """
    head = file_head(path)
    recognised = next((kind for kind in readers().values() if kind.recognises(path, head)), None)
    if recognised not in (None, HuggingFace):
        return recognised()
    if is_table(path.suffix, head):
        head = record_head(path)
    keys = key_paths(head)
    fits = [(len(shape), name, shape) for name, shape in _shapes() if _fit(shape, keys)]
    # Of shapes that fit equally well the name decides, not the order in which plug-ins were found.
    size, name, shape = max(fits, key=lambda fit: fit[:2], default=(0, "", frozenset()))
    # A column of messages alone makes a data set, but not beside the other columns of a log.
    if recognised is not None and size < _LOG:
        return HuggingFace()
    return readers()[name]() if size and _in_one_record(shape, head) else None


def parse_format(text: str) -> Any:
    """Return a reader from its name and options, written as for `--format`. Raises SpecError if there is none."""
    return spec.parse(text, readers(), "format")


def _fit(shape: frozenset[str], keys: frozenset[str]) -> int:
    """Return the number of key paths of the shape if the file has all of them, else 0. `*` stands for any one key."""
    plain, patterns = _parts(shape)
    return len(shape) if plain <= keys and all(any(map(pattern.fullmatch, keys)) for pattern in patterns) else 0


@cache
def _shapes() -> list[tuple[str, frozenset[str]]]:
    """Return the shapes of all formats, each behind the name of its format."""
    return [(name, shape) for name, kind in readers().items() for shape in kind.shapes]


@cache
def _parts(shape: frozenset[str]) -> tuple[frozenset[str], tuple[re.Pattern[str], ...]]:
    """Return the key paths of a shape without a `*`, and patterns of the others."""
    plain = frozenset(path for path in shape if "*" not in path)
    return plain, tuple(re.compile(re.escape(path).replace(r"\*", r"[^.\[]+")) for path in sorted(shape - plain))


def _in_one_record(shape: frozenset[str], head: bytes) -> bool:
    """Return whether one line has all keys, in a file of JSON Lines: keys of several lines together tell no format."""
    first, _, rest = head.lstrip().partition(b"\n")
    if not rest or rest.isspace() or not is_value(first):
        return True
    return any(_fit(shape, key_paths(line)) for line in io.BytesIO(head) if line.strip())


def _misfit(path: Path) -> str:
    if b"\0" in file_head(path):
        return "no known format fits; it is no text"
    keys = _shown(key_paths(record_head(path)) - {"."})  # the root is no key
    return "no known format fits" + (f"; its keys are {keys}" if keys else "")


def _shown(keys: frozenset[str]) -> str:
    """Return some of a file's keys as text, those that stand highest first."""
    highest = sorted(keys, key=lambda key: (key.count("."), key))
    return ", ".join(highest[:6]) + " …" * (len(highest) > 6)


def _why_unread(path: Path) -> RecordingError | None:
    """Return why a file of no known format has nothing to read; None if it has content, of whatever kind."""
    head, place = file_head(path), Place(str(path))
    if is_compressed(path):
        return RecordingError(place, COMPRESSED)
    if not head.strip():
        return RecordingError(place, "the file is empty", "leave it out")
    start = record_head(path)
    if start and len(start) <= _SMALL and _BRACKETS.fullmatch(start):
        return RecordingError(place, *_NO_CONVERSATION[True])
    keys = key_paths(start or head[:64])
    for entry in shipped("lookalikes")["lookalike"]:  # files of known programs without conversations
        by_start = "starts" in entry and head.startswith(entry["starts"].encode())
        if by_start or _fit(frozenset(entry.get("keys", ())), keys):
            return RecordingError(place, entry["what"], entry["do"])
    is_json = len(head) < HEAD and (path.suffix in (".json", ".jsonl") or (keys - {"."} and _JSON.match(head)))
    lines = head.split(b"\n") if is_value(head.partition(b"\n")[0]) else [head]
    for number, line in enumerate(lines if is_json else (), 1):
        if line.strip() and not is_value(line):
            try:
                decode(line, msgspec.Raw, Place(place.file, number))
            except RecordingError as error:
                return error
    return None


def _explained(error: RecordingError, batch: Batch) -> RecordingError:
    """Return the first error of an empty batch, with the keys of the file if it is of another format."""
    named, shapes = Path(error.place.file), batch.reader.shapes
    path = next((file for file in batch.files if packed.shown(str(file)) == error.place.file), named)
    if is_compressed(path):
        return RecordingError(Place(error.place.file), COMPRESSED)
    try:
        start = record_head(path) if path in batch.files else b""
    except RecordingError:
        return error
    keys = key_paths(start)
    known = batch.reader.recognises(path, start)
    if known or not start.strip() or not shapes or any(_fit(shape, keys) for shape in shapes):
        return error
    other = detect(path)
    if isinstance(other, type(batch.reader)):  # known by its name: it has no keys
        return error
    wanted = max(shapes, key=lambda shape: len(shape & keys))
    present = _shown(keys) or "no keys"
    what = f"{error.what}; {format_name(batch.reader)} looks for {', '.join(sorted(wanted))}, and finds {present}"
    return RecordingError(
        error.place, what, f"--format {format_name(other)} fits it" if other else "no known format fits it"
    )


def format_name(reader: Reader) -> str:
    """Return the name of a reader's format, with the options that differ from its defaults."""
    kind = type(reader)
    return spec.spec(next((name for name, known in readers().items() if known is kind), kind.__name__), reader)


def without_bad_usage(conversation: Conversation, place: Place, problems: Problems) -> Conversation:
    """Return the conversation without the usage of calls that report impossible counts; each of them is a problem."""
    messages, remedy = list(conversation.messages), "correct it; the call counts as one that reported nothing"
    for at, message in enumerate(conversation.messages):
        call = message.call
        if call is not None and call.usage is not None and (fault := next(usage_faults(call.usage), None)):
            field, what = fault
            problems.add(RecordingError(place.at(f"messages[{at}].call.usage{field and '.'}{field}"), what, remedy))
            messages[at] = replace(message, call=replace(call, usage=None))
    return replace(conversation, messages=tuple(messages))


def without_orphans(conversation: Conversation, place: Place, problems: Problems) -> Conversation:
    """Return the conversation with results of tools that no message before them called as messages of the user."""
    called, messages = set[str | None](), list(conversation.messages)
    for at, message in enumerate(messages):
        called.update(call.id for call in message.calls)
        if message.role == "tool" and message.answers not in called:
            problems.unknown("result of a tool that no message called, read as a user's message", place)
            messages[at] = replace(message, role="user", answers=None)
    return replace(conversation, messages=tuple(messages))


def without_bad_probes(conversation: Conversation, place: Place, problems: Problems) -> Conversation:
    """Return the conversation without evidence that no question can rest on, and without probes after no message.

    Each kind of fault is one problem, which names the first case and counts the others.
    """
    if not conversation.probes:
        return conversation
    places = {message.id: at for at, message in enumerate(conversation.messages)}
    lost, nowhere, late, probes = (
        list[tuple[int, str]](),
        list[tuple[int, str]](),
        list[tuple[int, str]](),
        list[Probe](),
    )
    for at, probe in enumerate(conversation.probes):
        evidence = tuple(name for name in probe.evidence if name in places)
        lost += [(at, name) for name in probe.evidence if name not in places]
        asked_at = places.get(probe.after, -1) if probe.after else len(places)
        if asked_at < 0:
            nowhere.append((at, probe.after))
        else:
            late += [(at, name) for name in evidence if places[name] > asked_at]
            probes.append(replace(probe, evidence=evidence))
    for field, fault, cases, remedy in (
        ("evidence", "evidence {} names no message", lost, "correct it; the probes keep the evidence that is there"),
        ("after", "{} names no message", nowhere, "correct it; probes with no place are left out"),
        ("evidence", "evidence {} comes after the question", late, "correct it, or `after`; it is asked without it"),
    ):
        if cases:
            (at, name), *more = cases
            what = fault.format(repr(name)) + f", and {len(more)} more" * bool(more)
            problems.add(RecordingError(place.at(f"probes[{at}].{field}"), what, remedy))
    return replace(conversation, probes=tuple(probes)) if lost or nowhere else conversation
