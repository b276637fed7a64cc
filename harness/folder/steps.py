"""The steps of a run as figures read them: the table `steps` with what other tables and the context log say of each."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from ctxbench.metrics.tokens import PRIMING
from ctxbench.scenarios.model import Role
from ctxbench.strategies.events import Compressed, Moved, Recalled, Summarised

from .contexts import Ints, LogColumns, LoggedContext, NumberSpan
from .derived import origin_of, read_derived, write_derived
from .run import KEYS, STEP, Run, windows
from .schema import SCHEMAS

_BELOW_FOCUS = ("working", "archive", "rag")


_LOG = ("added_from", "added_to", "marks", "tools_added")
# Without the columns of lists: as a data frame they take ten times the space of the rest.
_PLAIN = [name for name in SCHEMAS["steps"].names if name not in _LOG]
_WALKED = [*STEP, "at", "kept", "added_from", "added_to", "tokens_sent", "tools_added"]

Rows = Callable[[Run, str], pd.DataFrame]
"""Returns the rows of a run's table, with the columns that the figures need (`rows_of`)."""


def rows_of(run: Run, table: str) -> pd.DataFrame:
    """Return a table of a run with the columns that the figures need (`compare.figures`)."""
    return steps_of(run) if table == "steps" else run.table(table)


def steps_of(run: Run) -> pd.DataFrame:
    """Return the steps of a run without the context log, and with more columns.

    The columns are `latency_ns`; the model's `window`; those of `SentContext`; `own_tokens` and `own_cost` of the
    strategy's own model calls (NaN where a price is not known); `demands` and `demands_kept`, the sums of the table
    `grounding` over all kinds; `lookups` and `lookup_hits` of the Working tier (`working_lookups`), and its `policy`;
    `archive_content` and `archive_stored` of the Archive tier (`archive_bytes`).
    """
    # Without a copy: Arrow's memory of a column is that of the frame.
    steps: pd.DataFrame = run.arrow("steps", _PLAIN).to_pandas(split_blocks=True, self_destruct=True)
    steps["latency_ns"] = run.arrow("timings", ["latency_ns"]).column("latency_ns").to_numpy()
    sizes, names = windows(run), steps.conversation.cat
    steps["window"] = np.array([sizes.get(str(name), 0) for name in names.categories], np.int64)[names.codes]
    more: dict[str, np.ndarray[Any, Any]] = {}
    first = 0
    for piece in run.pieces():
        columns = _more_columns(piece)
        for name, values in columns.items():
            more.setdefault(name, np.empty(len(steps), values.dtype))[first : first + len(values)] = values
        first += len(columns["newest"])
    steps["policy"] = steps.strategy.map(lambda text: working_policy(str(text)) or "").astype(str)
    return steps.assign(**more)


def _more_columns(run: Run) -> dict[str, np.ndarray[Any, Any]]:
    """Return the columns of `steps_of` that are of the context log, of events and of grounding."""
    columns = {str(name): values.to_numpy() for name, values in _sent(run).items()}
    at = _StepNumbers(run.arrow("steps", STEP))
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
    for sums in (own, demands, lookups, archived):
        for column in sums.columns:
            # A step without any gets 0; a price that is not known stays NaN.
            values = np.zeros(at.size)
            values[sums.index] = sums[column]
            columns[column] = values
    return columns


def _sent(run: Run) -> pd.DataFrame:
    """Return the columns of `SentContext`, which are stored beside the run: they take a walk through every context."""
    origin = None if run.chosen else origin_of(run)
    stored = None if origin is None else read_derived(run, _STORED, SentContext._fields, origin)
    if stored is not None:
        sent: pd.DataFrame = stored.to_pandas()
        return sent
    sent = sent_contexts(run, run.arrow("steps", _WALKED))
    if origin is not None:
        write_derived(run, _STORED, pa.Table.from_pandas(sent, preserve_index=False), origin)
    return sent


_STORED = "contexts"


# So far below 0 that a step of it is the place of no row either.
_NO_ROW = -(1 << 40)


class _StepNumbers:
    """The rows of the table `steps` by conversation, strategy and step: in it, steps stand in order and from 0."""

    def __init__(self, steps: pa.Table) -> None:
        self.size = len(steps)
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
    lacking = set[str]()
    for piece in run.pieces():
        strategies = piece.arrow("steps", ["strategy"]).column("strategy").to_pandas()
        lacking.update(map(str, strategies[~_sent(piece).newest.to_numpy()].unique()))
    return frozenset(lacking)


def sent_contexts(run: Run, steps: pa.Table) -> pd.DataFrame:
    """Return the columns of `SentContext`, one row per row of the run's table `steps`."""
    recorded, written = run.message_columns("id", "tokens"), _written(run)
    conversations = run.table("conversations")
    tools = dict(zip(conversations.conversation, conversations.tools_tokens, strict=True))
    log, summaries = LogColumns(steps), _summaries(run)
    values = np.zeros((len(steps), len(SentContext._fields)), np.int64)
    # All that there is to say of a strategy that only leaves messages out.
    values[:, SentContext._fields.index("newest")] = log.adds_newest
    adds_tools = log.adds_tools
    for name, strategy, where in log.results:
        if (name, strategy) not in written and not adds_tools[where].any():
            continue
        ids, tokens = recorded[name]
        more_ids, more_tokens, users = written[name, strategy]
        contexts = _SentContexts(
            [*ids, *more_ids], [*tokens, *more_tokens], len(ids), users, tools[name], summaries[name, strategy]
        )
        columns = (log.kept[where].tolist(), log.added(where), log.at[where].tolist(), log.tokens[where].tolist())
        # Not a list of tuples, which would take more memory than the whole table.
        figures = np.fromiter(chain.from_iterable(map(contexts.step, *columns)), np.int64)
        values[where] = figures.reshape(-1, len(SentContext._fields))
    return pd.DataFrame(values, columns=[*SentContext._fields]).astype(_SENT_TYPES)


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
        self._wrote = len(ids) > recorded
        # Tokens of all messages, and of the written ones, before each span and after the last.
        self._all, self._written = [0], [0]
        self._summaries, self._steps = summaries, 0
        self._number = {id: number for number, id in enumerate(ids[:recorded])} if self._wrote else {}
        self._recorded_tokens = np.array(tokens[:recorded] if self._wrote else (), np.int64)
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
        if not self._wrote:  # then nothing can stand in for anything
            return SentContext(tools, any(start < at <= stop for start, stop in added), 0, 0)
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
