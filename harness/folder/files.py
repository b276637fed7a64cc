"""Files that are whole or not there at all, and receipts, which notice that one changed, went or came from elsewhere.

Each part of a run has a receipt, `receipts/SHARD.json` or `receipts/SHARD-STRATEGY.json`: size and BLAKE2b of each of
its files, the run (its plan and versions) and the shard's conversations. It is written last, after its files are on the
disk to stay: a part without a receipt is not finished. Timings differ from run to run, so theirs stand in `timings/`,
beside them. Files of answers and grades have a receipt each, beside them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b, sha256
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import msgspec

from ctxbench.scenarios.files import check_file, open_file, read_file

_BYTES = 16
_BLOCK = 1 << 20
_THREADS = 2


RANDOM = 8
"""Random bytes in the name of a draft."""


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Yield a draft to write to; it is moved to its place at the end, or removed if anything goes wrong.

    Raises OSError, before anything is written, if a pipe, a device or a folder stands there.
    """
    check_file(path)
    # Process ids are alike on hosts that share a disk, and on one host in containers.
    draft = path.with_name(f".{path.name}.{token_hex(RANDOM)}")
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield draft
        os.replace(draft, path)  # in one step, on the same disk: a reader sees the old file or the new one
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


class FileDigest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Size and digest of a file."""

    size: int
    blake2b: str


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files of one part, with their digests, and the run and recordings that they are of."""

    part: str
    """Its name, as `receipts/00000-003`."""
    run: str
    """Digest of the plan and the versions that made it; empty for answers and grades."""
    shard: str
    """Digest of the shard's conversations; of answers and grades, of what they were made from."""
    files: Mapping[str, FileDigest]
    """Its files by their paths in the run folder."""
    digest: str = ""
    """Digest of all that stands above."""

    def signed(self) -> Receipt:
        """Return the receipt with its own digest."""
        unsigned = msgspec.structs.replace(self, digest="")
        return msgspec.structs.replace(self, digest=text_digest(msgspec.json.encode(unsigned)))


def joint_digest(digests: Iterable[str]) -> str:
    """Return one digest for several, in order."""
    return sha256("\n".join(digests).encode()).hexdigest()


def text_digest(data: bytes) -> str:
    """Return the BLAKE2b of some bytes, in hex."""
    return blake2b(data, digest_size=_BYTES).hexdigest()


def file_digest(path: Path) -> FileDigest:
    """Return size and digest of a file. Raises OSError."""
    digest, size = blake2b(digest_size=_BYTES), 0
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return FileDigest(size, digest.hexdigest())


def keep_on_disk(paths: Iterable[Path]) -> None:
    """Make what stands in files, or the names that stand in folders, outlast a power cut. Takes some 3 ms each."""
    for path in paths:
        try:
            handle = os.open(path, os.O_RDONLY)
        except PermissionError:  # Windows opens no folder
            continue
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_receipt(path: Path, receipt: Receipt) -> None:
    """Write a receipt. What it lists must be on the disk before."""
    with placed(path) as draft:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(receipt.signed())) + b"\n")


def read_receipt(path: Path) -> Receipt | None:
    """Return a receipt, or None if it is missing or damaged."""
    try:
        receipt = msgspec.json.decode(read_file(path), type=Receipt)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return receipt if receipt.signed() == receipt else None


class Damage(NamedTuple):
    """A file that is not as it was written."""

    file: str
    """Path in the run folder."""
    what: str

    def __str__(self) -> str:
        """Return the file and what is wrong with it."""
        return f"{self.file}: {self.what}"


MISSING, CHANGED, FOREIGN = "is missing", "is not as it was written", "is not of this run"


def damage_of(folder: Path, receipt: Receipt) -> Iterator[Damage]:
    """Yield the files of a part that are missing or changed."""
    for name, written in receipt.files.items():
        path = folder / name
        try:
            # The size first: it is there for nothing.
            same = path.stat().st_size == written.size and file_digest(path) == written
        except FileNotFoundError:
            yield Damage(name, MISSING)
            continue
        except OSError as error:
            yield Damage(name, f"cannot be read: {error.strerror or error}")
            continue
        if not same:
            yield Damage(name, CHANGED)


def all_damage(folder: Path, receipts: Iterable[Receipt]) -> list[Damage]:
    """Return the damage of several parts, in order. Digests are made on two threads."""

    def damage(receipt: Receipt) -> list[Damage]:
        return list(damage_of(folder, receipt))

    with ThreadPoolExecutor(_THREADS) as pool:
        return [one for several in pool.map(damage, receipts) for one in several]


def accept(path: Path) -> None:
    """Write the receipt of a single file beside it."""
    keep_on_disk([path])
    name = "/".join(path.with_suffix("").parts[-2:])
    write_receipt(path.with_suffix(".json"), Receipt(name, "", "", {path.name: file_digest(path)}))


def is_as_written(path: Path) -> bool:
    """Return whether a single file has a receipt beside it, and is as that says."""
    receipt = read_receipt(path.with_suffix(".json"))
    return receipt is not None and path.name in receipt.files and not list(damage_of(path.parent, receipt))
