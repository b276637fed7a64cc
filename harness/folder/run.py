"""Read a run folder: its tables as data frames, its recordings, and the contexts that were sent.

Everything here reads what `store.py` wrote and decides nothing. `harness/api.py` makes figures of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from ...scenarios.errors import RunError
from ...scenarios.model import Conversation, Message
from ...scenarios.spec import nearest
from ...scenarios.view import Messages, Span
from ...strategies.events import Event
from .schema import SCHEMAS
from .store import ResultPart, missing_parts, read_conversations, read_manifest


@dataclass(frozen=True)
class Run:
    """A run folder. Tables and their columns are those of `columns.COLUMNS`."""

    folder: Path
    chosen: frozenset[str] | None = None
    """The conversations that `table`, `arrow` and `conversations` are confined to; None = all of them."""
    shard: int | None = None
    """The only one that is read, of a run that still goes on; None = all."""

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was run, on what, with which versions."""
        return read_manifest(self.folder)

    def table(self, name: str) -> pd.DataFrame:
        """One table, whole, in the order of the conversations, then of the strategies."""
        frame: pd.DataFrame = self.arrow(name).to_pandas()
        return frame

    def arrow(self, name: str) -> pa.Table:
        """The same as an Arrow table, for those who go through every row."""
        if name not in SCHEMAS:
            raise RunError(f"a run has no table {name!r}{nearest(name, SCHEMAS) or '; it has ' + ', '.join(SCHEMAS)}")
        parts = sorted((self.folder / name).glob("*.parquet"))
        with self.readable():
            tables = [pq.read_table(part, schema=SCHEMAS[name]) for part in parts]
        whole = pa.concat_tables(map(self._confined, tables)) if tables else SCHEMAS[name].empty_table()
        return whole.unify_dictionaries().combine_chunks()

    def _confined(self, table: pa.Table) -> pa.Table:
        """The rows of the chosen conversations."""
        if self.chosen is None:
            return table
        return table.filter(pc.is_in(table.column("conversation").cast(pa.string()), pa.array(sorted(self.chosen))))

    def conversations(self) -> Iterator[Conversation]:
        """All recorded conversations, one after the other."""
        with self.readable():
            for part in sorted((self.folder / "recordings").glob("*.jsonl.zst")):
                found = read_conversations(part)
                yield from (each for each in found if self.chosen is None or each.id in self.chosen)

    def conversation(self, name: str) -> Conversation:
        """One recorded conversation by its id. Raises RunError if it is not in the run."""
        with self.readable():
            for part in sorted((self.folder / "conversations").glob("*.parquet")):
                if name in pq.read_table(part, columns=["conversation"]).column(0).to_pylist():
                    found = read_conversations(self.folder / "recordings" / f"{part.stem}.jsonl.zst")
                    return next(each for each in found if each.id == name)
        raise RunError(f"{self.folder}: no conversation {name!r} is in this run")

    def contexts(self, conversation: Conversation, strategy: str) -> Iterator[Messages]:
        """What was sent at each step of a cell, rebuilt from the log. Raises RunError if the strategy was not run."""
        known = self.manifest["plan"]["strategies"]
        if strategy not in known:
            others = nearest(strategy, dict.fromkeys(known)) or f"; these were: {', '.join(known)}"
            raise RunError(f"{self.folder}: {strategy} was not run here{others}")
        return self._rebuilt(conversation, strategy, self._written(conversation.id, strategy))

    def _rebuilt(self, conversation: Conversation, strategy: str, written: tuple[Message, ...]) -> Iterator[Messages]:
        rows = self.rows("steps", conversation.id, strategy, ["kept", "added_from", "added_to"])
        return rebuild([tuple(row.values()) for row in rows], conversation.messages, written)

    def _written(self, conversation: str, strategy: str) -> tuple[Message, ...]:
        return tuple(message for message, _ in self.written(conversation, strategy))

    def probes(self, strategy: str) -> pd.DataFrame:
        """The rows of a strategy, or of a bound, in the table `probes`."""
        rows = self.table("probes")
        return rows[rows.strategy.astype(str) == strategy].reset_index(drop=True)

    def events(self, conversation: str, strategy: str) -> list[tuple[int, Event]]:
        """What a strategy did in a conversation, each with the number of its step, in order."""
        rows = self.rows("events", conversation, strategy)
        with self.readable():
            return [(row["step"], msgspec.json.decode(row["event"], type=Event)) for row in rows]

    def steps(self, conversation: str, strategy: str) -> list[dict[str, Any]]:
        """The rows of a cell in the table `steps`, in order."""
        return self.rows("steps", conversation, strategy)

    def written(self, conversation: str, strategy: str) -> list[tuple[Message, int]]:
        """The messages that a strategy wrote in a conversation, by their numbers, and their tokens."""
        rows = self.rows("contexts", conversation, strategy)
        with self.readable():
            return [(msgspec.json.decode(row["message"], type=Message), row["tokens"]) for row in rows]

    def all_written(self, strategy: str) -> Iterator[tuple[str, Message]]:
        """The messages that a strategy wrote, each with its conversation, in order."""
        if not (self.folder / "contexts").is_dir():
            return
        with self.readable():
            where = pc.field("strategy") == strategy
            rows = pq.read_table(self.folder / "contexts", columns=["conversation", "message"], filters=where)
            for row in rows.to_pylist():
                yield row["conversation"], msgspec.json.decode(row["message"], type=Message)

    def tokens(self, conversation: str) -> list[int]:
        """Of each recorded message of a conversation, in order."""
        return [row["tokens"] for row in self.rows("messages", conversation)]

    def failure(self, conversation: str, strategy: str) -> str | None:
        """Why a cell failed; None if it did not."""
        rows = self.rows("results", conversation, strategy)
        return next((row["detail"] for row in rows if row["status"] == "failed"), None)

    def rows(
        self, table: str, conversation: str, strategy: str | None = None, columns: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of a table that are about a conversation, or a cell: from the one file that has them.

        `columns`: those that are wanted; None = all.
        """
        shard, strategies = self._shards.get(conversation), self.manifest["plan"]["strategies"]
        if shard is None:
            return []
        path = ResultPart(self.folder, shard, strategies.index(strategy) if strategy in strategies else None).path(
            table
        )
        if not path.is_file():
            return []
        where = pc.field("conversation") == conversation
        if strategy is not None:
            where &= pc.field("strategy") == strategy
        with self.readable():
            if self.shard is None:
                part = pq.read_table(path, filters=where, columns=columns, use_threads=False)
            else:
                part = self._part(path).filter(where)
            found: list[dict[str, Any]] = (part if columns is None else part.select(columns)).to_pylist()
        return found

    def _part(self, path: Path) -> pa.Table:
        """One file, which is read again and again where there is one shard."""
        if path not in self._parts:
            self._parts[path] = pq.read_table(path, use_threads=False)
        return self._parts[path]

    @cached_property
    def _parts(self) -> dict[Path, pa.Table]:
        return {}

    @cached_property
    def _shards(self) -> dict[str, int]:
        """In which shard each conversation is."""
        with self.readable():
            parts = [
                (part, pq.read_table(part, columns=["conversation"]))
                for part in (self.folder / "conversations").glob(
                    "*.parquet" if self.shard is None else f"{self.shard:05d}.parquet"
                )
            ]
        return {name: int(part.stem) for part, table in parts for name in table.column("conversation").to_pylist()}

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Whatever a damaged part raises is one RunError."""
        try:
            yield
        except (pa.ArrowException, OSError, zstandard.ZstdError, msgspec.DecodeError, StopIteration) as error:
            raise RunError(f"{self.folder}: a part is damaged ({error}): run again with --overwrite") from None


def load(folder: str | Path) -> Run:
    """Open a run folder. Raises RunError if there is none, if it is not finished, or if parts of it are gone."""
    run = Run(Path(folder))
    manifest = run.manifest
    if not manifest["complete"]:
        raise RunError(f"{folder}: this run is not finished: give the same `ctxbench run` command again to go on")
    missing = missing_parts(run.folder, manifest["shards"], len(manifest["plan"]["strategies"]))
    if missing:
        raise RunError(
            f"{folder}: {len(missing)} parts are missing ({missing[0]} …): give the same `ctxbench run` again"
        )
    return run


def rebuild(
    entries: Iterable[tuple[int, Sequence[int], Sequence[int]]],
    recording: Sequence[Message],
    written: Sequence[Message],
) -> Iterator[Messages]:
    """Every context of a cell from its log entries (kept, added_from, added_to), in order of the steps.

    Numbers below the recording's length are its messages, those from there on the written ones.
    """
    context, size = Messages(), len(recording)
    for kept, starts, stops in entries:
        context = context[:kept]
        for start, stop in zip(starts, stops, strict=True):
            span = Span(recording, start, stop) if start < size else Span(written, start - size, stop - size)
            context = context + Messages((span,))
        yield context
