"""Sessions of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, Scalar
from ..source import Problems, convert, objects
from . import OBJECT, Fields, Reader, Recordings, as_object, text_of
from .messages import History, Moment, decoded_body, moment_seconds
from .prompts import recorded_messages
from .requests import context_edits, dollars, response_usage, tier

# Lines that are not sent: what the screen shows, snapshots of files, settings and titles.
_NOT_SENT = (
    *("system", "progress", "summary", "file-history-snapshot", "queue-operation", "last-prompt", "mode"),
    *("permission-mode", "custom-title", "ai-title", "agent-name", "agent-color", "agent-setting", "tag", "pr-link"),
)


_KEPT = "compactMetadata.preservedSegment.headUuid"  # the first line that a compaction keeps
_NEEDED = {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None

    def __post_init__(self) -> None:
        for name in _NEEDED.get(self.type, ()):
            if not getattr(self, name):
                raise ValueError(f"object missing required field {name}")


class _Said(msgspec.Struct):
    """Keys that a message has to have, and keys that have to be of their type where they are there."""

    content: str | list[_Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None


class SessionLine(Fields):
    """A line of the tree, with its message, if it has one."""

    def __init__(self, record: dict[str, Any], place: Place) -> None:
        super().__init__(record, place)
        self.kind, self.uuid = self.needed("type", str), self.typed("uuid", str) or ""
        # A compaction begins a chain of its own; the line that it goes on from is named apart.
        self.parent = self.typed("parentUuid", str) or self.typed("logicalParentUuid", str)
        self.session, self.is_sidechain = self.typed("sessionId", str) or "", self.typed("isSidechain", bool) or False
        self.agent = self.typed("agentId", str) if self.is_sidechain else None
        self.is_boundary = self.at("subtype") == "compact_boundary"
        self.time = moment_seconds(self.typed("timestamp", Moment))
        self.message: Fields | None = None
        self.response = ""
        """Id that the lines of one response share; empty for other lines."""
        if self.kind in ("user", "assistant"):
            for name, kind in (("uuid", str), ("message", OBJECT)):
                if not self.typed(name, kind):
                    what = f"a line of type {self.kind} without a {name}"
                    raise RecordingError(place.below(name), what, "remove the line")
            self.message = Fields(self.at("message"), place.below("message"))
            convert(self.message.record, _Said, self.message.place)
        if self.kind == "assistant" and self.message is not None:
            self.response = self.text("requestId") or self.message.text("id")


class ClaudeCode(Reader):
    """Claude Code sessions: JSON Lines, `<project>/<session>.jsonl`, and `agent-<id>.jsonl` of the agents it starts.

    Source: what Claude Code writes below `~/.claude/projects` (undocumented; checked against public programs that read
    it, up to version 2.1). The sessions have no system prompt, tool schemas, cache marks, or start times of calls. Not
    read: paths, and attachments of prompts (`attachment` lines), which are counted in the notes as lines of unknown
    types are.

    - One response is several lines, one block each, with the same `requestId`. They become one message in the place of
      the first line, with the time and usage of the last one: usage grows from line to line.
    - A fork, a branch or a resumed session may begin with copies of its origin's lines, in a file of its own: calls
      that are read in both count once. Only a branch names its origin (`forkedFrom`).
    - Lines form a tree (`uuid`, `parentUuid`; across a compaction `logicalParentUuid`). The conversation is the branch
      that ends at the last line; `meta["off_branch"]` counts the lines that a rewind left behind. Results of parallel
      tools hang on the line of their own call, so results of a response on the branch belong to the branch. A line
      whose parent is lost (damaged, or in another file) follows the line before it.
    - Agents and other sessions in the file are conversations of their own with `meta["parent"]`. A session that is
      continued by another one in the same file is part of that one. An agent's lines are marked by `isSidechain`, stand
      in a file of their own (`<session>/subagents/agent-<id>.jsonl`), or are inside of lines of type `progress`, there
      without parents and in their order. Agents write to the cache for five minutes where their session writes for an
      hour.
    - Within one response the provider may call the model several times (`usage.iterations`), and an advisor beside it.
      The usage of the response is their sum; a call's is that of the last iteration, with the output of all.
    - A compaction's summary is no message, since the history is complete; in a file that begins with one, it is a
      message.
    - Model `<synthetic>` means that no call was made: the message has no `Call`.
    """

    about = "Claude Code sessions (JSON Lines)"
    checked = "Claude Code 2.1"
    shapes = (frozenset({".type", ".uuid", ".parentUuid", ".sessionId", ".message", ".message.role"}),)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            tree = Tree(list(_lines(path, problems)))
            problems.written_by(tree.lines[-1].text("version") if tree.lines else "", self.checked)
            for name, branch, meta in tree.conversations(path.stem):
                yield branch[0].place, conversation_of(name, branch, meta, problems)


def _lines(path: Path, problems: Problems) -> Iterator[SessionLine]:
    seen: set[str] = set()
    agents: dict[str, str] = {}
    for place, raw in objects(path, problems):
        with problems.collect():
            record = Fields(decoded_body(raw, place), place)
            for line, where in (record.record, place), (_agents_line(record, agents), place.at("data.message")):
                if line is None or text_of(line.get("uuid")) in seen:  # resumed sessions may repeat lines
                    continue
                read = SessionLine(line, where)
                if read.kind not in ("user", "assistant", *_NOT_SENT):
                    problems.unknown(f"claude_code: line of type {read.kind!r}", where)
                if read.uuid:
                    yield read
                    seen.add(read.uuid)  # only now: of a damaged line a sound repetition still counts


def _agents_line(line: Fields, agents: dict[str, str]) -> dict[str, Any] | None:
    """Return the line of an agent that a line of type `progress` holds.

    It hangs on the line before it of the same agent; `agents` has the last one of each.
    """
    if line.at("type") != "progress" or line.at("data.type") != "agent_progress" or line.at("data.message") is None:
        return None
    agent, held = line.typed("data.agentId", str) or "", line.needed("data.message", OBJECT)
    uuid = text_of(held.get("uuid"))
    parent = agents.get(agent)
    agents[agent] = uuid
    parent = parent if parent != uuid else None
    return {**held, "parentUuid": parent, "sessionId": line.at("sessionId"), "agentId": agent, "isSidechain": True}


class Tree:
    """Tree of the lines of one file. A line is named by its index."""

    def __init__(self, file_lines: list[SessionLine]) -> None:
        self.lines = file_lines
        self.at = {line.uuid: at for at, line in enumerate(file_lines)}
        self.groups: list[tuple[str, str]] = []
        # The line before each line of the same agent, the lines of each response, and the results on each line.
        self.before: list[int | None] = []
        self.responses: dict[str, list[int]] = {}
        self.results: dict[int, list[int]] = {}
        last: dict[tuple[bool, str | None], int] = {}
        for at, line in enumerate(file_lines):  # one by one: a line's group may be that of its parent
            self.before.append(last.get((line.is_sidechain, line.agent)))
            last[line.is_sidechain, line.agent] = at
            self.groups.append(self._group(at))
            if line.response:
                self.responses.setdefault(line.response, []).append(at)
            said = line.at("message.content") if line.kind == "user" else None
            results_alone = isinstance(said, list) and all(block.get("type") == "tool_result" for block in said)
            if results_alone and (parent := self._parent(at)) is not None:
                self.results.setdefault(parent, []).append(at)

    def conversations(self, stem: str) -> Iterator[tuple[str, list[SessionLine], dict[str, Scalar]]]:
        """Yield the conversations as (id, lines, meta), the main one first."""
        members: dict[tuple[str, str], list[int]] = {}
        for at, group in enumerate(self.groups):
            members.setdefault(group, []).append(at)
        branches: dict[tuple[str, str], set[int]] = {}
        on_branches: set[int] = set()
        # From the group that ends last: its branch may lead through the lines of sessions that it continues.
        for group in sorted(members, key=lambda group: members[group][-1], reverse=True):
            if (at := members[group][-1]) in on_branches:  # it is continued by another group
                continue
            branch = {at}
            while (above := self._parent(at)) is not None:
                branch.add(at := above)
            branches[group] = branch
            on_branches |= branch
        main = next((group for group in reversed(self.groups) if not group[1]), None)
        for group in sorted(branches, key=lambda group: (group != main, members[group][0])):
            session, agent = group
            # The branch, the other lines of its responses, and the tool results that hang on these.
            names = {self.lines[at].response for at in branches[group]} - {""}
            responses = [at for name in names for at in self.responses[name]]
            results = [result for at in responses for result in self.results.get(at, ())]
            chosen = branches[group].union(responses, results)
            if not any(self.lines[at].message for at in chosen):
                continue
            meta: dict[str, Scalar] = {"off_branch": len(set(members[group]) - chosen)}
            if group != main:
                meta["parent"] = session if agent else (main or group)[0]
            elif origin := self.lines[min(chosen)].text("forkedFrom.sessionId"):
                meta["parent"] = origin
            name = "/".join(part for part in (session or stem, agent) if part)
            yield name, [self.lines[at] for at in sorted(chosen)], meta

    def _group(self, at: int) -> tuple[str, str]:
        """Return the session of a line, and its agent ("" = the session's own)."""
        line = self.lines[at]
        if not line.is_sidechain or line.agent:
            return line.session, line.agent or ""
        parent = self._parent(at)
        return line.session, line.uuid if parent is None else self.groups[parent][1]

    def _parent(self, at: int) -> int | None:
        """Return the parent of a line; if it is lost, the line before it of the same agent."""
        line = self.lines[at]
        if line.parent is None and not line.is_boundary:
            return None
        # Parents stand above their lines. One that stands below is damage, and following it might never end.
        parent = self.at.get(line.parent or "", at)
        if parent < at:
            other = self.lines[parent]
            return parent if (other.is_sidechain, other.agent) == (line.is_sidechain, line.agent) else None
        return self.before[at]


def conversation_of(
    name: str, branch: Sequence[SessionLine], meta: dict[str, Scalar], problems: Problems
) -> Conversation:
    """Return a branch of a tree of lines as a conversation."""
    history, responses = History(problems), dict[str, list[SessionLine]]()
    for line in branch:
        responses.setdefault(line.response or line.uuid, []).append(line)
    for group in responses.values():
        with problems.collect():
            first, messages, compactions = group[0], list(_messages(group, problems)), history.compactions
            is_summary = not first.is_boundary and first.at("isCompactSummary") is True and bool(history.messages)
            if not (first.is_boundary or is_summary):
                for message in messages:
                    history.add(message, first.below("message"))
                continue
            # The summary has a line of its own behind that of its compaction.
            is_known = bool(compactions) and not compactions[-1].summary and compactions[-1].after == history.last
            if history.messages and not (is_summary and is_known):
                tokens, head = first.typed("compactMetadata.preTokens", int), first.text(_KEPT)
                kept = head if any(message.id == head for message in history.messages) else None
                history.compact("", kept, tokens_before=tokens, time=first.time, hidden="it is not recorded")
            if is_summary:
                summary = "\n".join(message.text for message in messages)
                compactions[-1] = replace(compactions[-1], summary=summary, hidden="")
    return history.conversation(name, meta=meta)


def _messages(group: Sequence[SessionLine], problems: Problems) -> Iterator[Message]:
    """Yield the one message of a response's lines, or the messages of a user's line; nothing for other lines."""
    first, last = group[0], group[-1]
    if first.message is None or last.message is None:
        return
    place, content = first.message.place, first.message.at("content")
    if first.kind == "user":
        names = chain([first.uuid], (f"{first.uuid}.{n}" for n in count(1)))
        role = "system" if first.message.at("role") in ("system", "developer") else "user"
        said = recorded_messages({"role": role, "content": content}, place, problems, "claude_code", last.time)
        yield from (replace(message, id=name) for message, name in zip(said, names, strict=False))
        return
    parts = [line.at("message.content") for line in group]
    content = [one for part in parts for one in ([{"type": "text", "text": part}] if isinstance(part, str) else part)]
    logged = {"role": "assistant", "content": content}
    message, *results = recorded_messages(logged, place, problems, "claude_code", last.time)
    # Up to some 2.1.4x the earlier lines of a response have an unfinished count of its output. Hosts end with zeros.
    reported = (as_object(line.at("message.usage")) for line in group)
    told = [counts for counts in reported if any(map(counts.get, _COUNTS))]
    if told and isinstance(last.at("message.usage"), dict):
        last.message.record["usage"] = told[-1]
    yield replace(message, id=first.uuid, call=_call(last.message, last, problems))
    yield from (replace(result, id=f"{first.uuid}.{number}") for number, result in enumerate(results, 1))


_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _call(message: Fields, line: SessionLine, problems: Problems) -> Call | None:
    model, reported, managed = message.text("model"), message.at("usage"), "context_management"
    if model == "<synthetic>":  # a notice of the program's own: no model was called
        return None
    cost = dollars(line.at("costUSD"), line.below("costUSD"), problems)
    used, iterations = response_usage(reported, message.below("usage"), problems, cost)
    return Call(
        model,
        "anthropic",
        used,
        stop=message.text("stop_reason"),
        iterations=iterations,
        request_id=message.text("id") or line.response,  # as logs of the API, and streams, name it
        tier=tier(reported),
        edits=context_edits(message.at(managed), message.below(managed), problems),
    )
