"""Messages that are no longer sent verbatim, as memories: texts that can be searched (000 §2.1, §3.3).

Shared by retrieval (S4) and layered memory (S5): their common parameters, the split between recent turns and memories,
what a memory is, its type and importance, the one system message in which memories are sent, and the two searches, by
vectors and by words. The archive (S7) searches with the same two.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import filterfalse
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.language import Language, is_decision, sentences, terms, words
from ctxbench.metrics.rows import Rows
from ctxbench.metrics.tfidf import Scores, TfIdf
from ctxbench.metrics.values import values
from ctxbench.scenarios.model import Message, Role
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt, Share
from ctxbench.scenarios.view import Messages

from ..base import Context, Grown, StrategyContext, texts
from ..events import OverBudget
from .fact_extraction import is_preference
from .language import ConversationLanguage, LanguageSetting, moment
from .passages import both_ends, passages
from .units import Dialogue, room_beside_systems

Place = Literal["start", "end"]

# Ours, in the manner of the design's heading of a summary: it gives no wording for memories.
FORM = texts("memories")
QUOTE, QUOTE_WITHOUT_TIME = texts("quote"), texts("quote_without_time")
SPEAKERS: dict[Role, dict[Language, str]] = {role: texts(f"speaker_{role}") for role in get_args(Role)}
"""Names that a quote gives to speakers without one, by role and language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """The parameters that `retrieval` and `layered` share; `retrieval` explains them."""

    limit: PositiveInt = 10
    recent: PositiveInt = 3
    slack: NonNegativeInt = 0
    max_memory_tokens: PositiveInt = 200
    passages: PositiveInt = 8
    query_characters: PositiveInt = 2000
    place: Place = "start"
    max_tokens: PositiveInt | None = None
    memory_share: Share = 0.2
    language: LanguageSetting = "auto"

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent never exceed, if tokens are limited."""
        return self.max_tokens


class Memory(msgspec.Struct, frozen=True, gc=False):
    """A message, or a passage of one."""

    source: str  # id of the message
    role: Role
    text: str
    kind: str  # one of `KINDS`
    importance: float  # 0 to 10: by type, more for the user's messages, less for a text of few words
    name: str = ""  # the speaker, where the recording names one
    time: float | None = None  # recorded time of the message

    @property
    def search_text(self) -> str:
        """The text that is searched, with the recorded speaker: questions name people, and people say "I"."""
        return f"{self.name}: {self.text}" if self.name else self.text

    def quote(self, language: Language) -> str:
        """Return the text behind who said it and, where the recording knows, when (UTC)."""
        speaker = self.name or SPEAKERS[self.role][language]
        time = moment(self.time, "minutes")
        form = (QUOTE if time else QUOTE_WITHOUT_TIME)[language]
        return form.format(time=time, speaker=speaker, text=self.text)


class ConversationMemory:
    """A growing history, cut in two: the recent turns, and the memories of everything before them.

    System messages are in neither: all of them are sent. A message is made into memories once. If messages change (a
    stage before this one rewrote them), the memories of the common start stay, and the rest is read again.
    """

    def __init__(self, services: StrategyContext, rules: RecallSettings) -> None:
        self._services, self._rules = services, rules
        self._known: dict[str, tuple[Message, tuple[Memory, ...]]] = Grown()
        self._dialogue = Dialogue(services)
        self.messages = Messages()
        """All messages but system messages."""
        self.memories: list[Memory] = []
        self.places: list[int] = []
        """For each memory, the place of its message in `messages`."""
        self.changed = 0
        """The first memory that differs from the reading before."""
        self.start = 0
        """Place in `messages` where the recent turns start."""
        self.room: int | None = None
        """Tokens that memories may take."""

    def read(self, history: Messages) -> None:
        same = self._dialogue.read(history)
        messages, users = self._dialogue.messages, self._dialogue.users
        self.messages = messages
        past = len(users) - self._rules.recent
        past -= past % (self._rules.slack + 1)
        # The recent turns begin where a cut breaks nothing.
        start = self._dialogue.units.before(users[past]) if past > 0 else 0
        budget = self._rules.max_tokens
        if budget is not None and (start > 0 or self._services.total(history) > budget):
            start = max(start, self._fitting_start(history, budget))
        common = min(same, start, self.start)
        self.changed = bisect_left(self.places, common)
        del self.memories[self.changed :], self.places[self.changed :]
        for at, message in enumerate(messages[common:start], common):
            memories = self._memories(message)
            self.memories += memories
            self.places += [at] * len(memories)
        self.start = start

    @property
    def turn(self) -> str:
        """Id of the newest user message, which names the turn; empty without a user message."""
        users = self._dialogue.users
        return self.messages[users[-1]].id if users else ""

    def question(self) -> str:
        """Return the text to search for, that of the question; empty if there is none."""
        message = self._dialogue.question()
        return "" if message is None else both_ends(message.text.strip(), self._rules.query_characters)

    def context(self, context: Context, memory: Message | None) -> Context:
        """Return the context to send: system messages, the memory message, the recent turns.

        With `place="end"` the memory message comes before the newest turn.
        """
        history, start = context.messages, self._dialogue.place(self.start)
        head = self._services.systems(history[:start])
        if memory is None:
            return context if len(head) == start else context.sending(self._services.whole(head + history[start:]))
        newest = self._dialogue.units.before(self._dialogue.users[-1]) if self._dialogue.users else 0
        at = start if self._rules.place == "start" else max(start, self._dialogue.place(newest))
        return context.sending(self._services.whole(head + history[start:at] + Messages.of((memory,)) + history[at:]))

    def _fitting_start(self, history: Messages, budget: int) -> int:
        """Return the first unit from which all fits beside system messages and memories, and set `room`.

        The newest unit comes before memories.
        """
        share = int(budget * self._rules.memory_share)
        starts, total = self._dialogue.units.starts, self._services.total
        left = room_beside_systems(self._services, history, budget)
        newest = total(self.messages[starts[-1] :]) if starts else 0
        self.room = max(0, min(share, left - newest))
        if newest > left:
            self._services.record(OverBudget("the newest message does not fit", budget - left + newest, budget))
            self.room = min(share, left)
            return len(self.messages)
        return starts[bisect_left(starts, self._services.fit(self.messages, left - self.room))] if starts else 0

    def _memories(self, message: Message) -> tuple[Memory, ...]:
        """Return the memories that a message becomes, its passages. A message without text becomes none.

        Tool calls are part of the text, one line each: their arguments name the subject of the search.
        """
        known = self._known.get(message.id)
        if known is not None and known[0] == message:
            return known[1]
        rules, role, name = self._rules, message.role, message.name
        text = "\n".join((message.text.strip(), *(f"{call.name} {call.arguments}" for call in message.calls))).strip()
        # When the message was complete, or else when its call was started.
        time = message.time if message.time is not None or message.call is None else message.call.started
        memories = []
        for passage in passages(text, rules.max_memory_tokens, rules.passages, self._services.text_tokens):
            kind = kind_of(role, passage)
            importance = KINDS[kind][1] + (BY_USER if role == "user" else 0.0)
            importance += TRIVIAL if len(words(passage[:200])) < TRIVIAL_WORDS else 0.0
            memories.append(Memory(message.id, role, passage, kind, importance, name, time))
        self._known[message.id] = message, tuple(memories)
        return tuple(memories)


class NoteMessage:
    """A system message of lines, whose id is the strategy's name and a digest of the text.

    The same text is the same message, written anew only when the text changes. Where an earlier stage of the same kind
    has put that message into the history, it is left out: no two messages of a context have one id.

    Its form is in the `language`, which the strategy keeps up to date.
    """

    def __init__(
        self, services: StrategyContext, name: str, forms: Mapping[Language, str], language: ConversationLanguage
    ) -> None:
        self._services, self._name, self._forms, self._language = services, name, forms, language
        self._lines: tuple[list[str], int | None] = [], None
        self._note: tuple[Message | None, list[int]] = None, []
        self._sizes: dict[str, int] = Grown()  # tokens of each line

    def of(self, lines: list[str], room: int | None, history: Messages) -> tuple[Message | None, list[int]]:
        """Return the message with the lines that fit into `room` tokens, first lines first, and their places.

        The message is None if no line fits, or if the history has it. The lines replace `{lines}` in the form.
        """
        if self._lines != (lines, room):
            self._lines, self._note = (lines, room), self._write(lines, room) if lines else (None, [])
        note, _ = self._note
        if note is not None and any(message.id == note.id for message in self._services.systems(history)):
            return None, []
        return self._note

    def _write(self, lines: list[str], room: int | None) -> tuple[Message | None, list[int]]:
        form, places = self._forms[self._language.decided], list(range(len(lines)))
        if room is not None:
            places, left, sizes = [], room - self._services.text_tokens(form), self._sizes
            new = filterfalse(sizes.__contains__, lines)
            sizes.update((line, self._services.text_tokens(line) + 1) for line in new)
            for at, tokens in enumerate(map(sizes.__getitem__, lines)):
                if tokens <= left:
                    places.append(at)
                    left -= tokens
        # Tokens of the whole text may exceed the sum of those of its lines.
        while places:
            text = form.replace("{lines}", "\n".join(lines[at] for at in places))
            note = Message(f"{self._name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}", "system", text)
            if room is None or self._services.tokens(note) <= room:
                return note, places
            places.pop()
        return None, []


Tier = Literal["working", "short", "long"]
# 5.0, and 7.0 for a summary, are the design's (000 §3.3.2, §3.2.2); it is silent on the rest.
KINDS: dict[str, tuple[Tier, float]] = {
    "current_task": ("working", 5.0),
    "tool_results": ("working", 5.0),
    "session_context": ("short", 5.0),
    "recent_decisions": ("short", 7.0),
    "preference": ("long", 7.0),
    "fact": ("long", 5.5),
    "procedure": ("long", 6.0),
    "session_summary": ("long", 7.0),
}
"""Tier of `layered` where a memory of each type (000 §3.3.2, `MemoryType`) begins, and its importance, 0 to 10."""
BY_USER, TRIVIAL, TRIVIAL_WORDS = 1.0, -3.0, 4
"""Corrections of the importance: for the user's messages, and for texts of fewer words ("ok", 好的)."""

_SUMMARY = re.compile(
    r"\s*(?:\W{0,4})(?:总结|小结|摘要|综上|总之|summary|in summary|to sum up|to summari[sz]e)", re.IGNORECASE
)
_STEPS = re.compile(r"(?:^|\n)\s{0,99}(?:步骤|第[一二三四五六七八九十\d]步|step \d|\d{1,2}[.)、]\s)", re.IGNORECASE)
_REQUEST = re.compile(
    r"[?？]|请|帮我|帮忙|麻烦|\bplease\b|\b(?:can|could|would) you\b|\bI (?:need|want|would like)\b", re.IGNORECASE
)


@lru_cache(1 << 14)
def kind_of(role: Role, text: str) -> str:
    """Return the type of a memory (000 §3.3.2) by the first rule that holds.

    A tool's result; a text that begins as a summary; the user's preference; a decision, whoever states it; two or
    more numbered steps; a statement (not a question) with a number, a date, an identifier or a name in it; a request of
    the user; anything else is the session's context.
    """
    if role == "tool":
        return "tool_results"
    if _SUMMARY.match(text):
        return "session_summary"
    if role == "user" and is_preference(text):
        return "preference"
    if is_decision(text):
        return "recent_decisions"
    if len(_STEPS.findall(text)) >= 2:
        return "procedure"
    if any(values(sentence) for sentence in sentences(text) if not sentence.endswith(("?", "？"))):
        return "fact"
    return "current_task" if role == "user" and _REQUEST.search(text) else "session_context"


RowNumbers = NDArray[np.int64]


class TextSearch:
    """A search over texts. Each text has a row, which it keeps, and is prepared once; scores are by row."""

    def __init__(self) -> None:
        self._known: dict[str, int] = Grown()

    def rows(self, texts: Sequence[str]) -> RowNumbers:
        """Return the row of each text, after taking in the new ones: all of them, or none if that fails."""
        known = self._known
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            self._take(new)
            known.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
        return np.fromiter((known[text] for text in texts), np.int64, len(texts))

    def scores(self, query: str) -> Scores:
        """Return how well each row matches."""
        raise NotImplementedError

    def _take(self, texts: list[str]) -> None:
        raise NotImplementedError


SPARSE = 0.25  # share of coordinates other than 0 below which vectors are kept by coordinate
WAITING = 128


class SparseVectors:
    """Vectors by coordinate: those that have it, and their values. A query reads the few coordinates that it has.

    The newest vectors wait in columns until there are `WAITING`: entering them together takes a fraction of the time.
    """

    def __init__(self, dimension: int) -> None:
        # For each coordinate the rows of the vectors that have it, and their values there. Arrays of Python, because
        # they grow in place and are cheap to copy.
        self._rows, self._values = [array("i")] * dimension, [array("f")] * dimension
        self._own: set[int] = set()  # coordinates whose arrays no other place and no checkpoint shares
        self._size = 0
        self._waiting, self._number_waiting = np.zeros((dimension, WAITING), np.float32), 0

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that takes out the vectors added since. Arrays are copied before they grow."""
        rows, values, size = list(self._rows), list(self._values), self._size
        waiting, number_waiting = self._waiting, self._number_waiting
        self._own = set()

        def restore() -> None:
            self._rows[:], self._values[:] = rows, values
            self._own, self._size = set(), size
            self._waiting, self._number_waiting = waiting, number_waiting

        return restore

    def add(self, vectors: NDArray[np.float32]) -> None:
        before, number = self._number_waiting, self._number_waiting + len(vectors)
        if number < WAITING:
            self._waiting[:, before:number], self._number_waiting = vectors.T, number
        else:
            self._enter(np.hstack((self._waiting[:, :before], vectors.T)))
            self._waiting, self._number_waiting = np.zeros_like(self._waiting), 0  # a checkpoint may have the old one

    def _enter(self, columns: NDArray[np.float32]) -> None:
        all_rows, all_values, own = self._rows, self._values, self._own
        places, rows = np.nonzero(columns)  # in the order of the coordinates, so that each grows once
        new_rows, new_values = (rows + self._size).astype(np.int32).tobytes(), columns[places, rows].tobytes()
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        bounds = (np.append(starts, len(rows)) * 4).tolist()  # a row and a value have four bytes each
        for place, start, stop in zip(places[starts].tolist(), bounds[:-1], bounds[1:], strict=True):
            if place not in own:
                all_rows[place], all_values[place] = all_rows[place][:], all_values[place][:]
                own.add(place)
            all_rows[place].frombytes(new_rows[start:stop])
            all_values[place].frombytes(new_values[start:stop])
        self._size += columns.shape[1]

    def products(self, query: NDArray[np.float32]) -> Scores:
        """Return the inner product of a query with each vector, summed in the order of the coordinates."""
        places = np.flatnonzero(query)
        if not len(places):
            return np.zeros(self._size + self._number_waiting)
        weights = query[places].astype(np.float64)
        # All columns, since NumPy adds up row by row, as the product of the others does, unless there is one column.
        waiting: Scores = ((self._waiting[places] * weights[:, None]).sum(axis=0) + 0.0)[: self._number_waiting]
        if not self._size:
            return waiting
        from scipy.sparse import csc_array  # lazy: 0.1 s to import, and few conversations have so many texts

        columns = [self._rows[place] for place in places.tolist()]
        bounds = np.cumsum([0, *map(len, columns)], dtype=np.int32)
        rows = np.frombuffer(b"".join(columns), np.int32)
        values = np.frombuffer(b"".join([self._values[place] for place in places.tolist()]), np.float32)
        entered = csc_array((values, rows, bounds), (self._size, len(places))) @ weights
        return np.concatenate((entered, waiting))


class VectorSearch(TextSearch):
    """Unit vectors of texts. A search compares the query with all of them: cosines. Embedders raise ModelError."""

    def __init__(self, services: StrategyContext) -> None:
        super().__init__()
        self._services = services
        self._vectors: Rows[np.float32] | SparseVectors | None = None
        self._query: tuple[str, NDArray[np.float32]] | None = None

    def scores(self, query: str) -> Scores:
        if self._vectors is None:
            return np.zeros(0)
        if self._query is None or self._query[0] != query:
            self._query = query, self._services.embed([query], query=True)[0]
        vectors, vector = self._vectors, self._query[1]
        cosines = vectors.products(vector) if isinstance(vectors, SparseVectors) else vectors.all @ vector
        # Rounded to 6 decimals: later digits differ between machines, and must not change an order.
        return cosines.astype(np.float64, copy=False).round(6)

    def _take(self, texts: list[str]) -> None:
        vectors = self._services.embed(texts)
        if self._vectors is None:
            width, is_sparse = vectors.shape[1], np.count_nonzero(vectors) < SPARSE * vectors.size
            self._vectors = SparseVectors(width) if is_sparse else Rows(np.float32, width)
        self._vectors.add(vectors)


class WordSearch(TextSearch):
    """Texts as bags of terms, scored by the share of the query's terms that they have; rare ones weigh more."""

    def __init__(self) -> None:
        super().__init__()
        self._index = TfIdf()

    def scores(self, query: str) -> Scores:
        return self._index.overlap(terms(query))

    def _take(self, texts: list[str]) -> None:
        self._index.add(map(terms, texts))


class MemoryRows:
    """The rows of memories in a list that grows at its end, and now and then is cut."""

    def __init__(self, index: TextSearch) -> None:
        self._index = index
        self._rows: Rows[np.int64] = Rows(np.int64)

    def cut(self, size: int) -> None:
        """Forget the memories from number `size` on, which are others now."""
        self._rows.size = min(size, self._rows.size)

    def scores(self, memories: Sequence[Memory], query: str) -> Scores:
        self._rows.add(self._index.rows([memory.search_text for memory in memories[self._rows.size :]]))
        return self._index.scores(query)[self._rows.all]
