"""Damage to the files of memory tiers: snapshots of all four and of RAG, and the folder of the Archive tier.

Bits are flipped, bytes overwritten, files cut, lengthened, exchanged for one another or for another archive's, and
removed. Some snapshots are given a right digest after that, as no damage does: what is in them may be anything then,
but no other error than SnapshotError may come of it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ctxbench.scenarios.model import Message
from ctxbench.strategies.tiers import rag
from ctxbench.strategies.tiers.archive import ArchiveError, ArchiveTier, Coding
from ctxbench.strategies.tiers.snapshot_file import SnapshotError
from ctxbench.strategies.tiers.tiered import TierRules, Tiers
from ctxbench.strategies.tiers.tiered import snapshot as tiered
from tests.attacks import Outcome, outcome
from tests.attacks.archive import MEMORY
from tests.strategies.tiers.archive.builders import item, items
from tests.strategies.tiers.rag.builders import embed, tier

DIGEST = 32


class Snapshots(NamedTuple):
    """Snapshots and an archive's folder, whole, with another archive's."""

    folder: Path
    whole: dict[str, bytes]
    """Snapshots by their names."""
    archive: dict[str, bytes]
    other: dict[str, bytes]


def _tiers(name: str) -> Tiers:
    tiers = Tiers(TierRules(working=20, archive=20), lambda _: None)
    for at in range(8):
        now = tiers.clock.tick(None)
        tiers.add(Message(f"m{at}", "user", f"{name} {at}"), 8, now)
        tiers.keep({f"m{at}"}, now)
        tiers.run(now, 0.5)
    return tiers


def _archive(folder: Path, name: str) -> dict[str, bytes]:
    coding = Coding(level=1, block_tokens=30, summary=0.9)
    with ArchiveTier(folder, coding, count=lambda text: len(text.split())) as archive:
        archive.put(items(7, name))
        archive.put([item(9, talk=name, tokens=5)])
        archive.delete([f"{name}/m3"], now=1.0)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@contextmanager
def made() -> Iterator[Snapshots]:
    """Write all files, in memory."""
    with TemporaryDirectory(dir=MEMORY) as name:
        folder = Path(name)
        tiered.save(_tiers("message"), folder / "tiers")
        rag.save(tier(), folder / "rag", "offline")
        whole = {path.name: path.read_bytes() for path in folder.iterdir()}
        yield Snapshots(folder, whole, _archive(folder / "archive", "talk"), _archive(folder / "other", "bulk"))


LOAD: dict[str, Callable[[Path], object]] = {
    "tiers": lambda path: tiered.load(path, lambda _: None),
    "rag": lambda path: rag.load(path, embed=embed, model="offline"),
}


def altered(data: bytes, chance: Random) -> bytes:
    """Return other bytes: flipped, overwritten, cut or lengthened."""
    new, at = bytearray(data), chance.randrange(len(data))
    match chance.randrange(5):
        case 0 | 1:
            new[at] ^= 1 << chance.randrange(8)
        case 2:
            size = chance.choice((1, 8, 64))
            new[at : at + size] = bytes(len(new[at : at + size]))
        case 3:
            del new[at:]
        case _:
            new += chance.randbytes(chance.randrange(1, 9))
    return bytes(new)


def try_snapshot(place: Snapshots, chance: Random) -> str:
    """Alter a snapshot, and return what is then silent; empty if nothing is."""
    name = chance.choice(sorted(place.whole))
    data = altered(place.whole[name], chance)
    signed = chance.random() < 0.3
    if signed:
        body = altered(place.whole[name][:-DIGEST], chance)
        data = body + hashlib.blake2b(body, digest_size=DIGEST).digest()
    if chance.random() < 0.05:
        data, signed = place.whole["rag" if name == "tiers" else "tiers"], False
    path = place.folder / f"{name}.damaged"
    path.write_bytes(data)
    try:
        LOAD[name](path)
    except SnapshotError as error:
        return "" if str(path) in str(error) else f"{name}: the error does not say where: {error}"
    except Exception as error:
        return f"{name}: {type(error).__name__} escapes: {error}"
    # Zeros may have been zeros, and what is signed may be anything.
    return "" if signed or data == place.whole[name] else f"{name}: silent"


def try_archive(place: Snapshots, chance: Random) -> str:
    """Alter a file of the archive, and return what is then silent; empty if nothing is."""
    folder = place.folder / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = dict(place.archive)
    name = chance.choice(sorted(files))
    what = chance.choice(("altered", "altered", "altered", "exchanged", "foreign", "removed"))
    match what:
        case "altered":
            files[name] = altered(files[name], chance)
        case "exchanged":
            other = chance.choice(sorted(files))
            files[name], files[other] = files[other], files[name]
        case "foreign":
            files[name] = place.other.get(name, b"")
        case _:
            del files[name]
    for each, data in files.items():
        (folder / each).write_bytes(data)
    try:
        archive = ArchiveTier(folder, write=False)
        said = "\n".join(map(str, archive.verify()))
        if not said:
            for id in archive.ids:
                archive.get(id)
    except ArchiveError as error:
        said = str(error)
    except Exception as error:
        return f"{name} {what}: {type(error).__name__} escapes: {error}"
    if files == place.archive:
        return f"{name}: said to be damaged, and is not: {said}" if said else ""
    return "" if str(folder) in said else f"{name} {what}: silent"


def attack(seed: int, tries: int) -> Outcome:
    """Damage a file of a tier so many times."""
    lost = []
    with made() as place:
        for number in range(tries):
            chance = Random(f"{seed}/{number}")
            said = (try_archive if number % 2 else try_snapshot)(place, chance)
            if said:
                lost.append(f"seed {seed}, try {number}: {said}")
    return outcome(tries, lost)
