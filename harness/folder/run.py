"""Read a run folder: its tables as data frames, its recordings, and the contexts that were sent.

Everything here reads what `store.py` wrote and decides nothing. `harness/api/` makes figures of it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from ...metrics.models import listed
from ...metrics.tokens import PRIMING
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation, Media, Message, Role, independent_units
from ...scenarios.spec import nearest
from ...scenarios.view import Messages
from ...strategies.events import Compressed, Event, Moved, Recalled, Summarised
from .contexts import Ints, LogColumns, LoggedContext, NumberSpan, rebuild
from .files import Damage
from .rows import PartRows
from .schema import SCHEMAS, Manifest
from .store import ResultPart, damage, is_part, read_conversations, read_manifest, shard_of, whole_shards

AT_ONCE = 200_000
"""Steps of a run that are in memory at a time where it is read piece by piece."""

# Bytes of a table up to which it is kept in memory once it was read.
_KEPT = 64 << 20


@dataclass(frozen=True)
class Run:
    """A run folder. Tables and their columns are those of `schema.COLUMNS`."""

    folder: Path
    chosen: frozenset[str] | None = None
    """Conversations that `table`, `arrow` and `conversations` are confined to; None = all of them."""
    shards: tuple[int, ...] | None = None
    """The only shards that are read: of a large run some at a time, or the one of a run that still goes on; None =
    all."""

    @cached_property
    def manifest(self) -> Manifest:
        """The plan of the run, with versions, digests and problems."""
        return read_manifest(self.folder)

    def table(self, name: str) -> pd.DataFrame:
        """Return one table, whole, in the order of the conversations, then of the strategies."""
        frame: pd.DataFrame = self.arrow(name).to_pandas()
        return frame

    def arrow(self, name: str) -> pa.Table:
        """Return one table as an Arrow table. Raises RunError if a run has no such table."""
        if name not in SCHEMAS:
            raise RunError(f"a run has no table {name!r}{nearest(name, SCHEMAS) or '; it has ' + ', '.join(SCHEMAS)}")
        if (known := self._tables.get(name)) is not None:
            return known
        with self.readable():
            tables = [pq.read_table(part, schema=SCHEMAS[name]) for part in self.files(name)]
        whole = pa.concat_tables(map(self.confined, tables)) if tables else SCHEMAS[name].empty_table()
        table = whole.unify_dictionaries().combine_chunks()
        if table.nbytes <= _KEPT:
            self._tables[name] = table
        return table

    def files(self, table: str) -> list[Path]:
        """Return the files of a table, in order."""
        paths = sorted(path for path in (self.folder / table).glob("*.parquet") if is_part(path.name))
        return [path for path in paths if self.shards is None or shard_of(path) in self.shards]

    def pieces(self, steps: int = AT_ONCE) -> Iterator[Run]:
        """Yield the run confined to some shards after the other: each has about so many steps, and at least a shard."""
        size, shards = 0, list[int]()
        results = self.table("results")
        by_shard = results.steps.groupby(results.conversation.map(self._shards)).sum()
        for shard, count in zip(by_shard.index.tolist(), by_shard.tolist(), strict=True):
            if shards and size + count > steps:
                yield replace(self, shards=tuple(shards))
                size, shards = 0, []
            size, shards = size + count, [*shards, shard]
        if shards:
            yield replace(self, shards=tuple(shards))

    def conversation_alone(self, name: str) -> Run:
        """Return the run confined to one of its conversations."""
        return replace(self, chosen=frozenset((name,)), shards=(self._shards[name],))

    @cached_property
    def _tables(self) -> dict[str, pa.Table]:
        """Tables that were read and are small: a report reads some of them a dozen times."""
        return {}

    def confined(self, table: pa.Table) -> pa.Table:
        """Return the rows of the chosen conversations."""
        if self.chosen is None:
            return table
        return table.filter(pc.is_in(table.column("conversation").cast(pa.string()), pa.array(sorted(self.chosen))))

    def conversations(self) -> Iterator[Conversation]:
        """Yield all recorded conversations."""
        with self.readable():
            for part in sorted((self.folder / "recordings").glob("*.jsonl.zst")):
                if self.shards is not None and shard_of(part) not in self.shards:
                    continue
                conversations = read_conversations(part)
                yield from (
                    conversation
                    for conversation in conversations
                    if self.chosen is None or conversation.id in self.chosen
                )

    @cached_property
    def media(self) -> dict[str, dict[int, tuple[Media, ...]]]:
        """Images, sounds, films and files of the recorded messages, by conversation and place in it."""
        shown = {
            conversation.id: {at: message.media for at, message in enumerate(conversation.messages) if message.media}
            for conversation in self.conversations()
        }
        return {name: places for name, places in shown.items() if places}

    def conversation(self, name: str) -> Conversation:
        """Return one recorded conversation by its id. Raises RunError if it is not in the run."""
        with self.readable():
            for part in sorted((self.folder / "conversations").glob("*.parquet")):
                if name in pq.read_table(part, columns=["conversation"]).column(0).to_pylist():
                    conversations = read_conversations(self.folder / "recordings" / f"{part.stem}.jsonl.zst")
                    return next(conversation for conversation in conversations if conversation.id == name)
        raise RunError(f"{self.folder}: no conversation {name!r} is in this run")

    def contexts(self, conversation: Conversation, strategy: str) -> Iterator[Messages]:
        """Yield the context of each step, rebuilt from the log. Raises RunError if the strategy was not run."""
        names = self.manifest.plan.strategies
        if strategy not in names:
            others = nearest(strategy, dict.fromkeys(names)) or f"; these were: {', '.join(names)}"
            raise RunError(f"{self.folder}: {strategy} was not run here{others}")
        written = tuple(message for message, _ in self.written(conversation.id, strategy))
        rows = self.rows("steps", conversation.id, strategy, ["kept", "added_from", "added_to"])
        entries = [(row["kept"], row["added_from"], row["added_to"]) for row in rows]
        return rebuild(entries, conversation.messages, written)

    def probes(self, strategy: str) -> pd.DataFrame:
        """Return the rows of a strategy, or of a bound, in the table `probes`."""
        rows = self.table("probes")
        return rows[rows.strategy.astype(str) == strategy].reset_index(drop=True)

    def events(self, conversation: str, strategy: str) -> list[tuple[int, Event]]:
        """Return the events of a strategy in a conversation, each with the number of its step, in order."""
        rows = self.rows("events", conversation, strategy)
        with self.readable():
            return [(row["step"], msgspec.json.decode(row["event"], type=Event)) for row in rows]

    def steps(self, conversation: str, strategy: str) -> list[dict[str, Any]]:
        """Return the rows of a strategy in a conversation in the table `steps`, in order."""
        return self.rows("steps", conversation, strategy)

    def written(self, conversation: str, strategy: str) -> list[tuple[Message, int]]:
        """Return the messages that a strategy wrote in a conversation, by their numbers, and their tokens."""
        rows = self.rows("contexts", conversation, strategy)
        with self.readable():
            return [(msgspec.json.decode(row["message"], type=Message), row["tokens"]) for row in rows]

    def all_written(self, strategy: str) -> Iterator[tuple[str, Message]]:
        """Yield the messages that a strategy wrote, each with its conversation, in order."""
        if not (self.folder / "contexts").is_dir():
            return
        with self.readable():
            where = pc.field("strategy") == strategy
            rows = pq.read_table(self.folder / "contexts", columns=["conversation", "message"], filters=where)
            for row in rows.to_pylist():
                yield row["conversation"], msgspec.json.decode(row["message"], type=Message)

    def tokens(self, conversation: str) -> list[int]:
        """Return the tokens of each recorded message of a conversation, in order."""
        return [row["tokens"] for row in self.rows("messages", conversation)]

    @cached_property
    def messages(self) -> pd.DataFrame:
        """The table `messages` in order, with `whole`: tokens of the conversation's messages before each."""
        messages = self.table("messages").sort_values(["conversation", "at"], kind="stable")
        whole = messages.groupby("conversation", observed=True).tokens.cumsum() - messages.tokens
        return messages.assign(whole=whole)

    def message_columns(self, *columns: str) -> dict[str, tuple[list[Any], ...]]:
        """Return columns of the table `messages` as plain lists, by conversation, in the order of the table."""
        # Not `groupby`, which makes a frame of each conversation: six times as slow for short ones.
        messages = self.table("messages")
        names, whole = messages.conversation.tolist(), [messages[column].tolist() for column in columns]
        cuts = np.flatnonzero(np.diff(messages.conversation.cat.codes)) + 1
        bounds = [0, *cuts.tolist(), len(names)] if names else []
        return {names[first]: tuple(values[first:last] for values in whole) for first, last in pairwise(bounds)}

    @cached_property
    def failures(self) -> dict[str, dict[str, str]]:
        """By strategy: the conversations in which it failed, and why."""
        results = self.table("results")
        failures: dict[str, dict[str, str]] = {}
        for row in results[results.status == "failed"].itertuples():
            failures.setdefault(str(row.strategy), {})[str(row.conversation)] = str(row.detail)
        return failures

    @cached_property
    def units(self) -> dict[str, str]:
        """The independent unit of each conversation."""
        rows = self.table("conversations")
        with self.readable():
            metas = map(msgspec.json.decode, rows.meta)
            return independent_units(dict(zip(map(str, rows.conversation), metas, strict=True)))

    def failure(self, conversation: str, strategy: str) -> str | None:
        """Return why a strategy failed in a conversation, or None if it did not."""
        rows = self.rows("results", conversation, strategy)
        return next((row["detail"] for row in rows if row["status"] == "failed"), None)

    def rows(
        self, table: str, conversation: str, strategy: str | None = None, columns: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of a table on a conversation, or on one under a strategy, from the one file that has them.

        `columns` names the columns to read; None = all.
        """
        shard, strategies = self._shards.get(conversation), self.manifest.plan.strategies
        if shard is None:
            return []
        number = strategies.index(strategy) if strategy in strategies else None  # a bound has no part of its own
        path = ResultPart(self.folder, shard, number).path(table)
        if not path.is_file():
            return []
        with self.readable():
            # A worker that answers a shard asks for each conversation and strategy: it reads each file once.
            if self.shards is not None:
                return self._part(path).rows(conversation, strategy, columns)
            where = pc.field("conversation") == conversation
            if strategy is not None:
                where &= pc.field("strategy") == strategy
            part = pq.read_table(path, filters=where, columns=columns, use_threads=False)
            rows: list[dict[str, Any]] = part.to_pylist()
        return rows

    def _part(self, path: Path) -> PartRows:
        """Return one file, cached: of a single shard it is read again and again."""
        if path not in self._parts:
            self._parts[path] = PartRows(path)
        return self._parts[path]

    @cached_property
    def _parts(self) -> dict[Path, PartRows]:
        return {}

    @cached_property
    def _shards(self) -> dict[str, int]:
        """In which shard each conversation is."""
        with self.readable():
            parts = [(part, pq.read_table(part, columns=["conversation"])) for part in self.files("conversations")]
        return {name: shard_of(part) for part, table in parts for name in table.column("conversation").to_pylist()}

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Raise whatever a damaged part raises as one RunError."""
        try:
            yield
        except (pa.ArrowException, OSError, zstandard.ZstdError, msgspec.DecodeError, StopIteration) as error:
            raise RunError(f"{self.folder}: a part is damaged ({error}): run again with --overwrite") from None


def load(folder: str | Path) -> Run:
    """Open a run folder. Raises RunError if there is none, if it is not finished, or if a file is not as written."""
    run = Run(Path(folder))
    manifest = run.manifest
    if not manifest.complete:
        raise RunError(f"{folder}: this run is not finished: give the same `ctxbench run` command again to go on")
    refuse_damage(run.folder, damage(run.folder, manifest))
    return run


def refuse_damage(folder: Path, found: Sequence[Damage]) -> None:
    """Raise RunError if files of a run are missing, changed, or not its own."""
    if found:
        others = f", and {len(found) - 1} more" if len(found) > 1 else ""
        repair = shlex.join(["ctxbench", "lab", "verify", str(folder), "--repair"])
        raise RunError(f"{folder}: {found[0]}{others}: make it again with `{repair}`")


def load_so_far(folder: str | Path) -> Run:
    """Open a run that may still go on, confined to the conversations that every strategy has been through.

    Raises RunError if there is no run, or none of its conversations is done.
    """
    run = Run(Path(folder))
    if run.manifest.complete:
        return load(folder)
    names: frozenset[str] = frozenset()
    shards = whole_shards(run.folder, len(run.manifest.plan.strategies))
    refuse_damage(run.folder, damage(run.folder, run.manifest, shards))
    for shard in shards:
        with run.readable():
            part = pq.read_table(ResultPart(run.folder, shard).path("conversations"), columns=["conversation"])
        names |= frozenset(part.column("conversation").to_pylist())
    if not names:
        raise RunError(f"{folder}: this run goes on, and no conversation is done yet")
    return Run(run.folder, names)


def uneven(failures: Mapping[str, Collection[str]], conversations: int) -> frozenset[str]:
    """Return the conversations that some strategies finished and some did not: figures leave them out.

    `failures` maps each strategy to those in which it failed. A strategy that failed in all of them does not count.
    """
    return frozenset(name for names in failures.values() if len(names) < conversations for name in names)


KEYS = ["conversation", "strategy"]
"""Columns that name a result."""
STEP = [*KEYS, "step"]
"""Columns that name a step."""

_BELOW_FOCUS = ("working", "archive", "rag")

LOG = ["added_from", "added_to", "marks", "tools_added"]
"""Columns of lists: as a data frame they take ten times the space of the rest, and `contexts.LogColumns` reads them."""


def recorded_models(run: Run) -> dict[str, int]:
    """Return how many calls of each model were recorded, the most first; empty where no recording names a model."""
    calls: Counter[str] = Counter()
    with run.readable():
        for file in run.files("messages"):
            # A file at a time: there is a row for every message.
            models = run.confined(pq.read_table(file, columns=["conversation", "model"])).column("model").drop_null()
            calls.update({str(count["values"]): count["counts"] for count in models.value_counts().to_pylist()})
    return dict(calls.most_common())


def windows(run: Run) -> dict[str, int]:
    """Return the context window that each conversation's calls are held against, in tokens.

    It is the one that the run names, or else that of the model which was recorded: the one with the most calls in
    the conversation. Where none was, or its window is not known, it is that of `schema.USUAL_MODEL`.
    """
    conversations = map(str, run.table("conversations").conversation)
    sizes = dict.fromkeys(conversations, run.manifest.window)
    if not run.manifest.plan.window:
        calls = run.table("messages")[["conversation", "model"]].dropna().astype(str).value_counts()
        for name, model in reversed(list(calls.index)):  # the model with the most calls is the last to be set
            listing = listed(model)
            if listing is not None and listing.window:
                sizes[name] = listing.window
    return sizes


Rows = Callable[[Run, str], pd.DataFrame]
"""Returns the rows of a run's table, with the columns that the figures need (`rows_of`)."""


def rows_of(run: Run, table: str) -> pd.DataFrame:
    """Return a table of a run with the columns that the figures need (`compare.figures`)."""
    return steps_of(run) if table == "steps" else run.table(table)


def steps_of(run: Run) -> pd.DataFrame:
    """Return the steps of a run without the context log (`LOG`), and with more columns.

    The columns are `latency_ns`; the model's `window`; those of `SentContext`; `own_tokens` and `own_cost` of the
    strategy's own model calls (NaN where a price is not known); `demands` and `demands_kept`, the sums of the table
    `grounding` over all kinds; `lookups` and `lookup_hits` of the Working tier (`working_lookups`), and its `policy`;
    `archive_content` and `archive_stored` of the Archive tier (`archive_bytes`).
    """
    table = run.arrow("steps")
    steps: pd.DataFrame = table.drop_columns(LOG).to_pandas()
    steps["latency_ns"] = run.arrow("timings").column("latency_ns").to_numpy()
    steps["window"] = steps.conversation.astype(str).map(windows(run)).to_numpy()
    steps = steps.join(sent_contexts(run, table))
    at = _StepNumbers(table)
    calls = run.table("events").dropna(subset=["input_tokens"])
    calls["tokens"] = calls.input_tokens + calls.output_tokens
    by_step = calls.groupby(at.of(calls))
    costs = by_step.cost
    own = pd.DataFrame(
        {"own_tokens": by_step.tokens.sum(), "own_cost": costs.sum().where(costs.count() == by_step.size())}
    )
    grounding = run.table("grounding")
    demands = grounding.groupby(at.of(grounding)).agg(demands=("values", "sum"), demands_kept=("kept", "sum"))
    lookups, archived = (
        sums.set_index(at.of(sums)).drop(columns=STEP)
        for sums in (working_lookups(run).reset_index(), archive_bytes(run).reset_index())
    )
    steps["policy"] = steps.strategy.map(lambda text: working_policy(str(text)) or "").astype(str)
    for sums in (own, demands, lookups, archived):
        for column in sums.columns:
            # A step without any gets 0; a price that is not known stays NaN.
            values = np.zeros(len(steps))
            values[sums.index] = sums[column]
            steps[column] = values
    return steps


# So far below 0 that a step of it is the place of no row either.
_NO_ROW = -(1 << 40)


class _StepNumbers:
    """The rows of the table `steps` by conversation, strategy and step: in it, steps stand in order and from 0."""

    def __init__(self, steps: pa.Table) -> None:
        self._first = {(name, strategy): rows.start for name, strategy, rows in LogColumns(steps).results}

    def of(self, rows: pd.DataFrame) -> Ints:
        """Return the row of `steps` that each row of another table is of."""
        names, strategies = (rows[column].astype("category").cat for column in KEYS)
        shape = len(names.categories), len(strategies.categories)
        pairs = ((str(name), str(text)) for name in names.categories for text in strategies.categories)
        first = np.array([self._first.get(pair, _NO_ROW) for pair in pairs], np.int64).reshape(shape)
        numbers: Ints = first[names.codes, strategies.codes] + rows.step.to_numpy(np.int64)
        return numbers


_TIERED = re.compile(r"\btiered\b(?:\((?P<parameters>[^|]*)\))?")
_POLICY = re.compile(r"\bpolicy='(?P<name>\w+)")
DEFAULT_POLICY = "lru_k"
"""Cache policy of the Working tier where the strategy's text names none."""


def working_policy(strategy: str) -> str | None:
    """Return the cache policy of a strategy's Working tier, or None if it has no such tier.

    The text is searched, not parsed: a strategy of a plug-in's file can be read where that file is not.
    """
    # `|` ends a stage: a policy of a later one is no policy of this tier.
    tiered = _TIERED.search(strategy)
    if tiered is None:
        return None
    policy = _POLICY.search(tiered["parameters"] or "")
    return policy["name"] if policy else DEFAULT_POLICY


def working_lookups(run: Run) -> pd.DataFrame:
    """Return for each step how many messages below Focus were looked up, and how many of them Working had.

    The columns are `lookups` and `lookup_hits`. Look-ups count from the call at which Working first evicted something
    in their conversation: a cache that has not had to choose hits whatever its policy is.
    """
    events = run.table("events")
    events = events[events.strategy.map(lambda text: working_policy(str(text)) is not None).astype(bool)]
    events = events[events.kind.isin(("moved", "recalled"))]
    decoder = msgspec.json.Decoder(Moved | Recalled)
    first_eviction: dict[tuple[str, str], int] = {}
    lookups = []
    for name, strategy, step, text in zip(*(events[column] for column in (*STEP, "event")), strict=True):
        event = decoder.decode(text)
        if isinstance(event, Recalled):
            lookups.append((name, strategy, step, event))
        elif event.source == "working" and event.to in _BELOW_FOCUS:  # not what is forgotten
            first_eviction[name, strategy] = min(step, first_eviction.get((name, strategy), step))
    rows = [
        (name, strategy, step, len(event.sources), len(event.sources) if event.kind == "working" else 0)
        for name, strategy, step, event in lookups
        if event.kind in _BELOW_FOCUS and step >= first_eviction.get((name, strategy), math.inf)
    ]
    frame = pd.DataFrame(rows, columns=[*STEP, "lookups", "lookup_hits"])
    return frame.groupby(STEP, observed=True).sum()


def archive_bytes(run: Run) -> pd.DataFrame:
    """Return for each step by how many bytes the Archive tier changed: the sums are those of the last step.

    The columns are `archive_content`, of its messages as JSON, and `archive_stored`, of its files.
    """
    events = run.table("events")
    events = events[events.kind == "compressed"]
    decoder = msgspec.json.Decoder(Compressed)
    sizes: dict[tuple[str, str], Compressed] = defaultdict(lambda: Compressed(0, 0))
    rows = []
    for name, strategy, step, text in zip(*(events[column] for column in (*STEP, "event")), strict=True):
        now, before = decoder.decode(text), sizes[name, strategy]
        rows.append((name, strategy, step, now.content - before.content, now.stored - before.stored))
        sizes[name, strategy] = now
    frame = pd.DataFrame(rows, columns=[*STEP, "archive_content", "archive_stored"])
    return frame.groupby(STEP, observed=True).sum()


class SentContext(NamedTuple):
    """Figures of one context that only the log can tell."""

    tokens_added: int
    """Tokens of the messages that the strategy wrote, and of its tool schemas beyond those of the recording."""
    newest: bool
    """Whether it has the newest message, or one that the strategy wrote under its id, in its place; or as a user's
    message, a summary that covers it: agents compact in the middle of a turn, and the request is answered."""
    tokens_replaced: int
    """Tokens of the recorded messages that summaries, placeholders and shortened messages of the context stand for."""
    tokens_standing_in: int
    """Tokens of what stands in for them."""


_SENT_TYPES = {"tokens_added": np.int64, "newest": bool, "tokens_replaced": np.int64, "tokens_standing_in": np.int64}


def lacking_newest(run: Run) -> frozenset[str]:
    """Return the strategies that sent some calls without the newest message."""
    table = run.arrow("steps")
    lacking = ~sent_contexts(run, table).newest.to_numpy()
    strategies = table.column("strategy").to_pandas().astype(str)
    return frozenset(strategies[lacking])


def sent_contexts(run: Run, steps: pa.Table) -> pd.DataFrame:
    """Return the columns of `SentContext`, one row per row of the run's table `steps`."""
    recorded, written = run.message_columns("id", "tokens"), _written(run)
    conversations = run.table("conversations")
    tools = dict(zip(conversations.conversation, conversations.tools_tokens, strict=True))
    log, summaries = LogColumns(steps), _summaries(run)
    rows: list[SentContext] = []
    for name, strategy, where in log.results:
        ids, tokens = recorded[name]
        more_ids, more_tokens, users = written[name, strategy]
        contexts = _SentContexts(
            [*ids, *more_ids], [*tokens, *more_tokens], len(ids), users, tools[name], summaries[name, strategy]
        )
        columns = (log.kept[where].tolist(), log.added(where), log.at[where].tolist(), log.tokens[where].tolist())
        rows += map(contexts.step, *columns)
    return pd.DataFrame(rows, columns=list(SentContext._fields)).astype(_SENT_TYPES)


class _SentContexts:
    """The contexts of one conversation under one strategy. `ids` and `tokens` are of the messages by their numbers."""

    def __init__(
        self,
        ids: Sequence[str],
        tokens: Sequence[int],
        recorded: int,
        users: Collection[str],
        tools: int,
        summaries: _Summaries,
    ) -> None:
        self._ids, self._recorded, self._users, self._tools = ids, recorded, users, tools
        self._tokens = [0, *accumulate(tokens)]
        self._context = LoggedContext(recorded)
        # Tokens of all messages, and of the written ones, before each span and after the last.
        self._all, self._written = [0], [0]
        self._summaries, self._steps = summaries, 0
        # Only what a strategy wrote can stand in for something: without that nothing of this is needed.
        wrote = len(ids) > recorded
        self._number = {id: number for number, id in enumerate(ids[:recorded])} if wrote else {}
        self._recorded_tokens = np.array(tokens[:recorded] if wrote else (), np.int64)
        self._is_covered = np.zeros(len(self._recorded_tokens), bool)

    def step(self, kept: int, added: Sequence[NumberSpan], at: int, tokens_sent: int) -> SentContext:
        """Return the figures of the next context, that of the call after `at` recorded messages."""
        unchanged = self._context.advance(kept, added)
        del self._all[unchanged + 1 :], self._written[unchanged + 1 :]
        for start, stop in self._context.spans[unchanged:]:
            tokens = self._tokens[stop] - self._tokens[start]
            self._all.append(self._all[-1] + tokens)
            self._written.append(self._written[-1] + (tokens if start >= self._recorded else 0))
        tools = max(tokens_sent - PRIMING - self._all[-1] - self._tools, 0)
        newest = any(self._has_newest(*span, at - 1) for span in added)
        replaced, standing_in, is_asked = self._compression()
        # A number that `_compression` has seen: messages are covered once they are there.
        newest = newest or (is_asked and bool(self._is_covered[at - 1]))
        return SentContext(self._written[-1] + tools, newest, replaced, standing_in)

    def _has_newest(self, start: int, stop: int, newest: int) -> bool:
        """Return whether a span that was added has the newest message, which is never among the kept ones."""
        return start <= newest < stop or (start >= self._recorded and self._ids[newest] in self._ids[start:stop])

    def _compression(self) -> tuple[int, int, bool]:
        """Return the tokens replaced in this context, those of what stands in, and whether a user's summary is sent.

        A summary stands for the messages that it covers and that are not sent. A written message that has the id of a
        recorded one (a placeholder, a shortened message) stands for that one.
        """
        for id in self._summaries.covered.get(self._steps, ()):
            if id in self._number:  # else a message of another strategy of the chain was summarised
                self._is_covered[self._number[id]] = True
        self._steps += 1
        if not self._number:
            return 0, 0, False
        replaced, standing_in, is_summary_sent, is_asked = self._is_covered.copy(), 0, False, False
        for start, stop in self._context.spans:
            if start < self._recorded:
                replaced[start:stop] = False
        rewritten = set()
        for start, stop in self._context.spans:
            for number in range(start, stop) if start >= self._recorded else ():
                id, tokens = self._ids[number], self._tokens[number + 1] - self._tokens[number]
                if id in self._number:
                    rewritten.add(self._number[id])
                    standing_in += tokens
                elif id.startswith(self._summaries.writers):
                    is_summary_sent = True
                    is_asked = is_asked or id in self._users
                    standing_in += tokens
        # A window after a summary may cut the summary off as well: then nothing stands in for what it covers.
        if not is_summary_sent:
            replaced[:] = False
        replaced[list(rewritten)] = True
        return int(self._recorded_tokens[replaced].sum()), standing_in, is_asked


class _Summaries(NamedTuple):
    """Messages that the summaries of one strategy cover in one conversation."""

    covered: dict[int, list[str]]
    """By step: ids of the messages that a summary newly covers."""
    writers: tuple[str, ...]
    """How the ids of the summaries begin."""


def _summaries(run: Run) -> dict[tuple[str, str], _Summaries]:
    """Return what every strategy summarised in every conversation."""
    events = run.table("events")
    events = events[events.kind == "summarised"]
    decoder = msgspec.json.Decoder(Summarised)
    by_step: dict[tuple[str, str], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    writers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, strategy, step, text in zip(*(events[column] for column in (*STEP, "event")), strict=True):
        event, key = decoder.decode(text), (str(name), str(strategy))
        by_step[key][step] += event.replaced
        writers[key].add(f"{event.by}:")
    nothing = _Summaries({}, ())
    summaries = {key: _Summaries(dict(steps), tuple(sorted(writers[key]))) for key, steps in by_step.items()}
    return defaultdict(lambda: nothing, summaries)


class _Written(msgspec.Struct):
    id: str
    role: Role


def _written(run: Run) -> dict[tuple[str, str], tuple[list[str], list[int], set[str]]]:
    """Return the messages that each strategy wrote in each conversation: ids and tokens by their numbers, and the ids
    of those of the user.
    """
    messages: dict[tuple[str, str], tuple[list[str], list[int], set[str]]] = defaultdict(lambda: ([], [], set()))
    decoder = msgspec.json.Decoder(_Written)
    rows = run.table("contexts")
    for name, strategy, tokens, text in zip(rows.conversation, rows.strategy, rows.tokens, rows.message, strict=True):
        ids, sizes, users = messages[name, strategy]
        message = decoder.decode(text)
        ids.append(message.id)
        sizes.append(tokens)
        if message.role == "user":
            users.add(message.id)
    return messages
