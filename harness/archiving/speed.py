"""How fast an archive is written and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import perf_counter

from ...strategies.tiers.archive import Archive, Coding, Item
from .rows import Speed

READS = 1000
ROUNDS = 5
"""The fastest of so many counts: a shared machine only ever makes it slower."""


def written(items: Sequence[Item], coding: Coding, folder: Path) -> tuple[int, Speed]:
    """The bytes of an archive of these messages, all files, and its speed. Every message is read back and compared."""
    began = perf_counter()
    with Archive(folder, coding) as archive:
        archive.put(items)
        archive.seal()
        writing = perf_counter() - began
        content = sum(part.raw_bytes for part in archive.parts)
        frames = [archive.frame(part) for part in archive.parts]
        decompress = _best(lambda: [archive.content(part) for part in archive.parts])
        bare = _best(lambda: [dictionary.decompress(frame) for dictionary, frame in frames])
        reading = _best(lambda: _compare(archive, items), 1)
        taken = sorted(gets(archive, items))
        size = archive.size
    opening = _best(lambda: Archive(folder, write=False).close())
    get = (taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1])
    return size, Speed(content / writing, content / decompress, content / bare, content / reading, get, opening)


def _best(do: Callable[[], object], rounds: int = ROUNDS) -> float:
    best = float("inf")
    for _ in range(rounds):
        began = perf_counter()
        do()
        best = min(best, perf_counter() - began)
    return best


def _compare(archive: Archive, items: Sequence[Item]) -> None:
    for here, there in zip(items, archive.items(), strict=True):
        if here != there:
            raise AssertionError(f"{here.id} did not come back as it was")


def gets(archive: Archive, items: Sequence[Item], clock: Callable[[], float] = perf_counter) -> list[float]:
    """Seconds of each of many reads of one message."""
    taken = []
    for item in Random(0).choices(items, k=READS):
        began = clock()
        archive.get(item.id)
        taken.append(clock() - began)
    return taken
