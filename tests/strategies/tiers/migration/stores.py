"""Stores for the tests, in memory and in a folder, and the crash that can happen before any of their operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ctxbench.strategies.events import LimitReached, Moved
from ctxbench.strategies.tiers.migration import ContentStore, Journal, Migration, Tier
from ctxbench.strategies.tiers.migration.journal import Record
from ctxbench.strategies.tiers.quota import Quota
from ctxbench.strategies.tiers.tiered.tiers import ByPolicy
from ctxbench.strategies.tiers.working.policies import parse


class Crash(BaseException):
    """The process is killed."""


class Memory:
    """A dictionary."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        self.held[id], self.sizes[id] = content, tokens

    def get(self, id: str) -> bytes:
        return self.held[id]

    def __contains__(self, id: str) -> bool:
        return id in self.held

    def delete(self, id: str, now: float) -> None:
        self.held.pop(id, None)
        self.sizes.pop(id, None)

    @property
    def tokens(self) -> int:
        return sum(self.sizes.values())

    def ids(self) -> set[str]:
        return set(self.held)


class Folder:
    """A file an item. A put that is torn leaves half a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        (self.folder / id).write_bytes(content)

    def get(self, id: str) -> bytes:
        return (self.folder / id).read_bytes()

    def __contains__(self, id: str) -> bool:
        return (self.folder / id).exists()

    def delete(self, id: str, now: float) -> None:
        (self.folder / id).unlink(missing_ok=True)

    @property
    def tokens(self) -> int:
        return len(self.ids())

    def ids(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@dataclass
class Fuse:
    """Counts operations, and kills at one of them. `watch` is called before each."""

    left: int | None = None
    torn: bool = False
    spoil: int | None = None
    """The put that stores something else, counted from now."""
    fail: int | None = None
    """The put that raises an OSError, counted from now."""
    stuck: bool = False
    """Nothing can be deleted now."""
    watch: Callable[[], None] = field(default=lambda: None)

    def step(self) -> None:
        self.watch()
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Crash


def _counted(value: int | None) -> tuple[int | None, bool]:
    return (None, False) if value is None else ((None, True) if value == 0 else (value - 1, False))


@dataclass
class Fragile:
    """A store whose every operation may be the last."""

    inner: Memory | Folder
    fuse: Fuse

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None:
        self.fuse.spoil, wrong = _counted(self.fuse.spoil)
        self.fuse.fail, failing = _counted(self.fuse.fail)
        try:
            self.fuse.step()
        except Crash:
            if self.fuse.torn:
                self.inner.put(id, content[: len(content) // 2], tokens, now)
            raise
        if failing:
            self.inner.put(id, content[:1], tokens, now)
            raise OSError(28, "No space left on device")
        self.inner.put(id, spoiled(content) if wrong else content, tokens, now)

    def get(self, id: str) -> bytes:
        self.fuse.step()
        return self.inner.get(id)

    def __contains__(self, id: str) -> bool:
        return id in self.inner

    def delete(self, id: str, now: float) -> None:
        self.fuse.step()
        if self.fuse.stuck:
            raise OSError(30, "Read-only file system")
        self.inner.delete(id, now)

    @property
    def tokens(self) -> int:
        return self.inner.tokens


@dataclass
class FragileJournal:
    """The same of a journal."""

    inner: Journal
    fuse: Fuse

    def __len__(self) -> int:
        return len(self.inner)

    def records(self) -> Iterable[Record]:
        return self.inner.records()

    def append(self, record: Record) -> None:
        self.fuse.step()
        self.inner.append(record)

    def rewrite(self, records: Iterable[Record]) -> None:
        self.fuse.step()
        self.inner.rewrite(records)


NAMES = ("focus", "working", "archive", "rag")


SIZES = (20, 60, 120, 10_000)


def tiers(stores: Iterable[ContentStore], sizes: tuple[int, ...] = SIZES, policy: str = "") -> list[Tier]:
    """Four tiers, the lowest the largest. With a `policy`, that says who leaves Working and Archive."""
    by_policy = {
        name: ByPolicy(parse(policy).sized(size))
        for name, size in zip(NAMES, sizes, strict=True)
        if policy and name in ("working", "archive")
    }
    rows = zip(NAMES, stores, sizes, strict=True)
    return [Tier(name, store, Quota(size), replacement=by_policy.get(name)) for name, store, size in rows]


def spoiled(content: bytes) -> bytes:
    """Return the same bytes with one bit flipped."""
    return content[:-1] + bytes([content[-1] ^ 1])


def physical(migration: Migration, stores: Iterable[Memory | Folder]) -> dict[str, set[str]]:
    """Of each id, the tiers whose store has something of it."""
    found: dict[str, set[str]] = {}
    for name, store in zip(NAMES, stores, strict=True):
        for id in store.ids():
            found.setdefault(id, set()).add(name)
    return found


Events = list[Moved | LimitReached]
