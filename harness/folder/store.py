"""A run is a folder. Everything in it but `timings/` is the same bytes for the same input, however it was made.

    manifest.json                     what was asked for, versions, digests, problems; `complete` once all is there
    recordings/SHARD.jsonl.zst        the conversations, lossless (ctxbench JSONL)
    conversations/SHARD.parquet       one row per conversation
    messages/SHARD.parquet            one row per recorded message: tokens, time, recorded usage; no text
    steps/SHARD-STRATEGY.parquet      one row per model call: the context log and its figures
    contexts/SHARD-STRATEGY.parquet   the messages that the strategy wrote, where it wrote any
    events/SHARD-STRATEGY.parquet     what the strategy did at each step, where it reported anything
    grounding/SHARD-STRATEGY.parquet  what the recorded model used next: was it still there
    survival/SHARD-STRATEGY.parquet   facts that outlived rounds of summarising, where there were any
    probes/SHARD-STRATEGY.parquet     what was sent for each question with a known answer
    probes/SHARD.parquet              the same for the bounds: last_turn, evidence_only
    timings/SHARD-STRATEGY.parquet    wall-clock times
    results/SHARD-STRATEGY.parquet    one row per conversation × strategy, written last: the part is finished
    bills/SCHEME.parquet              what caches do with the requests, of schemes that were billed (bill/simulation.py)
    answers/, grades/                 what was answered to the probes, and how that was graded (answers/store.py)

A shard is some consecutive conversations, the same ones whatever the number of workers. Each file is written beside
its place and moved there, so it is whole or not there at all. `data/columns.toml` has the columns.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from ...metrics.measure import RaggedArray
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from .schema import FORMAT, SCHEMAS, Manifest

Rows = Mapping[str, Any]
"""Columns by name: a sequence or array each, Lists, a Constant where all rows say the same."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same text in every row."""

    value: str
    size: int


class ResultPart:
    """The file names of one part: a shard, or a shard under one strategy."""

    def __init__(self, folder: Path, shard: int, strategy: int | None = None) -> None:
        self.folder = folder
        self.name = f"{shard:05d}" if strategy is None else f"{shard:05d}-{strategy:03d}"

    def path(self, table: str) -> Path:
        """Return the path of a table of this part."""
        return self.folder / table / f"{self.name}.{'jsonl.zst' if table == 'recordings' else 'parquet'}"

    def whole(self, tables: Iterable[str]) -> bool:
        """Return whether all these tables of the part are there."""
        return all(self.path(table).is_file() for table in tables)

    def write(self, table: str, rows: Rows, digest: str = "") -> None:
        """Write a table of this part, whole or not at all. `digest`, of the shard, goes into the file's metadata."""
        schema = SCHEMAS[table].with_metadata({"shard": digest} if digest else None)
        columns = [_column(rows[field.name], field.type) for field in schema]
        with placed(self.path(table)) as path:
            table = pa.Table.from_arrays(columns, schema=schema)
            # Dictionaries and statistics would nearly double both size and time of these small tables (decision 3).
            pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)

    def digest(self, table: str) -> str | None:
        """Return the digest of the shard that a table was written from; None if the table is missing or damaged."""
        try:
            digest: bytes = (pq.read_schema(self.path(table)).metadata or {}).get(b"shard", b"")
        except (OSError, pa.ArrowException):
            return None
        return digest.decode()

    def write_recordings(self, conversations: Iterable[Conversation]) -> None:
        """Write the conversations themselves."""
        lines = b"".join(conversation.to_json() + b"\n" for conversation in conversations)
        with placed(self.path("recordings")) as path:
            path.write_bytes(zstandard.ZstdCompressor(level=1).compress(lines))


def _column(values: Any, kind: Any) -> Any:
    """Return values of any form that Rows may have as an Arrow array."""
    match values:
        case Constant(value, size):
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), pa.array([value]))
        case RaggedArray(offsets, items):
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(items, kind.value_type))
        case _:
            return pa.array(values, type=kind)


# Random bytes in the name of a draft.
_RANDOM = 8


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Yield a draft to write to; it is moved to its place at the end, or removed if anything goes wrong."""
    # Process ids are alike on hosts that share a disk, and on one host in containers.
    draft = path.with_name(f".{path.name}.{token_hex(_RANDOM)}")
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield draft
        os.replace(draft, path)  # in one step, on the same disk: a reader sees the old file or the new one
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


PER_SHARD = ("recordings", "conversations", "messages", "probes")
PER_CELL = ("steps", "grounding", "probes", "timings", "results")
"""Tables of which a finished run has one part per shard, and per shard and strategy. (`contexts` only where needed.)"""

TABLES = (*SCHEMAS, "recordings")
"""Every folder of a run."""

ANSWERS = ("answers", "grades")
"""Folders of answers and grades, with parts of their own (`answers/store.py`)."""

LOCK = ".lock"
"""A file that the run which is writing holds a lock on. It stays, empty."""

_PART = re.compile(r"(\d{5,})(-\d{3,})?\.(parquet|jsonl\.zst)")
_DRAFT = re.compile(rf"\.manifest\.json\.[0-9a-f]{{{2 * _RANDOM}}}")


class _PlanHeader(msgspec.Struct):
    strategies: tuple[str, ...]


class _Header(msgspec.Struct):
    """The fields that the manifest of a run has in every format."""

    format: int
    plan: _PlanHeader


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder. Raises RunError if one is writing there; a killed one is not in the way."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)  # of the operating system: it goes with the process, also if that is killed
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(f"{folder}: another run is writing there: wait for it, or name another --out") from None
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        yield
    finally:
        lock.release()


def unwritable(folder: Path, error: OSError) -> RunError:
    """Return the error for a folder that cannot be written."""
    return RunError(f"{folder}: cannot be written: {error.strerror or error}: name another folder with --out")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    fields = msgspec.to_builtins(manifest)
    if not manifest.complete:
        fields = {name: fields[name] for name in ("format", "plan", "window", "versions", "complete")}
    text = msgspec.json.format(msgspec.json.encode(fields), indent=2)
    with placed(folder / "manifest.json") as path:
        path.write_bytes(text + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run. Raises RunError if the folder holds no run, or one of another format."""
    path = folder / "manifest.json"
    header, text = _header(path)
    if header.format != FORMAT or not header.plan.strategies:
        what = f"a run folder of format {header.format!r}, this version reads {FORMAT}"
        raise RunError(f"{path}: {what}: run again with --overwrite, or name another --out")
    try:
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as error:
        raise RunError(f"{path}: damaged, or not of a run ({error})") from None


def check_manifest(folder: Path) -> None:
    """Raise RunError if the folder holds no run. A run of any format will do."""
    _header(folder / "manifest.json")


def _header(path: Path) -> tuple[_Header, bytes]:
    """Read what every format has in common, and the whole text. Raises RunError if that is not there."""
    try:
        text = path.read_bytes()
        return msgspec.json.decode(text, type=_Header), text
    except FileNotFoundError:
        to_run = shlex.join(["ctxbench", "run", "--out", str(path.parent)])
        raise RunError(f"{path.parent}: no run is here (no manifest.json): make one with `{to_run}`") from None
    except NotADirectoryError:
        raise RunError(f"{path.parent}: a run is a folder, and this is a file") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: damaged, or not of a run ({error})") from None


def is_complete(folder: Path) -> bool:
    """Return whether a finished run is here."""
    try:
        return read_manifest(folder).complete
    except RunError:
        return False


def missing_parts(folder: Path, shards: int, strategies: int) -> list[str]:
    """Return the parts that a finished run of so many shards and strategies lacks, as paths below the folder."""
    paths = [ResultPart(folder, shard).path(table) for table in PER_SHARD for shard in range(shards)]
    paths += [
        ResultPart(folder, shard, at).path(table)
        for table in PER_CELL
        for shard in range(shards)
        for at in range(strategies)
    ]
    return [str(path.relative_to(folder)) for path in paths if not path.is_file()]


def whole_shards(folder: Path, strategies: int) -> list[int]:
    """Return the shards that are measured under every strategy, of a run that may still go on."""
    shards = sorted(int(path.stem) for path in (folder / "conversations").glob("*.parquet") if path.stem.isdecimal())
    return [
        shard
        for shard in shards
        if ResultPart(folder, shard).whole(PER_SHARD)
        and all(ResultPart(folder, shard, at).whole(PER_CELL) for at in range(strategies))
    ]


def has_parts(folder: Path) -> bool:
    """Return whether anything has been measured here."""
    return any(_PART.fullmatch(path.name) for table in TABLES for path in (folder / table).glob("*"))


def is_free(folder: Path) -> bool:
    """Return whether a run may begin here: the folder has nothing but what a kill or a file browser leaves behind."""
    return all(path.name in (".DS_Store", LOCK) or _DRAFT.fullmatch(path.name) for path in folder.iterdir())


def remove_parts(folder: Path, shards: int = 0) -> None:
    """Remove the parts of all shards from number `shards` on, and what a killed run left half written.

    Nothing else is touched, whatever it is.
    """
    for path in folder.glob(".manifest.json.*"):
        if _DRAFT.fullmatch(path.name):
            path.unlink()
    answers = (path for table in ANSWERS for path in (folder / table).rglob("*") if path.is_dir())
    for table in (*(folder / table for table in TABLES), *answers):
        for path in table.glob("*"):
            part = _PART.fullmatch(path.name)
            draft = _PART.match(path.name[1:]) if path.name.startswith(".") else None
            if draft or (part and int(part[1]) >= shards):
                path.unlink()


def remove_empty(folder: Path) -> None:
    """Remove a run that has measured nothing, and its folder if nothing else is in it."""
    for name in ("manifest.json", LOCK):
        (folder / name).unlink(missing_ok=True)
    for path in (*(folder / table for table in TABLES), folder):
        with suppress(OSError):
            path.rmdir()


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Yield the conversations of one recordings file."""
    data = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    return (msgspec.json.decode(line, type=Conversation) for line in data.splitlines())
