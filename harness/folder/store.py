"""A run is a folder. Everything in it but `timings/` is the same bytes for the same input, however it was made.

What its live model calls cost is the exception: `spent` in the manifest, and `.account`.

    manifest.json                     what was asked for, versions, problems, digests of every file and of itself
    .account                          the name under which its money is counted, where a model was called
    recordings/SHARD.jsonl.zst        the conversations, lossless (ctxbench JSONL)
    conversations/SHARD.parquet       one row per conversation, written last of the shard's own part
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
its place and moved there, so it is whole or not there at all. Tables have a digest of themselves in their footers: it
tells of damage where the manifest has none of a file. `data/columns.toml` has the columns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import zstandard
from pyarrow import parquet

from ctxbench.metrics.measure import RaggedArray
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import LARGEST, read_file
from ctxbench.scenarios.model import Conversation

from .files import RANDOM, file_digests, is_intact, placed, write_table
from .schema import FORMAT, SCHEMAS, Manifest, signed

T = TypeVar("T")
Rows = Mapping[str, Any]  # columns by name: a sequence or array each, or a RaggedArray
Tables = dict[str, pa.Table]


def table_of(name: str, rows: Rows) -> pa.Table:
    """Return rows as a table of a run folder."""
    columns = []
    for field in SCHEMAS[name]:
        values, kind = rows[field.name], field.type
        if isinstance(values, RaggedArray):
            offsets, items = pa.array(values.offsets, pa.int32()), pa.array(values.values, kind.value_type)
            columns.append(pa.ListArray.from_arrays(offsets, items))
        else:
            columns.append(pa.array(values, type=kind))
    return pa.Table.from_arrays(columns, schema=SCHEMAS[name])


def joined(parts: Sequence[Tables]) -> Tables:
    """Return the tables of consecutive conversations as one of each name."""
    names = dict.fromkeys(name for tables in parts for name in tables)
    found = {name: pa.concat_tables([tables[name] for tables in parts if name in tables]) for name in names}
    return {name: table.unify_dictionaries().combine_chunks() for name, table in found.items()}


def packed(tables: Tables) -> bytes:
    """Return tables as bytes, which are not compressed: several at once take a tenth of the time, and half the room."""
    return msgspec.msgpack.encode({name: _stream(table) for name, table in tables.items()})


def _stream(table: pa.Table) -> memoryview:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    return memoryview(buffer.getvalue())


def unpacked(data: bytes) -> Tables:
    """Return tables from their bytes."""
    streams = msgspec.msgpack.decode(data, type=dict[str, memoryview])
    return {name: pa.ipc.open_stream(stream).read_all() for name, stream in streams.items()}


class ResultPart:
    """The files of one part: a shard, or a shard under one strategy. It is finished when its last table is there."""

    def __init__(self, folder: Path, shard: int, strategy: int | None = None) -> None:
        self.folder = folder
        self.name = f"{shard:05d}" if strategy is None else f"{shard:05d}-{strategy:03d}"
        self._tables = PER_SHARD if strategy is None else PER_CELL

    def path(self, table: str) -> Path:
        """Return the path of a table of this part."""
        return self.folder / table / f"{self.name}{'.jsonl.zst' if table == 'recordings' else '.parquet'}"

    @property
    def files(self) -> list[Path]:
        """The files that are there, the last one to be written at the end."""
        paths = map(self.path, sorted(TABLES, key=lambda table: table == self._tables[-1]))
        return [path for path in paths if path.is_file()]

    def is_whole(self) -> bool:
        """Return whether all files that every part has are there."""
        return all(self.path(table).is_file() for table in self._tables)

    def write(self, tables: Tables) -> None:
        """Write tables of this part, each whole or not at all, and the one last that says that it is finished."""
        for name in sorted(tables, key=lambda table: table == self._tables[-1]):
            # Dictionaries and statistics would nearly double both size and time of these small tables (decision 3).
            write_table(
                self.path(name),
                tables[name],
                compression_level=_LEVEL,
                data_page_size=_PAGE,
                use_dictionary=False,
            )

    def write_recordings(self, conversations: Iterable[Conversation]) -> None:
        """Write the conversations themselves."""
        lines = b"".join(conversation.to_json() + b"\n" for conversation in conversations)
        with placed(self.path("recordings")) as path:
            path.write_bytes(zstandard.ZstdCompressor(level=1, write_checksum=True).compress(lines))

    def remove(self) -> None:
        """Remove what is there of this part, first the file that says it is finished."""
        for path in reversed(self.files):
            path.unlink(missing_ok=True)


PER_SHARD = ("recordings", "messages", "probes", "conversations")
PER_CELL = ("steps", "grounding", "probes", "timings", "results")
"""Tables of which a finished run has one part per shard, and per shard and strategy, the last one written last."""

TABLES = (*SCHEMAS, "recordings")  # every folder of a run

ANSWERS = ("answers", "grades")  # folders of answers and grades, with parts of their own (`answers/store.py`)

BILLS = "bills"
"""Folder of tables that are made from a run alone: they count as long as its files and the code are the same."""

LOCK = ".lock"
"""A file that the run which is writing holds a lock on. It stays, empty."""
ACCOUNT = ".account"  # a file with the name under which the folder's money is counted, where a model was called

_LEVEL, _PAGE = 9, 1 << 24
"""How well tables are compressed, in such pages: a memory message repeats most of the one far before it."""

_PART = re.compile(r"(\d{5,})(?:-(\d{3,}))?\.(parquet|jsonl\.zst)")
_DRAFT = re.compile(rf"\.manifest\.json\.[0-9a-f]{{{2 * RANDOM}}}")


class _Header(msgspec.Struct):
    """The fields that the manifest of a run has in every format."""

    format: int
    plan: dict[str, Any]


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


def account(folder: Path) -> str:
    """Return the name under which the money of a run folder is counted, and give it one if need be."""
    path, name = folder / ACCOUNT, token_hex(16)
    if not path.exists():
        draft = folder / f"{ACCOUNT}.{name}"
        draft.write_text(name + sha256(name.encode()).hexdigest()[:8])
        try:
            os.link(draft, path)  # unlike a move, this leaves the file of another process that was first
        except FileExistsError:
            pass
        except OSError:  # a disk without links
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    text = path.read_text("latin-1")
    if text[32:] != sha256(text[:32].encode()).hexdigest()[:8]:
        raise RunError(f"{path}: is not as it was written: delete it, and count what was spent here so far yourself")
    return text[:32]


def unwritable(folder: Path, error: OSError) -> RunError:
    """Return the error for a folder that cannot be written."""
    # Arrow's errors have the number in their text alone.
    told = re.search(r"\[errno (\d+)\]", str(error))
    number = error.errno or (int(told[1]) if told else 0)
    why = error.strerror or (os.strerror(number) if number else str(error))
    remedy = "free some space and give the same command again, or " if number == ENOSPC else ""
    return RunError(f"{folder}: cannot be written: {why}: {remedy}name another folder with --out")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    text = msgspec.json.format(msgspec.json.encode(signed(manifest)), indent=2)
    with placed(folder / "manifest.json") as path:
        path.write_bytes(text + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run. Raises RunError if the folder holds no run, or one of another format."""
    path, (number, text) = folder / "manifest.json", check_manifest(folder)
    if number != FORMAT:
        what = f"a run folder of format {number}, this version reads {FORMAT}"
        raise RunError(f"{path}: {what}: run again with --overwrite, or name another --out")
    manifest = _decoded(path, text, Manifest)
    if signed(manifest) != manifest:
        raise RunError(f"{path}: is not as it was written: run again with --overwrite")
    return manifest


def check_manifest(folder: Path) -> tuple[int, bytes]:
    """Return the format and the text of the manifest of a run of any format. Raises RunError if there is none."""
    path = folder / "manifest.json"
    try:
        text = read_file(path, LARGEST)
    except FileNotFoundError:
        raise RunError(f"{folder}: no run is here (no manifest.json): `ctxbench run` makes one") from None
    except NotADirectoryError:
        raise RunError(f"{folder}: a run is a folder, and this is a file") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    return _decoded(path, text, _Header).format, text


def _decoded(path: Path, text: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: damaged, or not of a run ({error})") from None


def is_complete(folder: Path) -> bool:
    """Return whether a finished run is here."""
    try:
        return read_manifest(folder).complete
    except RunError:
        return False


def parts_of(folder: Path, shard: int, strategies: int) -> list[ResultPart]:
    """Return the parts of a shard: its own, and that under each strategy."""
    return [ResultPart(folder, shard), *(ResultPart(folder, shard, at) for at in range(strategies))]


def part_files(folder: Path) -> list[str]:
    """Return the files of all parts by their paths in the run folder, in order."""
    paths = (path for table in TABLES for path in (folder / table).glob("*") if is_part(path.name))
    return sorted(path.relative_to(folder).as_posix() for path in paths)


TIMES = "timings/"
"""Start of the paths of files that differ from run to run: the manifest has no digest of them, they themselves do."""


def damage(folder: Path, manifest: Manifest) -> dict[str, str]:
    """Map each file that is missing, changed or foreign to what is wrong; of an unfinished run only changed ones."""
    times = {TIMES + name.removeprefix("results/") for name in manifest.files if name.startswith("results/")}
    here = set(part_files(folder))
    written = manifest.files.keys() | times if manifest.complete else here
    digests = file_digests(folder, here & manifest.files.keys())
    changed = {name for name, digest in digests.items() if digest != manifest.files[name]}
    changed |= {name for name in (here & written) - manifest.files.keys() if not is_intact(folder / name)}
    wrong = {
        **dict.fromkeys(written - here, "is missing"),
        **dict.fromkeys(here - written, "is not of this run"),
        **dict.fromkeys(changed, "is not as it was written"),
    }
    return dict(sorted(wrong.items()))


def remove_damaged(folder: Path, manifest: Manifest) -> None:
    """Remove the parts of a run that have damage; with its own part a shard loses all others."""
    for name in damage(folder, manifest):
        shard, _, strategy = Path(name).name.partition(".")[0].partition("-")
        parts = parts_of(folder, int(shard), len(manifest.plan.strategies))
        for part in [ResultPart(folder, int(shard), int(strategy))] if strategy else reversed(parts):
            part.remove()


def whole_shards(folder: Path, strategies: int) -> list[int]:
    """Return the shards that are measured under every strategy, of a run that may still go on."""
    shards = sorted(int(path.stem) for path in (folder / "conversations").glob("*.parquet") if path.stem.isdecimal())
    return [shard for shard in shards if all(part.is_whole() for part in parts_of(folder, shard, strategies))]


def finished_conversations(folder: Path, strategies: int) -> int:
    """Return how many conversations of a run are measured under every strategy."""
    parts = (ResultPart(folder, shard) for shard in whole_shards(folder, strategies))
    return sum(parquet.read_metadata(part.path("conversations")).num_rows for part in parts)


def is_part(name: str) -> bool:
    """Return whether a file has the name of a part."""
    return _PART.fullmatch(name) is not None


def shard_of(path: Path) -> int:
    """Return the number of the shard that a file of a part is of."""
    return int(path.name.partition(".")[0].partition("-")[0])


def is_free(folder: Path) -> bool:
    """Return whether a run may begin here: the folder has nothing but what a kill or a file browser leaves behind."""
    return all(path.name in (".DS_Store", LOCK) or _DRAFT.fullmatch(path.name) for path in folder.iterdir())


def remove_parts(folder: Path, shards: int, strategies: int) -> None:
    """Remove parts from these numbers on, and what a killed run left half written, but nothing else."""
    for path in folder.glob(".manifest.json.*"):
        if _DRAFT.fullmatch(path.name):
            path.unlink()
    answers = (path for table in ANSWERS for path in (folder / table).rglob("*") if path.is_dir())
    for table in (*(folder / table for table in TABLES), *answers):
        for path in table.glob("*"):
            part = _PART.fullmatch(path.name)
            draft = _PART.match(path.name[1:]) if path.name.startswith(".") else None
            if draft or (part and (int(part[1]) >= shards or int(part[2] or -1) >= strategies)):
                path.unlink()


def remove_strategy(folder: Path, strategy: int) -> None:
    """Remove all parts of a strategy."""
    for path in (folder / "conversations").glob("*.parquet"):
        ResultPart(folder, shard_of(path), strategy).remove()


def remove_empty(folder: Path) -> None:
    """Remove a run that has measured nothing, and its folder if nothing else is in it."""
    remove_parts(folder, 0, 0)
    for name in ("manifest.json", LOCK, ACCOUNT):
        (folder / name).unlink(missing_ok=True)
    for path in (*(folder / table for table in TABLES), folder):
        with suppress(OSError):
            path.rmdir()


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Yield the conversations of one recordings file."""
    data = zstandard.ZstdDecompressor().decompress(read_file(path, LARGEST))
    return (msgspec.json.decode(line, type=Conversation) for line in data.splitlines())
