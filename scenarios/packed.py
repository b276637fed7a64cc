"""Files that stand within others or elsewhere: compressed files, members of archives, and what fsspec reaches.

    logs/a.jsonl.gz               is read as logs/a.jsonl; also .zst, .bz2 and .xz
    logs.zip                      is read as logs.zip/day1/a.jsonl …, its members, which may be compressed
    logs.tar, logs.tar.gz         likewise; also .tgz, and .tar with any of the suffixes above
    s3://bucket/logs              is read as s3:/bucket/logs/a.jsonl …; whatever fsspec knows (extra: remote)
    s3://bucket/logs/*.jsonl      the files that fit
    hf://owner/data/logs          files of a data set's repository on the Hugging Face hub

A path needs nothing else to be opened: `opened` finds the file that holds it. Nothing is unpacked to disk, but what has
to be read out of order: a file (`seekable`), and the tar within a compressed one. What unpacks to more than a thousand
times its size is an error: no log is packed that well. Members whose names lead out of their archive, and links and
devices of a tar, are passed over. An archive has at most 100,000 files, and their list at most 32 MiB. Remote files
are copied once into a cache that ends with the program.
"""

from __future__ import annotations

import atexit
import bz2
import gzip
import io
import lzma
import math
import os
import re
import shutil
import struct
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, cast

import zstandard

from .errors import MissingExtra, Place, RecordingError
from .files import open_file

FREE, RATIO = 1 << 30, 1000  # bytes that anything may unpack to, and how many times its size any more may be
MEMBERS, LISTED = 100_000, 32 << 20
"""Most members of an archive, and most bytes of a zip's list of them, or of what stands before one in a tar."""
_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".zst": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_ZIP = ".zip"
# For each suffix of a tar archive that of its compression.
_TARS = {".tar": "", **{f".tar{suffix}": suffix for suffix in _UNPACKERS}}
_TARS |= {".tgz": ".gz", ".tzst": ".zst", ".tbz2": ".bz2", ".txz": ".xz"}
# First bytes, and where they stand.
_MAGIC = {
    ".gz": (b"\x1f\x8b", 0),
    ".zst": (b"\x28\xb5\x2f\xfd", 0),
    ".bz2": (b"BZh", 0),
    ".xz": (b"\xfd7zXZ\0", 0),
    _ZIP: (b"PK", 0),
    "": (b"ustar", 257),
}
DAMAGED = (
    *(EOFError, OSError, RuntimeError, ValueError, struct.error),
    *(lzma.LZMAError, zlib.error, zipfile.BadZipFile, tarfile.TarError, zstandard.ZstdError),
)
"""Errors that the libraries raise for damage: gzip OSError and EOFError, zipfile a RuntimeError for an encrypted member
and for a method that it does not know."""
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://?(?=[^/])")
# fsspec takes an address of the hub without its kind for a model.
_DATA_SET, _DATA_SETS = re.compile(r"^hf://(?!(?:datasets|spaces|buckets)/)"), "hf://datasets/"
_CHUNK = 1 << 16
_LOGS = (".aider.chat.history.md", ".aider.llm.history")  # they stand in the folder of the project


def is_address(name: str) -> bool:
    """Return whether a name, or the path made of it, is an address, such as `s3://bucket/logs`."""
    return _ADDRESS.match(name) is not None


def shown(file: str) -> str:
    """Return the name under which a user knows a file: with the suffix of a compressed file, as an address."""
    if is_address(file):
        return url_of(file)
    path = Path(file)
    holder = _holder(path)
    return file if holder == path or holder in path.parents else str(holder)


def is_hidden(name: str) -> bool:
    """Return whether a file or folder is passed over for its name: it begins with a dot, and no agent's log has it."""
    return name.startswith(".") and name not in _LOGS


def files_within(path: Path) -> tuple[list[Path], list[str]]:
    """Return the paths of all files in a file, itself if it is no container; and what is passed over, with the reason.

    Raises RecordingError for an archive that cannot be read.
    """
    kind = _kind(path)
    if not _is_archive(kind):
        return [path.with_suffix("") if kind else path], []
    archive = _archive(path)
    found, ignored, hidden = [], [f"{path}: {what}: {count:,}" for what, count in archive.passed_over.items()], 0
    for name in sorted(archive.members):
        member = PurePosixPath(name)
        if any(is_hidden(part) or part == "__MACOSX" for part in member.parts):
            hidden += 1
        elif _is_archive(_suffix(name)):
            ignored.append(f"{path / name}: an archive within an archive")
        else:
            found.append(path / (member.with_suffix("") if member.suffix.lower() in _UNPACKERS else member))
    if hidden:
        ignored.append(f"{path}: {hidden} hidden")
    return found, ignored


def remote_files(address: str) -> list[Path]:
    """Return the paths of an address: itself, or the files below it. Raises RecordingError if it cannot be reached."""
    url = url_of(address)
    known = _DATA_SET.sub(_DATA_SETS, url)
    filesystem, below = reached(url, lambda: file_systems(url).core.url_to_fs(known))
    if url.startswith("http"):  # a page has links, but is no folder
        return [Path(url)]
    if "*" in below:
        if not (names := reached(url, lambda: filesystem.glob(below))):
            raise RecordingError(Place(url), "no file fits this pattern", "check the address")
    elif not reached(url, lambda: filesystem.isdir(below)):
        return [Path(url)]
    else:
        names = reached(url, lambda: filesystem.find(below))
    return [Path(filesystem.unstrip_protocol(name)) for name in sorted(names)]


def size_of(path: Path) -> int:
    """Return about how many bytes a file has, unpacked: logs are packed to about a fourth, or better."""
    if is_address(str(path)):
        return 0
    holder = _holder(path)
    if holder in path.parents:
        _, member = _member(holder, path)
        return member.size if member else 0
    return holder.stat().st_size * (1 if holder == path else 4)


def changed_at(path: Path) -> float:
    """Return when a file, or its archive, was changed, in seconds; 0 for a file that is gone or remote."""
    try:
        return 0.0 if is_address(str(path)) else _holder(path).stat().st_mtime
    except OSError:
        return 0.0


def is_packed(path: Path) -> bool:
    """Return whether a path is an address, or leads into a packed file. A damaged one is named when it is read."""
    return is_address(str(path)) or _holder(path) != path


def is_file(path: Path) -> bool:
    """Return whether a file stands at a path, of whatever kind."""
    holder = path if is_address(str(path)) else _holder(path)
    return _member(holder, path)[1] is not None if holder in path.parents else os.path.isfile(holder)


def opened(path: Path) -> BinaryIO:
    """Open a file for its bytes, unpacked. Raises OSError if it is not there, RecordingError if it is damaged."""
    if is_address(str(path)):  # it is copied into the cache first
        url, suffix = url_of(str(path)), path.suffix
        chained = f"filecache::{_DATA_SET.sub(_DATA_SETS, url)}"
        opening = file_systems(url).open(chained, "rb", filecache={"cache_storage": _cache_folder()})
        copy: BinaryIO = reached(url, opening.open)
        if suffix not in _UNPACKERS:
            return copy
        # `seek` returns the new place: the size of the file, and 0 for its start, where it is read from.
        return _unpacked(copy, suffix, copy.seek(0, io.SEEK_END) + copy.seek(0), path)
    holder = _holder(path)
    if holder == path:
        return open_file(path)
    if holder not in path.parents:
        return _unpacked(open_file(holder), holder.suffix, holder.stat().st_size, holder)
    place, member = _member(holder, path)
    if member is None:
        return open_file(path)  # the error for no member is that of a file that is not there
    try:
        file = member.open()
    except DAMAGED as error:
        raise _damaged(place, error) from None
    # Asked for a.jsonl, the member is a.jsonl.gz: unpack it. Asked for a.jsonl.gz itself, it is given as it is.
    return _unpacked(file, place.suffix if place.name != path.name else "", member.packed, place)


@contextmanager
def seekable(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a file that can be read out of order and mapped: itself, or a copy on disk that is gone with it."""
    if not isinstance(file, io.BufferedReader) or isinstance(file.raw, io.FileIO):
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy, _CHUNK)
        copy.seek(0)
        yield cast(BinaryIO, copy)


class _Unpacked(io.RawIOBase):
    """Bytes of a packed file. Raises RecordingError where it is damaged, or unpacks to over `most` bytes."""

    def __init__(self, file: Any, unpacker: Callable[[Any], Any] | None, most: int, place: Path) -> None:
        self._file, self._place, self._most, self._count = file, place, most, 0
        self._inner = file if unpacker is None else unpacker(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except DAMAGED as error:
            raise _damaged(self._place, error) from None
        self._count += len(data)
        if self._count > self._most:
            raise bomb(self._place, self._most)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        self._file.close()
        super().close()


def _unpacked(file: Any, suffix: str, packed: int, place: Path) -> BinaryIO:
    """Return the bytes of an open file of `packed` bytes, unpacked if it has the suffix of a compressed file."""
    most = FREE + RATIO * packed
    return io.BufferedReader(_Unpacked(file, _UNPACKERS.get(suffix.lower()), most, place), _CHUNK)


def bomb(place: Path, most: int) -> RecordingError:
    """Return the error for a file that unpacks to more than `most` bytes."""
    what = f"unpacks to over {most >> 20:,} MiB, {RATIO:,} times its size"
    return RecordingError(Place(str(place)), what, "leave it out, or unpack it yourself")


def _damaged(place: Path, error: BaseException) -> RecordingError:
    what = str(error) or type(error).__name__
    remedy = "unpack it, and name its folder" if isinstance(error, _TooMany) else "is it damaged, cut off or encrypted?"
    return RecordingError(Place(str(place)), f"cannot be unpacked: {what}", remedy)


class _TooMany(ValueError):
    """An archive's list is longer than we read."""


def _holder(path: Path) -> Path:
    """Return the file on disk that holds a file: itself, a compressed one beside it, or an archive above it."""
    # The file itself goes first: a.jsonl beside a.jsonl.gz is read, and the packed one has a path of its own.
    if os.path.exists(path) or not path.name:
        return path
    compressed = (path.with_name(path.name + end) for suffix in _UNPACKERS for end in (suffix, suffix.upper()))
    archives = (parent for parent in path.parents if _is_archive(_suffix(parent.name)))
    # os.path returns False where Path raises: a name that is too long
    return next((file for files in (archives, compressed) for file in files if os.path.isfile(file)), path)


def _suffix(name: str) -> str:
    """Return the suffix by which a packed file is known; empty for any other name."""
    name = name.lower()
    return next((suffix for suffix in (*_TARS, *_UNPACKERS, _ZIP) if name.endswith(suffix)), "")


def _is_archive(suffix: str) -> bool:
    return suffix == _ZIP or suffix in _TARS


def _kind(path: Path) -> str:
    """Return the suffix of a packed file, if its first bytes are those of one; empty for any other file."""
    suffix = _suffix(path.name)
    if not suffix:
        return ""
    # A name alone does not tell: a file that is no archive by its bytes is read as it is.
    magic, at = _MAGIC[_TARS.get(suffix, suffix)]
    with open_file(path) as file:
        return suffix if file.read(at + len(magic))[at:] == magic else ""


class _Member(NamedTuple):
    """A file in an archive."""

    size: int
    packed: int  # bytes that it takes in the archive
    open: Callable[[], Any]


class _Listed(io.BufferedReader):
    """The file of an archive. While `left` counts, at most so many bytes of it are read: lists of members may lie."""

    def __init__(self, file: Any) -> None:
        super().__init__(file.detach())
        self.left: float = LISTED

    def read(self, size: int | None = -1, /) -> bytes:
        if self.left == math.inf:
            return super().read(size)
        data = super().read(LISTED + 1 if size is None or not 0 <= size <= LISTED else size)
        self.left -= len(data)
        if self.left < 0:
            raise _TooMany(f"its list of files has over {LISTED >> 20} MiB")
        return data


class _Archive:
    """An archive's files, by their paths in it, and counts of what is passed over."""

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.passed_over: Counter[str] = Counter()

    def add(self, name: str, member: _Member) -> None:
        """Add a member under a path that stays within the archive, if its name is one."""
        if len(self.members) == MEMBERS:
            raise _TooMany(f"it has over {MEMBERS:,} files")
        clean = PurePosixPath(name.lstrip("/"))  # an absolute name would replace the archive's own path
        if ".." in clean.parts or not clean.parts:
            self.passed_over["names that lead out of the archive"] += 1
        else:
            self.members[str(clean)] = member


def _member(archive: Path, path: Path) -> tuple[Path, _Member | None]:
    """Return the place of the member that holds a file, compressed or not, and the member; None if none does."""
    name, members = path.relative_to(archive).as_posix(), _archive(archive).members
    name = next((name + suffix for suffix in ("", *_UNPACKERS) if name + suffix in members), name)
    return archive / name, members.get(name)


def _archive(path: Path) -> _Archive:
    return _opened_archive(path, path.stat().st_mtime_ns)  # one that was changed meanwhile is read anew


@lru_cache(maxsize=8)
def _opened_archive(path: Path, _changed: int) -> _Archive:
    """Read the list of an archive's members, which takes time; what it holds open is closed when it is forgotten."""
    suffix = _suffix(path.name)
    try:
        return _zip_archive(path) if suffix == _ZIP else _tar_archive(path, _TARS[suffix])
    except DAMAGED as error:
        raise _damaged(path, error) from None


def _zip_archive(path: Path) -> _Archive:
    archive, listed = _Archive(), _Listed(open_file(path))
    weakref.finalize(archive, listed.close)
    file, most = zipfile.ZipFile(listed), FREE + RATIO * path.stat().st_size
    listed.left = math.inf
    if sum(info.file_size for info in file.infolist()) > most:
        file.close()
        raise bomb(path, most)
    for info in file.infolist():
        if not info.filename.endswith("/"):  # is_dir() raises IndexError for the empty name that damage may leave
            archive.add(info.filename, _Member(info.file_size, info.compress_size, partial(file.open, info)))
    return archive


def _tar_archive(path: Path, packing: str) -> _Archive:
    """Read a tar's members. A compressed one is unpacked to disk first: its members are read in any order."""
    archive = _Archive()
    file = _Listed(tempfile.TemporaryFile() if packing else open_file(path))  # noqa: SIM115
    weakref.finalize(archive, file.close)  # gone with the archive
    if packing:
        with _unpacked(open_file(path), packing, path.stat().st_size, path) as unpacked:
            shutil.copyfileobj(unpacked, cast(Any, file.raw), _CHUNK)
        file.seek(0)
    tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115  # a member goes to its own place before it reads
    for info in tar:
        file.left = LISTED
        if info.issym() or info.islnk():
            archive.passed_over["links"] += 1
        elif info.issparse() or not (info.isfile() or info.isdir()):
            archive.passed_over["sparse files or devices"] += 1
        elif info.isfile():
            archive.add(info.name, _Member(info.size, info.size, partial(tar.extractfile, info)))
    file.left = math.inf
    file.seek(tar.offset)
    if any(file.read(tarfile.BLOCKSIZE)):  # the library takes a damaged header for the end
        raise tarfile.ReadError(f"no header of a member at byte {tar.offset:,}")
    return archive


def url_of(name: str) -> str:
    """Return an address with both slashes, of which a path has lost one."""
    return _ADDRESS.sub(r"\1://", name, count=1)


def file_systems(url: str) -> Any:
    """Return fsspec. Raises RecordingError, which names `url`, if it is not installed."""
    try:
        return import_module("fsspec")
    except ImportError:
        what, _, remedy = str(MissingExtra("fsspec", "remote")).partition(": ")
        raise RecordingError(Place(url), what, remedy) from None


def reached(url: str, ask: Callable[[], Any]) -> Any:
    """Return what a remote file system answers. Raises RecordingError with its reason for none."""
    try:
        return ask()
    except RecordingError:
        raise
    except ImportError as error:
        remedy = str(MissingExtra("", "remote")).partition(": ")[2]
        raise RecordingError(Place(url), f"cannot be reached: {error}", remedy) from None
    except Exception as error:  # each of its libraries has errors of its own
        what = f"cannot be reached: {str(error).partition(chr(10))[0] or type(error).__name__}"
        raise RecordingError(Place(url), what, "check the address, and that you may read it") from None


@cache
def _cache_folder() -> str:
    folder = tempfile.mkdtemp(prefix="ctxbench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
