"""Claude Code sessions: JSON Lines, `<project>/<session>.jsonl`, and `agent-<id>.jsonl` of the agents that it starts.

Source: what Claude Code writes below `~/.claude/projects` (undocumented; checked against public programs that read it,
up to version 2.1). Not in it: the system prompt, tool schemas, cache marks, when a call started. Not read: what it
attaches to a prompt (`attachment` lines), paths.

- One response is several lines, a block each, with the same `requestId`; its usage grows, so the last line's counts.
  They become one message, complete with its last line, where its first one stands.
- Lines are a tree (`uuid`, `parentUuid`; across a compaction `logicalParentUuid`). The conversation is the branch that
  ends at the last line; what a rewind left behind is counted in `meta["off_branch"]`. Results of parallel tools hang on
  their own call's line, so those of a response on the branch are on it too. A line whose parent is lost (damaged, or in
  another file) follows the line before it.
- Agents (`isSidechain`) and other sessions in the file are conversations of their own with `meta["parent"]`. A session
  that is continued by another in the same file is part of that.
- A compaction's summary is not a message, as the history is kept whole; in a file that begins with one, it is.
- Model `<synthetic>` means no call was made: the message has no `Call`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Conversation, Message, Scalar
from ..source import Problems, decode, lines
from . import Found
from .blocks import Block, Content, assistant_message, blocks, user_messages
from .chat import Moment
from .history import History
from .usage import dollars, usage


class _Kept(msgspec.Struct, rename="camel"):
    head_uuid: str | None = None


class _Compact(msgspec.Struct, rename="camel"):
    pre_tokens: int | None = None
    preserved_segment: _Kept | None = None


class _Entry(msgspec.Struct, rename="camel"):
    type: str
    uuid: str = ""
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str = ""
    agent_id: str | None = None
    timestamp: Moment | None = None
    is_sidechain: bool = False
    is_compact_summary: bool = False
    request_id: str | None = None
    subtype: str | None = None
    compact_metadata: _Compact | None = None
    cost: Any = msgspec.field(default=None, name="costUSD")
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _User(msgspec.Struct):
    content: Content


class _Assistant(msgspec.Struct):
    content: Content
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: Any = None


class _Line(NamedTuple):
    """A line that is in the tree. `said` is its message, if it has one."""

    place: Place
    entry: _Entry
    said: _User | _Assistant | None

    @property
    def response(self) -> str:
        """What the lines of one response have in common."""
        return (self.entry.request_id or self.said.id) if isinstance(self.said, _Assistant) else ""


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """What Claude Code keeps of a session."""

    about: ClassVar[str] = "Claude Code sessions (JSON Lines)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".type", ".uuid", ".parentUuid", ".sessionId", ".message", ".message.role"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Found:
        for path in files:
            tree = _Tree(list(_lines(path, problems)))
            for name, branch, meta in tree.conversations(path.stem):
                yield branch[0].place, _conversation(name, branch, meta, problems)


def _lines(path: Path, problems: Problems) -> Iterator[_Line]:
    seen: set[str] = set()
    for place, raw in lines(path, problems):
        try:
            entry = decode(raw, _Entry, place)
            if entry.type in ("user", "assistant") and not entry.uuid:
                raise RecordingError(place.at("uuid"), f"a line of type {entry.type} without a uuid", "remove the line")
            if entry.uuid and entry.uuid not in seen:  # resumed sessions may repeat lines
                yield _Line(place, entry, _said(entry, place))
                seen.add(entry.uuid)
        except RecordingError as error:
            problems.add(error)


def _said(entry: _Entry, place: Place) -> _User | _Assistant | None:
    if entry.type not in ("user", "assistant"):
        return None
    if entry.message is msgspec.UNSET:
        raise RecordingError(place.at("message"), f"a line of type {entry.type} without a message", "remove the line")
    where = place.at("message")
    return decode(entry.message, _User, where) if entry.type == "user" else decode(entry.message, _Assistant, where)


class _Tree:
    """The lines of one file, and which of them make a conversation."""

    def __init__(self, found: list[_Line]) -> None:
        self.lines = found
        self.at = {line.entry.uuid: at for at, line in enumerate(found)}
        self.groups: list[tuple[str, str]] = []
        for at in range(len(found)):
            self.groups.append(self._group(at))

    def conversations(self, stem: str) -> Iterator[tuple[str, list[_Line], dict[str, Scalar]]]:
        """Each as (id, lines, meta), the main one first."""
        members: dict[tuple[str, str], list[int]] = {}
        for at, group in enumerate(self.groups):
            members.setdefault(group, []).append(at)
        ends = {group: ats[-1] for group, ats in members.items()}
        branches = {group: self._branch(end) for group, end in ends.items()}
        main = next((group for group in reversed(self.groups) if not group[1]), None)
        for group in sorted(branches, key=lambda group: group != main):
            session, agent = group
            if any(ends[group] in branch for other, branch in branches.items() if other != group):
                continue
            chosen = self._with_responses(branches[group])
            if not any(self.lines[at].said for at in chosen):
                continue
            meta: dict[str, Scalar] = {"off_branch": len(set(members[group]) - chosen)}
            if group != main:
                meta["parent"] = session if agent else (main or group)[0]
            name = "/".join(part for part in (session or stem, agent) if part)
            yield name, [self.lines[at] for at in sorted(chosen)], meta

    def _group(self, at: int) -> tuple[str, str]:
        """The session of a line, and its agent ("" = the session's own)."""
        entry = self.lines[at].entry
        if not entry.is_sidechain:
            return entry.session_id, ""
        if entry.agent_id:
            return entry.session_id, entry.agent_id
        up = self._parent(at)
        return entry.session_id, entry.uuid if up is None else self.groups[up][1]

    def _parent(self, at: int) -> int | None:
        entry = self.lines[at].entry
        parent = entry.parent_uuid or entry.logical_parent_uuid
        if parent is None and entry.subtype != "compact_boundary":
            return None
        found = self.at.get(parent or "", at)
        if found < at:
            return found if self._agent(found) == self._agent(at) else None
        return next((up for up in range(at - 1, -1, -1) if self._agent(up) == self._agent(at)), None)

    def _agent(self, at: int) -> tuple[bool, str | None]:
        entry = self.lines[at].entry
        return entry.is_sidechain, entry.agent_id if entry.is_sidechain else None

    def _branch(self, end: int) -> set[int]:
        found: set[int] = set()
        at: int | None = end
        while at is not None:
            found.add(at)
            at = self._parent(at)
        return found

    def _with_responses(self, branch: set[int]) -> set[int]:
        """The branch, the other lines of its responses, and the tool results that hang on these."""
        responses = {self.lines[at].response for at in branch} - {""}
        asked = {at for at, line in enumerate(self.lines) if line.response in responses}
        results = {at for at, line in enumerate(self.lines) if _only_results(line) and self._parent(at) in asked}
        return branch | asked | results


def _only_results(line: _Line) -> bool:
    said = line.said
    return isinstance(said, _User) and all(block.type == "tool_result" for block in blocks(said.content))


def _conversation(name: str, branch: Sequence[_Line], meta: dict[str, Scalar], problems: Problems) -> Conversation:
    history = History(problems)
    compactions: list[Compaction] = []
    responses: dict[str, list[_Line]] = {}
    for line in branch:
        responses.setdefault(line.response or line.entry.uuid, []).append(line)
    for group in responses.values():
        entry = group[0].entry
        if entry.subtype == "compact_boundary":
            if history.messages:
                compactions.append(_compaction(entry, history.messages))
        elif entry.is_compact_summary and history.messages:
            if not compactions or compactions[-1].summary or compactions[-1].after != history.last:
                compactions.append(_compaction(entry, history.messages))
            summary = "\n".join(message.text for message in _messages(group, problems))
            compactions[-1] = msgspec.structs.replace(compactions[-1], summary=summary)
        else:
            for message in _messages(group, problems):
                history.say(message, group[0].place.at("message"))
    return Conversation(name, history.told(), compactions=tuple(compactions), meta=meta)


def _compaction(entry: _Entry, messages: Iterable[Message]) -> Compaction:
    ids = [message.id for message in messages]
    about = entry.compact_metadata or _Compact()
    kept = about.preserved_segment.head_uuid if about.preserved_segment else None
    return Compaction(ids[-1], "", kept if kept in ids else None, about.pre_tokens, _seconds(entry))


def _messages(group: Sequence[_Line], problems: Problems) -> Iterator[Message]:
    """The lines of one response as its message; a user's line as what it holds; others as nothing."""
    first, last = group[0], group[-1]
    time = _seconds(last.entry)
    if isinstance(first.said, _User):
        names = chain([first.entry.uuid], (f"{first.entry.uuid}.{n}" for n in count(1)))
        yield from user_messages(first.said.content, names, time)
    elif isinstance(last.said, _Assistant):
        said: list[Block] = []
        for line in group:
            if isinstance(line.said, _Assistant):
                said += blocks(line.said.content)
        yield assistant_message(said, first.entry.uuid, time, _call(last.said, last, problems))


def _call(said: _Assistant, line: _Line, problems: Problems) -> Call | None:
    if said.model == "<synthetic>":
        return None
    cost = dollars(line.entry.cost, line.place.at("costUSD"), problems)
    used = usage(said.usage, line.place.at("message.usage"), problems, cost)
    return Call(said.model, "anthropic", used, stop=said.stop_reason or "")


def _seconds(entry: _Entry) -> float | None:
    return None if entry.timestamp is None else entry.timestamp.timestamp()
