"""The requests of a stored run through caches: of each, what would be read, written and neither."""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache
from heapq import merge
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...metrics.cache.automatic import AutomaticRules
from ...metrics.cache.boundary import BoundaryRules
from ...metrics.cache.cached_content import CachedContent, CachedContentRules
from ...metrics.cache.explicit import ExplicitRules
from ...metrics.cache.offline_optimum import Bound, lowest
from ...metrics.cache.placement import BY_HAND, PLACEMENTS, Placement, by_hand
from ...metrics.cache.prefixes import CacheRequest, CacheUsage, Prefixes, SentPrefix, SharedStarts
from ...metrics.cache.requests import is_system_first, requests, system_first
from ...metrics.cache.rules import DOCUMENT, STORED, CacheRule, Rules, cache_of, rule_for
from ...metrics.prices import Price, Tariff
from ...metrics.tokens import FRAME, ROLE, text_encoder
from ...scenarios.model import Message
from ..folder.contexts import Floats, Ints
from ..folder.run import Run
from ..folder.store import placed
from .requests import ConversationRequests, RunRequests

Table = NDArray[np.float64]


class Scheme(NamedTuple):
    """How requests are billed: whose rules, those of when, and where marks are put."""

    model: str
    placement: str = "automatic"
    latest: bool = False
    """The latest rules, instead of those of the recording's date."""
    stored: bool = False
    """Gemini: content that the caller stores by the hour, instead of caching by itself."""
    document: bool = False
    """The rules as design document 000 has them."""

    @property
    def base(self) -> Scheme:
        """Under which `none` is what others are compared with: the same rules, with caching on."""
        return self._replace(placement="document" if self.document else "automatic")


@cache
def rule_of(scheme: Scheme, day: str | None) -> CacheRule | None:
    """The rule that counts on a day (None = it is not known); None if there is none."""
    if scheme.document:
        return rule_for(scheme.model, None, DOCUMENT)
    stored = rule_for(scheme.model, None, STORED) if scheme.stored else None
    when = None if day is None or scheme.latest else datetime.fromisoformat(day + "T00:00+00:00").timestamp()
    return stored or rule_for(scheme.model, when)


class Usages(NamedTuple):
    """Of every row of the table `steps`, in tokens. Read, written and fresh are together the prompt."""

    read: Ints
    written: Ints
    written_1h: Ints
    fresh: Ints
    created: Ints
    """Stored outside of the prompt, for what is stored by the hour."""
    token_seconds: Floats
    """Storage."""


def simulate(cells: RunRequests, schemes: Sequence[Scheme], done: Callable[[], object] | None = None) -> list[Usages]:
    """Every cell under every scheme. Schemes with the same rules share the work. `done` is called after each cell.

    Cells that make the same requests share it too. A cell has its own caches, which begin empty. Conversations that
    share one (`Cell.shares`) go through it together, in the order of their requests; strategies never share any.
    """
    made: dict[int, list[_Told]] = {}
    known: dict[tuple[object, ...], list[_Told]] = {}
    texts, groups = _Texts(cells), dict[tuple[str, str], list[tuple[int, ConversationRequests]]]()
    for number, cell in enumerate(cells):
        if cell.shares:
            groups.setdefault((cell.strategy, cell.shares), []).append((number, cell))
            continue
        if cell.log not in known:
            known[cell.log] = _under(schemes, [cell], texts)[0]
        made[number] = known[cell.log]
        if done is not None:
            done()
    for group in groups.values():
        together = _under(schemes, texts.keyed([cell for _, cell in group]), texts)
        for (number, _), found in zip(group, together, strict=True):
            made[number] = found
            if done is not None:
                done()
    return [_usages([made[number][at] for number in sorted(made)]) for at in range(len(schemes))]


class _Told(NamedTuple):
    """What one cache said of the requests of a cell."""

    used: Table
    """A row a request, a column a field of `Used`."""
    least: int
    """Tokens of the shortest prefix that is cached: what is shorter is neither read nor written."""


def _under(schemes: Sequence[Scheme], cells: Sequence[ConversationRequests], texts: _Texts) -> list[list[_Told]]:
    """Of each cell under each scheme, what of its requests is read and written."""
    as_sent = all(is_system_first(cell.steps, cell.messages) for cell in cells)
    rules = [rule_of(scheme, cells[0].day) for scheme in schemes]
    wanted = [_Line.of(rule, scheme.placement, as_sent) for scheme, rule in zip(schemes, rules, strict=True)]
    least = [_least(rule) for rule in rules]
    return [
        [_Told(through[line], each) for line, each in zip(wanted, least, strict=True)]
        for through in _through(cells, set(wanted), texts)
    ]


def _least(rule: CacheRule | None) -> int:
    return rule.rules.least if rule is not None and isinstance(rule.rules, (ExplicitRules, AutomaticRules)) else 0


class _Line(NamedTuple):
    """A sort of cache, and the policy by which marks are put for it; empty where the strategy's own count, or none.

    Explicit and automatic caches that differ only in their least size are one line without any: a prefix is as long
    wherever it stands, so what is too short can be left out of what they say (`_usages`).
    """

    rules: Rules | None
    placement: str
    reordered: bool
    """Whether the provider puts system messages first, and the strategy does not."""

    @classmethod
    def of(cls, rule: CacheRule | None, placement: str, as_sent: bool) -> _Line:
        """Under rules that take no marks, or that place some themselves, fewer policies make a difference."""
        if rule is None:
            return cls(None, "", False)
        rules, reordered = rule.rules, rule.system_first and not as_sent
        if isinstance(rules, ExplicitRules):
            placement = BY_HAND if placement == "automatic" and rules.look_back == 1 else placement
            return cls(replace(rules, least=0), placement, reordered)
        if isinstance(rules, AutomaticRules):
            return cls(replace(rules, least=0), "", reordered)
        takes = isinstance(rules, CachedContentRules) or (
            isinstance(rules, BoundaryRules) and placement not in ("automatic", "marked")
        )
        return cls(rules, placement if takes else "", reordered)


def _through(cells: Sequence[ConversationRequests], lines: Set[_Line], texts: _Texts) -> list[dict[_Line, Table]]:
    """What of each request of the cells is read and written, in each of the lines."""
    made: list[dict[_Line, list[CacheUsage]]] = [{line: [] for line in lines} for _ in cells]
    caches = {line: _NoCache() if line.rules is None else cache_of(line.rules) for line in lines}
    for reordered in {line.reordered for line in lines}:
        these = [line for line in lines if line.reordered == reordered]
        placements = {line.placement for line in these}
        groups = [
            [
                (
                    _policy(placement),
                    [(caches[line].request, found[line].append) for line in these if line.placement == placement],
                )
                for placement in placements
            ]
            for found in made
        ]
        within = any(isinstance(line.rules, AutomaticRules) for line in these)
        prefixes = Prefixes(texts.alike(cells) if within else None)
        sent = (system_first(cell.steps, cell.messages) if reordered else cell.steps for cell in cells)
        streams = [requests(steps, cell.messages, prefixes) for steps, cell in zip(sent, cells, strict=True)]
        for at, request in _in_time(streams):
            own = request.marks
            for place, asked in groups[at]:
                request.marks = place(request) if place else own
                for ask, add in asked:
                    add(ask(request))
                request.marks = own
    for line, ended in caches.items():
        if isinstance(ended, CachedContent):
            last = made[-1][line][-1]
            made[-1][line][-1] = last._replace(token_seconds=last.token_seconds + ended.finish())
    return [{line: _table(used) for line, used in found.items()} for found in made]


def _policy(placement: str) -> Placement | None:
    """None where the strategy's own marks stay."""
    return by_hand() if placement == BY_HAND else PLACEMENTS[placement]() if placement else None


def _in_time(streams: Sequence[Iterator[CacheRequest]]) -> Iterator[tuple[int, CacheRequest]]:
    """The requests of all streams in the order they began, each with the number of its stream."""
    if len(streams) == 1:
        return zip(repeat(0), streams[0])

    def timed(at: int) -> Iterator[tuple[float, int, CacheRequest]]:
        return ((request.started, at, request) for request in streams[at])

    # a stream's next request is made after this one was dealt with: they share their lists
    return ((at, request) for _, at, request in merge(*map(timed, range(len(streams)))))


class _NoCache:
    """Where nothing is cached."""

    def request(self, asked: CacheRequest) -> CacheUsage:
        """All is fresh."""
        return CacheUsage(0, 0, 0, asked.tokens)


class _Texts:
    """What the messages of cells say: which begin alike, and which are equal."""

    def __init__(self, cells: RunRequests) -> None:
        self._cells = cells
        encoding = str(cells.run.manifest["plan"]["encoding"])
        self._encode = None if encoding == "chars4" else text_encoder(encoding)

    def alike(self, cells: Sequence[ConversationRequests]) -> SharedStarts | None:
        """None where the run's encoding has no tokens."""
        if self._encode is None:
            return None
        if len(cells) == 1:
            said, written = self._said(cells[0])

            def text(block: Hashable) -> tuple[str, str] | None:
                if not isinstance(block, int):
                    return None  # tools
                message = said[block] if block < len(said) else written[block - len(said)]
                return message.role, message.text

            return SharedStarts(text, self._encode, FRAME + ROLE)
        return SharedStarts(
            lambda block: block[:2] if isinstance(block, SentPrefix) else None, self._encode, FRAME + ROLE
        )

    def keyed(self, cells: Sequence[ConversationRequests]) -> list[ConversationRequests]:
        """The same cells with keys that are equal where messages, or tools, are."""
        made = []
        for cell in cells:
            said, written = self._said(cell)
            keys = [SentPrefix.of(message) for message in (*said, *written)]
            tools = self._cells.recordings[cell.conversation].tools
            made.append(replace(cell, messages=cell.messages._replace(keys=keys, tools_key=tools)))
        return made

    def _said(self, cell: ConversationRequests) -> tuple[Sequence[Message], Sequence[Message]]:
        return self._cells.recordings[cell.conversation].messages, self._cells.written(cell)


def _table(used: list[CacheUsage]) -> Table:
    fields = len(CacheUsage._fields)
    return np.fromiter(chain.from_iterable(used), np.float64, fields * len(used)).reshape(-1, fields)


def _usages(told: Sequence[_Told]) -> Usages:
    """All cells, one after the other, without what is too short to be cached."""
    used = np.concatenate([each.used for each in told]) if told else np.empty((0, len(CacheUsage._fields)))
    least = np.repeat([each.least for each in told], [len(each.used) for each in told])
    read, written, written_1h, fresh, _, created = used[:, :6].T.astype(np.int64)
    tokens = read + written + written_1h + fresh
    ends = np.array([read, read + written_1h, read + written_1h + written])  # of what is read, of each lifetime
    first, hour, last = np.maximum.accumulate(np.where(ends >= least, ends, 0))
    return Usages(first, last - hour, hour - first, tokens - last, created, used[:, 6].copy())


FOLDER = "bills"
_TABLES = ("steps", "messages", "contexts", "conversations", "recordings")
_CODE = ("scenarios", "metrics", "harness")
_ORIGIN = b"made_from"


def simulated(cells: RunRequests, schemes: Sequence[Scheme], done: Callable[[], object] | None = None) -> list[Usages]:
    """Every cell under every scheme, as `simulate` has it. `done` is called after each cell that has to be."""
    origin = _origin(cells.run)
    kept = {scheme: _read(_path(cells.run, scheme), origin) for scheme in schemes}
    found = {scheme: usages for scheme, usages in kept.items() if usages is not None}
    missing = [scheme for scheme in kept if scheme not in found]
    for scheme, usages in zip(missing, simulate(cells, missing, done) if missing else (), strict=True):
        found[scheme] = usages
        with suppress(OSError):
            _write(_path(cells.run, scheme), usages, origin)
    return [found[scheme] for scheme in schemes]


def _path(run: Run, scheme: Scheme) -> Path:
    """Of a run that is confined to some conversations another than of all."""
    plain = re.sub(r"[^\w.-]", "_", f"{scheme.model}-{scheme.placement}")[:100]
    exact = hashlib.sha256(repr((scheme, sorted(run.chosen or ()))).encode()).hexdigest()[:8]
    return run.folder / FOLDER / f"{plain}-{exact}.parquet"


def _read(path: Path, origin: bytes) -> Usages | None:
    try:
        if (pq.read_schema(path).metadata or {}).get(_ORIGIN) != origin:
            return None
        table = pq.read_table(path, columns=list(Usages._fields), page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return None
    return Usages(*(table.column(name).to_numpy() for name in Usages._fields))


def _write(path: Path, usages: Usages, origin: bytes) -> None:
    table = pa.table(usages._asdict()).replace_schema_metadata({_ORIGIN: origin})
    with placed(path) as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)


def _origin(run: Run) -> bytes:
    """A digest of the run's files and of the code."""
    files = (path for table in _TABLES for path in (run.folder / table).glob("*") if path.is_file())
    return hashlib.sha256(_digest(files, run.folder) + _code()).hexdigest().encode()


@cache
def _code() -> bytes:
    """With the versions of what the arrays are made with."""
    root = Path(__file__).parents[2]
    files = (path for room in _CODE for path in (root / room).rglob("*.py"))
    return _digest(files, root) + f"numpy {np.__version__}, pyarrow {pa.__version__}".encode()


def _digest(files: Iterable[Path], root: Path) -> bytes:
    made = hashlib.sha256()
    for path in sorted(files):
        made.update(str(path.relative_to(root)).encode() + b"\0")
        made.update(hashlib.sha256(path.read_bytes()).digest())
    return made.digest()


BOUND = "hindsight"
"""The placement that is none, but a bound."""
NEVER = ExplicitRules(least=sys.maxsize)
"""Where nothing is cached, as on a host that had no cache yet."""


def bounds(cells: RunRequests, scheme: Scheme, tariff: Tariff, priced: Callable[[Price], Price]) -> Iterator[Bound]:
    """One a cell, in the order of the tables. None is known where conversations share a cache: NaN dollars."""
    for cell in cells:
        if cell.shares:
            yield Bound(math.nan, 0, 0, 0, 0)
            continue
        rule = rule_of(scheme, cell.day)
        first = rule is not None and rule.system_first and not is_system_first(cell.steps, cell.messages)
        steps = system_first(cell.steps, cell.messages) if first else cell.steps
        asked = (
            (request, priced(tariff.at(request.tokens, request.started if cell.timed else None)))
            for request in requests(steps, cell.messages)
        )
        yield lowest(asked, rule.rules if rule is not None and isinstance(rule.rules, ExplicitRules) else NEVER)


def is_bounded(scheme: Scheme) -> bool:
    """Whether the model's cache wants marks: others have no bound of this kind."""
    rule = rule_of(scheme, None)
    return rule is not None and isinstance(rule.rules, ExplicitRules)
