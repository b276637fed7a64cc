"""Compaction by a client: at a threshold it rewrites its own history, mostly to a summary and the newest messages.

`ClientHistory` is the history as the client has it. A `Client` is a strategy that says when it is rewritten,
and to what; a `CompactingClient` has a model for it. All of them share this, where no source says otherwise:

- Tokens are counted in the run's encoding, those of system messages and tool schemas included.
- System messages stay, in front.
- A call and its results stay or go together, so rather more is kept than less.
- A user's message that waits for its answer stays: agents compact after the answer before it.
- Summaries are messages of the user, as agents send them. Prompts are those of `summary`.
- If the model fails, nothing is replaced, and the next call tries again.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import PositiveInt
from ctxbench.scenarios.view import Messages

from ..base import Context, StrategyContext, View, data
from ..events import Cleared, Summarised
from .language import LanguageSetting
from .summarize import Summariser
from .units import NOTHING, Dialogue, OrphanedResults, Units


class ClientHistory:
    """The history of one conversation as its client has rewritten it: what replaced its start, and what came since."""

    def __init__(self, services: StrategyContext, name: str, summariser: Summariser | None = None) -> None:
        """Open a conversation. `name` begins the ids of what is written; `write` and `summarise` take a summariser."""
        self.services, self._name, self._summariser = services, name, summariser
        self.messages = NOTHING
        """Without system messages."""
        self.answered = 0
        """Place after the newest answer of the model; 0 if there is none."""
        self.given_up = False
        """An attempt failed for good: no other is made."""
        self.pending = 0, 0
        """Messages that are being summarised beside the calls, and the calls until that is done; 0 = nothing is."""
        self._dialogue, self._units, self._orphans = Dialogue(services), Units(), OrphanedResults(services)
        # The first `_covered` messages of the dialogue are what `_replacement` stands for.
        self._replacement, self._covered = NOTHING, 0
        self._covered_ids: set[str] = set()
        # Place of each covered message in the dialogue.
        self._places: dict[str, int] = {}
        self._written: set[str] = set()
        self._context = Context(NOTHING)

    def read(self, context: Context) -> bool:
        """Take the history as it is now. False if it has nothing new.

        A stage before this one may have changed messages that were replaced: they stay replaced. What it has taken away
        of those that were kept is no longer sent.
        """
        before = len(self._dialogue.messages)
        same = self._dialogue.read(context.messages)
        dialogue, self._context = self._dialogue.messages, context
        if self._summariser is not None:
            self._summariser.language.read(context.messages)
        if same < self._covered:
            self._covered = next((at for at, m in enumerate(dialogue) if m.id not in self._covered_ids), len(dialogue))
            self._places = {message.id: at for at, message in enumerate(dialogue[: self._covered])}
            known = self._written.union(self._places)
            self._replacement = Messages.of(tuple(message for message in self._replacement if message.id in known))
        self._orphans.read(dialogue[max(same, self._covered) :])
        self._join()
        return not same == before == len(dialogue)

    def context(self) -> Context:
        context = self._context
        if not self._covered and not self._replacement:
            return context
        at = self._dialogue.place(self._covered)
        sent = self._with_systems(self.services.systems(context.messages[:at]))
        return context.sending(self.services.whole(sent + context.messages[at:]))

    def _with_systems(self, systems: Messages) -> Messages:
        """Return the replacement with system messages: in front, but none before a message that it came after."""
        before = self._dialogue.before[: len(systems)]
        if not before or before[-1] == 0:
            return systems + self._replacement
        sent, passed = NOTHING, 0
        # From the end: the place of each recorded message, or for what was written that of the next recorded one.
        places = [self._covered]
        for message in reversed(self._replacement):
            places.append(self._places.get(message.id, places[-1]))
        for message, place in zip(self._replacement, reversed(places[1:]), strict=True):
            upto = bisect_right(before, place)
            sent, passed = sent + systems[passed:upto] + (message,), upto
        return sent + systems[passed:]

    def tokens(self, stop: int | None = None) -> int:
        """Return the tokens of a request with the first `stop` messages, by default with all of them."""
        services, context = self.services, self._context
        fixed = services.total(services.systems(context.messages)) + services.schemas(context.tools)
        return fixed + services.total(self.messages[:stop])

    @property
    def used(self) -> int:
        """Usage of the last response, as providers report it: its prompt, cached or not, and its output."""
        return self.tokens(self.answered) if self.answered else 0

    @property
    def settled(self) -> int:
        """Place of the first of the user's messages that wait for their answer, or the end."""
        at = len(self.messages)
        while at > self.answered and self.messages[at - 1].role == "user":
            at -= 1
        return at

    def floor(self, at: int) -> int:
        """Return the nearest place at or before `at` where a cut separates no call from its results."""
        return self._units.before(at) if at > 0 else 0

    def ceiling(self, at: int) -> int:
        """Return the nearest place at or after `at` where a cut separates no call from its results."""
        starts = self._units.starts
        place = bisect_left(starts, at)
        return starts[place] if place < len(starts) else len(self.messages)

    def fit(self, tokens: int, stop: int | None = None) -> int:
        """Return where the newest of the first `stop` messages begin that take at most so many tokens."""
        messages = self.messages[:stop]
        return self.ceiling(self.services.fit(messages, tokens) if tokens > 0 else len(messages))

    def summarise(self, stop: int, start: int = 0, before: Messages = NOTHING, after: Messages = NOTHING) -> bool:
        """Replace messages[start:stop] by a summary, which stands between those of them that are kept.

        False if nothing would be new in it, or if the model failed.
        """
        if not self.forgotten(start, stop, before + after):
            return False
        text = self.write(self.messages[start:stop])
        if text is None:
            return False
        self.replace(start, stop, before + self.notes(text, stop) + after, text)
        return True

    def forgotten(self, start: int, stop: int, kept: Iterable[Message] = ()) -> tuple[str, ...]:
        """Return the ids of messages[start:stop] that are neither kept nor written by this client."""
        ids = self._written.union(message.id for message in kept)
        return tuple(message.id for message in self.messages[start:stop] if message.id not in ids)

    def write(self, messages: Messages, earlier: Message | None = None, most: int | None = None) -> str | None:
        """Return a summary of the messages, of at most `most` tokens; None if the model failed, which is recorded."""
        assert self._summariser is not None
        summariser = self._summariser if most is None else dataclasses.replace(self._summariser, max_tokens=most)
        return summariser.write(self.services, earlier, tuple(messages), "the history stays as it is")

    def notes(self, text: str, stop: int) -> Messages:
        """Return the messages that a summary of messages[:stop] is sent as."""
        assert self._summariser is not None
        words = data("clients").get(self._name, {})
        form = words.get("summary")
        note = self.note(self._summariser.headed(text) if form is None else form.replace("{summary}", text), stop)
        answer = words.get("answer")
        return Messages.of((note,) if answer is None else (note, Message(f"{note.id}:answer", "assistant", answer)))

    def note(self, text: str, stop: int) -> Message:
        """Return a message of the user that stands for messages[:stop], or for some of them."""
        return Message(f"{self._name}:{self.messages[stop - 1].id}", "user", text)

    def wrote(self, message: Message) -> bool:
        """Return whether the message is a summary or a note of this client."""
        return message.id in self._written

    def replace(self, start: int, stop: int, by: Messages, summary: str | None = None) -> None:
        """Replace messages[start:stop]. With a `summary`, it covers those that are not in their replacement."""
        gone = self.messages[start:stop]
        if summary is not None:
            ids = self.forgotten(start, stop, by)
            self.services.record(Summarised(ids, summary, by=self._name))
        kept = {message.id for message in by}
        self._orphans.note_summarised(message for message in gone if message.id not in kept)
        self._written.update(kept.difference(message.id for message in gone))
        beyond = max(0, stop - len(self._replacement))
        for at, message in enumerate(self._dialogue.messages[self._covered : self._covered + beyond], self._covered):
            self._places[message.id] = at
            self._covered_ids.add(message.id)
        self._replacement = self.messages[:start] + by + self._replacement[stop:]
        self._covered += beyond
        self._join()

    def clear(self, places: Iterable[int], text: str) -> None:
        messages, new, passed = self.messages, NOTHING, 0
        cleared, saved = [], 0
        for at in places:
            stand_in = replace(messages[at], text=text)
            saved += self.services.tokens(messages[at]) - self.services.tokens(stand_in)
            cleared.append(stand_in.id)
            new, passed = new + messages[passed:at] + (stand_in,), at + 1
        if cleared:
            self.replace(0, passed, new)
            self.services.record(Cleared(tuple(cleared), saved))

    def _join(self) -> None:
        messages = self._replacement + self._dialogue.messages[self._covered :]
        self.messages, at = messages, len(messages)
        self._units.read(messages)
        while at and messages[at - 1].role != "assistant":
            at -= 1
        self.answered = at


class Client:
    """A strategy of a provider's client or of an agent, with a row of its own in `data/clients.toml`.

    By default it rewrites its history before a call where its rule says so (`compact`).
    """

    copyable: ClassVar[bool] = True
    name: ClassVar[str]
    """Name of its row. The ids of what it writes begin with it."""
    row: ClassVar[dict[str, Any]]
    source: ClassVar[str]
    fails: ClassVar[str]
    family: ClassVar[str]

    def __init_subclass__(cls, name: str = "") -> None:
        if name:  # none of a base class, and none when `slots` make the class anew
            cls.name, cls.row = name, data("clients")[name]
            cls.source, cls.fails, cls.family = (cls.row[key] for key in ("source", "fails", "family"))

    def start(self, services: StrategyContext) -> View:
        history = ClientHistory(services, self.name, self._summariser())

        def view(context: Context) -> Context:
            if history.read(context):
                self.compact(history)
            return history.context()

        return view

    def _summariser(self) -> Summariser | None:
        return None

    def compact(self, history: ClientHistory) -> None:
        """Rewrite the history if the rule says so."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactingClient(Client):
    """A strategy that has a model summarise its history."""

    max_summary_tokens: PositiveInt = 4096
    language: LanguageSetting = "auto"
    summariser: str = ""

    max_result: ClassVar[int | None] = None  # characters of a tool's result that the summariser is shown; None = all

    def __post_init__(self) -> None:
        window, limit = getattr(self, "window", None), getattr(self, "trigger", 1)
        if window is not None and limit < 1:
            raise ValueError(f"window={window} leaves no tokens for the history: its limit would be {limit}")

    def _summariser(self) -> Summariser:
        return Summariser.of(self, self.name, kind=self.row["prompt"], max_result=self.max_result)
