"""Files that are whole or not there at all, and digests, which notice that one changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b, file_digest, sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import zstandard

from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import LARGEST, check_file, open_file, read_file

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 2

DIGEST = 16  # bytes of a digest

RANDOM = 8  # random bytes in the name of a draft


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Yield a draft that is moved to its place, or removed after an error. Raises OSError for a pipe or a folder."""
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


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file, whole or not at all. Raises RunError if it cannot be written."""
    try:
        with placed(path) as draft:
            draft.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None


def joint_digest(digests: Iterable[str]) -> str:
    """Return one digest for several, in order."""
    return sha256("\n".join(digests).encode()).hexdigest()


def file_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests of files by their paths in a folder, empty for one that is missing or cannot be read."""

    def digest(name: str) -> tuple[str, str]:
        try:
            with open_file(folder / name) as file:
                return name, file_digest(file, partial(blake2b, digest_size=DIGEST)).hexdigest()
        except OSError:
            return name, ""

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(pool.map(digest, names))


def write_table(path: Path, table: pa.Table, **options: Any) -> None:
    """Write a Parquet file, whole or not at all, with a digest of itself in its footer. Raises OSError."""
    import pyarrow.parquet as pq  # slow to import, and not needed by whoever writes texts
    from pyarrow import BufferOutputStream

    buffer = BufferOutputStream()
    with pq.ParquetWriter(buffer, table.schema, compression="zstd", write_statistics=False, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"blake2b": "0" * 2 * DIGEST})
    before, _, after = buffer.getvalue().to_pybytes().rpartition(_SEAL)
    rest = after[2 * DIGEST :]
    with placed(path) as draft:
        draft.write_bytes(b"".join((before, _SEAL, _digest(before, rest), rest)))


def is_intact(path: Path) -> bool:
    """Return whether a table is as it was written, by the digest in it, or a file of recordings by its checksum."""
    try:
        data = read_file(path, LARGEST)
        if path.suffix == ".zst":
            return bool(zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False))
    except (OSError, zstandard.ZstdError):
        return False
    before, _, after = data.rpartition(_SEAL)
    return after[: 2 * DIGEST] == _digest(before, after[2 * DIGEST :])


# The key of a table's digest in its footer, and the length of the value that follows.
_SEAL = b"\x18\x07blake2b\x18" + bytes([2 * DIGEST])


def _digest(before: bytes, after: bytes) -> bytes:
    """Return the digest of a table: over all bytes before and after it."""
    digest = blake2b(before, digest_size=DIGEST)
    digest.update(after)
    return digest.hexdigest().encode()
