"""Read a run folder: its tables as data frames, its recordings, and the contexts that were sent.

Everything here reads what `store.py` wrote and decides nothing. `src/ctxbench/api/` makes figures of it.

A log entry is what changed since the step before (`schema.py`): the first `kept` messages stay, and the spans
[added_from, added_to) follow. Messages have numbers: those of the recording from 0, after them those that the strategy
wrote, in the order of the table `contexts`. In the context of a probe the question is `QUESTION`, and what the strategy
wrote for it alone has the numbers below.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard
from numpy.typing import NDArray

from ctxbench.metrics.models import context_window
from ctxbench.metrics.prices import special_parts
from ctxbench.metrics.thinking import has_thinking
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import code_digest
from ctxbench.scenarios.model import Call, Conversation, Message, independent_units
from ctxbench.scenarios.spec import nearest
from ctxbench.scenarios.view import Messages, Span, joined
from ctxbench.strategies.events import Event

from .files import is_intact, write_table
from .remote import name_of
from .schema import SCHEMAS, Manifest
from .store import BILLS, ResultPart, damage, is_part, read_conversations, read_manifest, shard_of, whole_shards

if TYPE_CHECKING:  # it takes a quarter of a second to import, which many commands do not need
    import pandas as pd

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

QUESTION = -1  # number of the question in the context of a probe

AT_ONCE = 200_000  # steps of a run that are in memory at a time where it is read piece by piece

Rows = list[dict[str, Any]]
KEYS = ["conversation", "strategy"]  # columns that name a result

# Bytes of a table up to which it is kept in memory once it was read.
_KEPT = 64 << 20
# Tables of a strategy whose parts are kept where the rows of one conversation after the other are read.
_PARTS = 8
# Ids would take as much memory as all the rest.
_COUNTED = [name for name in SCHEMAS["messages"].names if name not in ("id", "time")]
# Without the columns of lists: they take ten times the space of the rest.
_PLAIN = [name for name in SCHEMAS["steps"].names if name not in ("added_from", "added_to", "marks", "tools_added")]


@dataclass(frozen=True)
class Run:
    """A run folder. Tables and their columns are those of `schema.COLUMNS`."""

    folder: Path
    chosen: frozenset[str] | None = None
    """Conversations that `table`, `arrow` and `conversations` are confined to; None = all of them."""
    shards: tuple[int, ...] | None = None
    """The only shards that are read: of a large run some at a time, or the one of a run that still goes on; None =
    all."""
    opened: float = field(default_factory=time, init=False, repr=False, compare=False)
    """When it was opened, in seconds since 1970: files that changed since may be another run's."""
    # Small tables and columns that were read, which a report reads a dozen times, and files read for one conversation.
    _tables: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, init=False, repr=False, compare=False)
    _parts: dict[Any, dict[Any, Rows]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """How the user names it on a command line: its folder, or its address in a store."""
        return name_of(self.folder)

    @cached_property
    def manifest(self) -> Manifest:
        """The plan of the run, with versions, digests and problems."""
        return read_manifest(self.folder)

    def table(self, name: str) -> pd.DataFrame:
        """Return one table, whole, in the order of the conversations, then of the strategies."""
        frame: pd.DataFrame = self.arrow(name).to_pandas()
        return frame

    def arrow(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return one table as an Arrow table, or some columns of it. Raises RunError if a run has no such table."""
        if name not in SCHEMAS:
            raise RunError(f"a run has no table {name!r}{nearest(name, SCHEMAS) or '; it has ' + ', '.join(SCHEMAS)}")
        key = (name, *(columns or ()))
        if (known := self._tables.get((name,), self._tables.get(key))) is not None:
            return known if columns is None else known.select(columns)
        wanted = None if columns is None else [*columns, *["conversation"] * (self.chosen is not None)]
        with self.readable():
            tables = [_read_part(part, wanted) for part in self.files(name)]
        if self.chosen is not None:
            chosen = pa.array(sorted(self.chosen))
            is_chosen = (pc.is_in(table.column("conversation").cast(pa.string()), chosen) for table in tables)
            tables = [table.filter(rows) for table, rows in zip(tables, is_chosen, strict=True)]
        whole = pa.concat_tables(tables) if tables else SCHEMAS[name].empty_table()
        table = (whole if columns is None else whole.select(columns)).unify_dictionaries().combine_chunks()
        if table.nbytes > _KEPT:
            del tables, whole
            pa.default_memory_pool().release_unused()  # else Arrow holds on to as much as the table takes
        else:
            self._tables[key] = table
        return table

    def files(self, table: str) -> list[Path]:
        """Return the files of a table, in order. Raises RunError if the run has changed since it was opened."""
        self._refuse_change()
        paths = sorted(path for path in (self.folder / table).glob("*.parquet") if is_part(path.name))
        return [path for path in paths if self.shards is None or shard_of(path) in self.shards]

    def _refuse_change(self) -> None:
        # Tables that were read before would not fit. A run that goes on has more parts each time.
        manifest = self.manifest
        is_newer = manifest.complete and (self.folder / "manifest.json").stat().st_mtime > self.opened
        if is_newer and read_manifest(self.folder).files != manifest.files:
            raise RunError(f"{self.folder}: the run has changed since it was opened: open it again")

    def pieces(self, steps: int = AT_ONCE) -> Iterator[Run]:
        """Yield the run piece by piece: some shards each, of about so many steps, with tables of their own."""
        self._refuse_change()  # of which a piece, opened now, knows nothing
        sizes = Counter[int]()
        for row in self.arrow("results", ["conversation", "steps"]).to_pylist():
            sizes[self._shards[row["conversation"]]] += row["steps"]
        size, groups = 0, [list[int]()]
        for shard, count in sorted(sizes.items()):
            if groups[-1] and size + count > steps:
                size = 0
                groups.append([])
            size += count
            groups[-1].append(shard)
        yield from [self] if len(groups) == 1 else [replace(self, shards=tuple(group)) for group in groups]

    def confined_to(self, names: Collection[str]) -> Run:
        """Return the run confined to some of its conversations: other shards are not read."""
        return replace(self, chosen=frozenset(names), shards=tuple(sorted({self._shards[name] for name in names})))

    def conversations(self) -> Iterator[Conversation]:
        """Yield all recorded conversations."""
        with self.readable():
            for part in sorted((self.folder / "recordings").glob("*.jsonl.zst")):
                if self.shards is None or shard_of(part) in self.shards:
                    for conversation in read_conversations(part):
                        if self.chosen is None or conversation.id in self.chosen:
                            yield conversation

    @cached_property
    def beyond_text(self) -> dict[tuple[str, int], Message]:
        """The recorded messages with media, reasoning or special prices, by conversation and place, without texts."""
        return {
            (conversation.id, at): msgspec.structs.replace(message, text="", calls=())
            for conversation in self.conversations()
            for at, message in enumerate(conversation.messages)
            if (message.media or message.thinking or message.thinking_hidden or message.call)  # most have none of it
            and (message.media or has_thinking(message) or _is_special(message.call))
        }

    def conversation(self, name: str) -> Conversation:
        """Return one recorded conversation by its id. Raises RunError if it is not in the run."""
        if name not in self._shards:
            raise RunError(f"{self.folder}: no conversation {name!r} is in this run")
        with self.readable():
            said = read_conversations(ResultPart(self.folder, self._shards[name]).path("recordings"))
            return next(conversation for conversation in said if conversation.id == name)

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

    def written(self, conversation: str, strategy: str) -> list[tuple[Message, int]]:
        """Return the messages that a strategy wrote in a conversation, by their numbers, and their tokens."""
        rows = self.rows("contexts", conversation, strategy)
        with self.readable():
            return [(msgspec.json.decode(row["message"], type=Message), row["tokens"]) for row in rows]

    @cached_property
    def messages(self) -> pd.DataFrame:
        """The table `messages` in order, without ids and times; `whole` has the tokens of all messages before."""
        messages: pd.DataFrame = self.arrow("messages", _COUNTED).to_pandas()
        messages = messages.sort_values(["conversation", "at"], kind="stable")
        whole = messages.groupby("conversation", observed=True).tokens.cumsum() - messages.tokens
        return messages.assign(whole=whole)

    @cached_property
    def failures(self) -> dict[str, dict[str, str]]:
        """By strategy: the conversations in which it failed, and why."""
        failures: dict[str, dict[str, str]] = {}
        for row in self.arrow("results", [*KEYS, "status", "detail"]).to_pylist():
            if row["status"] == "failed":
                failures.setdefault(row["strategy"], {})[row["conversation"]] = row["detail"]
        return failures

    @cached_property
    def units(self) -> dict[str, str]:
        """The independent unit of each conversation."""
        rows = self.arrow("conversations", ["conversation", "meta"]).to_pylist()
        with self.readable():
            return independent_units({row["conversation"]: msgspec.json.decode(row["meta"]) for row in rows})

    def rows(self, table: str, conversation: str, strategy: str | None = None, columns: Sequence[str] = ()) -> Rows:
        """Return rows of a conversation, or of it under a strategy, from the one file that has them."""
        shard, strategies = self._shards.get(conversation), self.manifest.plan.strategies
        if shard is None:
            return []
        number = strategies.index(strategy) if strategy in strategies else None  # a bound has no part of its own
        path = ResultPart(self.folder, shard, number).path(table)
        if (path, *columns) not in self._parts:
            # Whoever asks for one conversation after the other asks for those of a shard: its parts are kept.
            while len(self._parts) >= _PARTS * len(strategies):
                del self._parts[next(iter(self._parts))]
            wanted = [name for name in SCHEMAS[table].names if name in (*KEYS, *columns)]
            with self.readable():
                part = _read_part(path, wanted if columns else None) if path.is_file() else SCHEMAS[table].empty_table()
            # All at once: to filter and convert the rows of each conversation takes thirty times as long.
            by_key = self._parts[path, *columns] = defaultdict(list)
            for row in part.to_pylist():
                by_key[row["conversation"], row.get("strategy")].append(row)
        return self._parts[path, *columns].get((conversation, strategy), [])

    @cached_property
    def _shards(self) -> dict[str, int]:
        """In which shard each conversation is."""
        with self.readable():
            parts = [(part, _read_part(part, ["conversation"])) for part in self.files("conversations")]
        return {name: shard_of(part) for part, table in parts for name in table.column("conversation").to_pylist()}

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Raise whatever a damaged part raises as one RunError."""
        try:
            yield
        except (pa.ArrowException, OSError, zstandard.ZstdError, msgspec.DecodeError, StopIteration) as error:
            raise RunError(f"{self.folder}: a part is damaged ({error}): {_AGAIN}") from None


_AGAIN = "give the command that made this run once more: it makes what is damaged again"


def _read_part(path: Path, columns: Sequence[str] | None) -> pa.Table:
    """Read a part, or some of its columns. `pq.read_table` makes a data set of each file, which takes twice as long."""
    with pq.ParquetFile(path) as file:
        return file.read(columns, use_threads=False)


def load(folder: str | Path) -> Run:
    """Open a run folder. Raises RunError if it is missing or not finished, or if a file is not as it was written."""
    run = Run(Path(folder))
    manifest = run.manifest
    if not manifest.complete:
        raise RunError(f"{folder}: this run is not finished: give the same `ctxbench run` command again to go on")
    refuse_damage(run)
    return run


def refuse_damage(run: Run) -> None:
    """Raise RunError if files of a run are missing, changed, or not its own."""
    if found := damage(run.folder, run.manifest):
        name, what = next(iter(found.items()))
        others = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise RunError(f"{run.folder}: {name} {what}{others}: {_AGAIN}")


def load_so_far(folder: str | Path) -> Run:
    """Open a run that may go on, confined to shards done under every strategy. Raises RunError if there are none."""
    run = Run(Path(folder))
    if run.manifest.complete:
        return load(folder)
    shards = whole_shards(run.folder, len(run.manifest.plan.strategies))
    if not shards:
        raise RunError(f"{folder}: this run goes on, and no conversation is done yet")
    refuse_damage(run)
    return replace(run, shards=tuple(shards))


def uneven(failures: Mapping[str, Collection[str]], conversations: int) -> frozenset[str]:
    """Return the conversations that some strategies finished and some did not: figures leave them out.

    `failures` maps each strategy to those in which it failed. A strategy that failed in all of them does not count.
    """
    return frozenset(name for names in failures.values() if len(names) < conversations for name in names)


def _is_special(call: Call | None) -> bool:
    return call is not None and any(special_parts(model, call, used) for model, used in call.billed)


def recorded_models(run: Run) -> dict[str, int]:
    """Return how many calls of each model were recorded, the most first; empty where no recording names a model."""
    counts = run.arrow("messages", ["model"]).column("model").drop_null().value_counts().to_pylist()
    return dict(Counter({str(count["values"]): count["counts"] for count in counts}).most_common())


def windows(run: Run) -> dict[str, int]:
    """Return the context window that each conversation's calls are held against, in tokens.

    It is the one that the run names, or else that of the model which was recorded: the one with the most calls in
    the conversation. Where none was, or its window is not known, it is that of `schema.USUAL_MODEL`.
    """
    names = run.arrow("conversations", ["conversation"]).column("conversation").to_pylist()
    sizes = dict.fromkeys(names, run.manifest.window)
    if not run.manifest.plan.window:
        keys = ["conversation", "model"]
        calls = run.arrow("messages", keys).drop_null().group_by(keys, use_threads=False).aggregate([([], "count_all")])
        known: dict[str, int] = {}
        for row in sorted(calls.to_pylist(), key=lambda row: -row["count_all"]):
            if size := context_window(row["model"]):
                known.setdefault(row["conversation"], size)
        return {**sizes, **known}
    return sizes


class Columns(dict[str, Any]):
    """Columns by name, read as those of a data frame, whose sums take ten times as long."""

    __getattr__ = dict.__getitem__


def step_columns(run: Run) -> Columns:
    """Return the steps of a run without the context log, with `latency_ns`, the model's `window` and the `policy`."""
    table = run.arrow("steps", _PLAIN)
    columns = Columns({name: table.column(name).to_pandas() for name in KEYS})  # the first two
    columns |= {name: table.column(name).to_numpy() for name in table.column_names if name not in KEYS}
    names, strategies, sizes = columns["conversation"].cat, columns["strategy"].cat, windows(run)
    policies, of_strategy = np.unique([working_policy(text) for text in strategies.categories], return_inverse=True)
    columns["latency_ns"] = run.arrow("timings", ["latency_ns"]).column("latency_ns").to_numpy()
    columns["window"] = np.array([sizes.get(str(name), 0) for name in names.categories], np.int64)[names.codes]
    import pandas as pd

    columns["policy"] = pd.Series(pd.Categorical.from_codes(of_strategy[strategies.codes], pd.Index(policies)))
    return columns


def steps_of(run: Run) -> pd.DataFrame:
    """Return `step_columns` as a data frame, which has their memory."""
    import pandas as pd

    return pd.DataFrame(step_columns(run), copy=False)


_TIERED = re.compile(r"\btiered\b(?:\((?P<parameters>[^|]*)\))?")
_POLICY = re.compile(r"\bpolicy='(?P<name>\w+)")
DEFAULT_POLICY = "lru_k"  # cache policy of the Working tier where the strategy's text names none


def working_policy(strategy: str) -> str:
    """Return the cache policy of a strategy's Working tier; empty without one. No file of a plug-in is needed."""
    # `|` ends a stage: a policy of a later one is no policy of this tier.
    if (tiered := _TIERED.search(strategy)) is None:
        return ""
    policy = _POLICY.search(tiered["parameters"] or "")
    return policy["name"] if policy else DEFAULT_POLICY


def lacking_newest(run: Run) -> frozenset[str]:
    """Return the strategies that sent some calls without the newest message."""
    steps = run.arrow("steps", ["strategy", "newest"]).to_pandas()
    return frozenset(map(str, steps.strategy[~steps.newest].unique()))


class NumberedMessages(NamedTuple):
    """The messages that the numbers of a log stand for."""

    recording: Sequence[Message]
    written: Sequence[Message]
    probe: Sequence[Message] = ()  # the question, then the messages that the strategy wrote for it alone

    def span(self, start: int, stop: int) -> Span:
        """Return the messages of a span, which never reaches from one store into another."""
        size = len(self.recording)
        if start <= QUESTION:
            return Span(self.probe, QUESTION - start, QUESTION - start + 1)
        return Span(self.recording, start, stop) if start < size else Span(self.written, start - size, stop - size)


def rebuild(
    entries: Iterable[tuple[int, Sequence[int], Sequence[int]]],
    recording: Sequence[Message],
    written: Sequence[Message],
) -> Iterator[Messages]:
    """Yield every context of a conversation under a strategy, from its log entries (kept, added_from, added_to)."""
    context, messages = Messages(), NumberedMessages(recording, written)
    for kept, starts, stops in entries:
        added = (messages.span(start, stop) for start, stop in zip(starts, stops, strict=True))
        # Joined, the history that grows at every step stays one span.
        context = joined((*context[:kept].spans, *added))
        yield context


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values: numbers, names and lists several times as fast as `to_pylist`."""
    array, kind = column.combine_chunks(), column.type
    if pa.types.is_list(kind) and not column.null_count:
        # `values` are those of the whole array even where this is a
        # slice of it, and `offsets` count in them: the two go together.
        items, ends = values_of(pa.chunked_array([array.values])), array.offsets.to_numpy().tolist()
        return [items[start:stop] for start, stop in pairwise(ends)]
    if pa.types.is_dictionary(kind) and not column.null_count:
        names = array.dictionary.to_pylist()
        return [names[number] for number in array.indices.to_numpy().tolist()]
    is_plain = pa.types.is_integer(kind) and not column.null_count
    values: list[Any] = array.to_numpy().tolist() if is_plain else array.to_pylist()
    return values


_ORIGIN = b"made_from"


def read_derived(run: Run, name: str, columns: Sequence[str], code: Sequence[Path] = ()) -> pa.Table | None:
    """Return a stored table, or None unless it was made from this very run by this very code, or files of it."""
    path = _path(run, name)
    try:
        if (pq.read_schema(path).metadata or {}).get(_ORIGIN) != _origin(run, code):
            return None
        return _read_part(path, columns).select(list(columns)) if is_intact(path) else None
    except (OSError, KeyError, pa.ArrowException):
        return None


def write_derived(run: Run, name: str, table: pa.Table, code: Sequence[Path] = ()) -> None:
    """Store a table. On a disk that is read-only nothing is stored: the table is made again the next time."""
    if not run.manifest.complete:
        return  # the next part makes it another run
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _ORIGIN: _origin(run, code)})
    with suppress(OSError):
        write_table(_path(run, name), table)


def _path(run: Run, name: str) -> Path:
    """Return the file of a table. A run confined to some conversations or shards has another than the whole run."""
    shards = run.shards if run.shards is not None and len(run.shards) < run.manifest.shards else ()
    confined = (sorted(run.chosen or ()), shards) if run.chosen or shards else None
    part = sha256(repr(confined).encode()).hexdigest()[:8] if confined else ""
    return run.folder / BILLS / f"{name}{part and '-'}{part}.parquet"


def _origin(run: Run, code: Sequence[Path]) -> bytes:
    """Return a digest of the run's files, by its manifest, and of the code."""
    # Whoever opens a run has compared its files with the manifest: they need not be read again.
    libraries = f"numpy {np.__version__}, pyarrow {pa.__version__}"  # which make the arrays
    return sha256(f"{run.manifest.blake2b}, {libraries}".encode() + code_digest(*code)).hexdigest().encode()
