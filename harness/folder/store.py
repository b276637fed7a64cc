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
its place and moved there, so it is whole or not there at all. `columns.py` has the columns.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from ...metrics.measure import RaggedArray
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from .schema import SCHEMAS

FORMAT = 5
"""Of the run folder. Another number is another layout, which this version does not read."""

Rows = Mapping[str, Any]
"""Columns by name: a sequence or array each, Lists, a Constant where all rows say the same."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same text in every row."""

    value: str
    size: int


class ResultPart:
    """The names of one part's files: a shard, or a shard under one strategy."""

    def __init__(self, folder: Path, shard: int, strategy: int | None = None) -> None:
        self.folder = folder
        self.name = f"{shard:05d}" if strategy is None else f"{shard:05d}-{strategy:03d}"

    def path(self, table: str) -> Path:
        """Where a table of this part stands."""
        return self.folder / table / f"{self.name}.{'jsonl.zst' if table == 'recordings' else 'parquet'}"

    def whole(self, tables: Iterable[str]) -> bool:
        """Whether all these tables of the part are there."""
        return all(self.path(table).is_file() for table in tables)

    def write(self, table: str, rows: Rows, digest: str = "") -> None:
        """Write a table of this part, whole or not at all. `digest`, of the shard, goes into the file's metadata."""
        schema = SCHEMAS[table].with_metadata({"shard": digest} if digest else None)
        columns = [_column(rows[field.name], field.type) for field in schema]
        with placed(self.path(table)) as path:
            table = pa.Table.from_arrays(columns, schema=schema)
            pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)

    def digest(self, table: str) -> str | None:
        """The digest of the shard that a table of this part was written from; None if it is not there, or damaged."""
        try:
            found: bytes = (pq.read_schema(self.path(table)).metadata or {}).get(b"shard", b"")
        except (OSError, pa.ArrowException):
            return None
        return found.decode()

    def write_recordings(self, conversations: Iterable[Conversation]) -> None:
        """Write the conversations themselves."""
        lines = b"".join(conversation.to_json() + b"\n" for conversation in conversations)
        with placed(self.path("recordings")) as path:
            path.write_bytes(zstandard.ZstdCompressor(level=1).compress(lines))


def _column(values: Any, kind: Any) -> Any:
    """A column of any form that Rows may have."""
    match values:
        case Constant(value, size):
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), pa.array([value]))
        case RaggedArray(offsets, items):
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(items, kind.value_type))
        case _:
            return pa.array(values, type=kind)


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """A draft to write to, which is moved to its place at the end, or removed if anything goes wrong."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


PER_SHARD = ("recordings", "conversations", "messages", "probes")
PER_CELL = ("steps", "grounding", "probes", "timings", "results")
"""Tables of which a finished run has one part per shard, and per shard and strategy. (`contexts` only where needed.)"""

TABLES = (*SCHEMAS, "recordings")
"""Every folder of a run."""

ANSWERS = ("answers", "grades")
"""Folders of those who answered and graded, with parts of their own (`answering/parts.py`)."""

LOCK = ".lock"
"""A file that the run which is writing holds a lock on. It stays, empty."""

_PART = re.compile(r"(\d{5,})(-\d{3,})?\.(parquet|jsonl\.zst)")
_DRAFT = re.compile(r"\.manifest\.json\.\d+")


class Manifest(msgspec.Struct):
    """What `manifest.json` must hold. The rest of it is there to be read."""

    format: int
    plan: dict[str, Any]
    window: int
    versions: dict[str, str]
    complete: bool
    shards: int = 0
    problems: list[dict[str, Any]] = []
    ignored: list[str] = []
    digest: str = ""
    conversations: int = 0


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder. Raises RunError if one is writing there; a killed one is not in the way."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
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
    """What to say of it."""
    return RunError(f"{folder}: cannot be written: {error.strerror or error}: name another folder with --out")


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write manifest.json."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    with placed(folder / "manifest.json") as path:
        path.write_bytes(text + b"\n")


def read_manifest(folder: Path, any_format: bool = False) -> dict[str, Any]:
    """The manifest of a run. Raises RunError if the folder holds no run, or one of another layout."""
    path = folder / "manifest.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
        strategies = msgspec.convert(found.plan.get("strategies"), list[str])
    except FileNotFoundError:
        to_run = shlex.join(["ctxbench", "run", "--out", str(folder)])
        raise RunError(f"{folder}: no run is here (no manifest.json): make one with `{to_run}`") from None
    except NotADirectoryError:
        raise RunError(f"{folder}: a run is a folder, and this is a file") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: damaged, or not of a run ({error})") from None
    if (found.format != FORMAT and not any_format) or not strategies:
        what = f"a run folder of format {found.format!r}, this version reads {FORMAT}"
        raise RunError(f"{path}: {what}: run again with --overwrite, or name another --out")
    return msgspec.structs.asdict(found)


def is_complete(folder: Path) -> bool:
    """Whether a finished run is here."""
    try:
        return bool(read_manifest(folder)["complete"])
    except RunError:
        return False


def missing_parts(folder: Path, shards: int, strategies: int) -> list[str]:
    """The parts that a finished run of so many shards and strategies should have and has not."""
    paths = [ResultPart(folder, shard).path(table) for table in PER_SHARD for shard in range(shards)]
    paths += [
        ResultPart(folder, shard, at).path(table)
        for table in PER_CELL
        for shard in range(shards)
        for at in range(strategies)
    ]
    return [str(path.relative_to(folder)) for path in paths if not path.is_file()]


def has_parts(folder: Path) -> bool:
    """Whether anything has been measured here."""
    return any(_PART.fullmatch(path.name) for table in TABLES for path in (folder / table).glob("*"))


def is_free(folder: Path) -> bool:
    """Whether a run may begin here: nothing is in the folder but what a kill or a file browser leaves behind."""
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
    """The conversations of one recordings file."""
    data = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    return (msgspec.json.decode(line, type=Conversation) for line in data.splitlines())
