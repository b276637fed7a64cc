"""A data set of the hub, or local files of one."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from ..errors import MissingExtra, Place, RecordingError
from ..model import Conversation, Message
from ..source import Problems, convert, decode
from ..tables import without_nulls
from . import Reader, Recordings
from .chats import Share, ShareMessages, share_tools
from .messages import ChatMessage, chat_messages

HUB = "hf://"
_NAME = re.compile(r"[\w-][\w.-]*")
_FILES = re.compile(rf"{HUB}(?:datasets/)?(?!datasets/){_NAME.pattern}/{_NAME.pattern}(?:@[^/?]+)?/(?P<below>[^?]*)")
_BUILDERS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".arrow": "arrow", ".csv": "csv"}
_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
# Files beside the tables of a data set, with a key of each.
_ABOUT = {
    "state.json": b'"_data_files"',
    "dataset_info.json": b'"features"',
    "dataset_infos.json": b'"features"',
    "dataset_dict.json": b'"splits"',
}
_Rows = Iterable[dict[str, Any]]
_COLUMNS = ("messages", "conversations")
_WHOLE = "ctxbench"
# Other files that stand beside the data of a data set.
_BESIDE = ("README.md", ".gitattributes")


@dataclass(frozen=True)
class HuggingFace(Reader):
    """Hugging Face datasets with a conversation in each row. Needs the extra `datasets`.

        hf://owner/data                                    a data set on the hub, streamed
        hf://owner/data@revision?split=test&config=main    any part of one
        hf://owner/data/part*.parquet?column=chosen        some files of one
        rows.parquet | rows.arrow | rows.csv               tables, known by their content
        folder                                             what `save_to_disk` wrote, or a folder of tables
        --format "huggingface(column='chosen')"            any of these, and JSON Lines, with options

    A row's conversation is its column `messages` (OpenAI's form), else `conversations` (ShareGPT's form); `column`
    names another one, of either form; `tools` holds tool schemas. Either may be text: JSON, or Python's, as which
    pandas writes lists into CSV. (`Dataset.to_csv` writes lists as numpy prints them, which nothing reads back.) The
    row's `id`, or else its number, becomes the conversation's id. A column `ctxbench`, which `ctxbench export dataset`
    writes, has the whole recording as JSON text, and counts alone. Other columns are not read. An error's line is the
    number of the row, from 1.

    `config`, `split`, `revision` and `streaming` are parameters of `datasets.load_dataset` for the hub; of local files
    all rows are read, one at a time. A hub data set is downloaded: this is the one reader that may use the network, and
    it does so for nothing but a name of the hub. An address of files without options, `hf://owner/data/logs` or
    `hf://owner/data/` with its slash, is none of this reader's: they are read in whatever format they are, through
    fsspec (`packed.py`).
    """

    about = "Hugging Face datasets: hf://owner/data, or parquet, arrow and CSV tables (extra: datasets)"
    folder = True

    name: str = ""
    config: str = ""
    split: str = "train"
    column: str = ""
    streaming: bool = True
    revision: str = ""
    file: str = ""
    """One file of a data set on the hub, or a pattern of them; empty = all of the split."""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is a table with a column of conversations, or belongs to such tables.

        A table within an archive is none, for its library reads paths: its rows are records like any others.
        """
        if not path.is_file():
            return False
        if path.name in _ABOUT:
            tables = path.parent.glob("*/*.arrow" if path.name == "dataset_dict.json" else "*.arrow")
            return _ABOUT[path.name] in head and any(_has_conversations(table) for table in sorted(tables)[:1])
        if head.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM)):
            return _has_conversations(path)
        return path.suffix.lower() == ".csv" and _is_csv_of_conversations(head)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if not (self.name or files):
            remedy = "name hf://owner/data, or the path of a file or folder"
            raise RecordingError(Place("--format huggingface"), "neither a data set nor a path is named", remedy)
        library = _library(f"{HUB}{self.name}" if self.name else str(files[0]))
        for place, rows in self._tables(files, library):
            with problems.collect():
                yield from self._conversations(_loaded(rows, place, library), place, problems)

    def _tables(self, files: Sequence[Path], library: Any) -> Iterator[tuple[Place, Callable[[], _Rows]]]:
        """Yield the place of every table, and a function that opens it."""
        if self.name:
            yield Place(f"{HUB}{self.name}"), partial(self._hub, library)
        saved = {path.parent for path in files if path.name == "state.json"}
        for folder in sorted(saved):
            yield Place(str(folder)), partial(library.load_from_disk, str(folder))
        for path in files:
            if path.parent not in saved and path.name not in (*_ABOUT, *_BESIDE):
                yield Place(str(path)), partial(_file, path, library)

    def _hub(self, library: Any) -> _Rows:
        rows: _Rows = library.load_dataset(
            self.name,
            self.config or None,
            split=self.split,
            streaming=self.streaming,
            revision=self.revision or None,
            **({"data_files": self.file} if self.file else {}),
        )
        return rows

    def _conversations(self, rows: _Rows, place: Place, problems: Problems) -> Recordings:
        name = self.name or Path(place.file).stem
        for at, row in enumerate(rows):
            if not self.column and isinstance(whole := row.get(_WHOLE), str):
                where = Place(place.file, at + 1)
                with problems.collect():
                    yield where, decode(whole.encode(), Conversation, where.at(_WHOLE))
                continue
            column = self.column or next((name for name in _COLUMNS if row.get(name) is not None), "")
            if column not in row:
                what = f"no column {column or ' or '.join(_COLUMNS)}: it has {', '.join(row)}"
                raise RecordingError(place, what, "name the column that holds the conversation: column='…'")
            where = Place(place.file, at + 1)
            with problems.collect():
                messages = _messages(row[column], column, where, problems)
                tools = share_tools(without_nulls(row.get("tools")), where.at("tools"))
                yield where, Conversation(id=f"{name}/{row.get('id', at)}", messages=messages, tools=tools)


def names_files(address: str) -> bool:
    """Return whether an address names files or folders of a data set's repository, or all of them by a last slash."""
    match = _FILES.fullmatch(address)
    return match is not None and ".." not in match["below"].split("/")


def from_address(address: str, reader: HuggingFace | None = None) -> HuggingFace:
    """Return the reader of a data set by its address, `hf://owner/data@revision/file?split=test`, with other options.

    Raises RecordingError for an address that names no data set, or an option that there is not.
    """
    parts = urlsplit(address)
    path = f"{parts.netloc}{parts.path}".removeprefix("datasets/").strip("/")
    owner, _, rest = path.partition("/")
    name, _, file = rest.partition("/")
    name, _, revision = name.partition("@")
    if not (_NAME.fullmatch(owner) and _NAME.fullmatch(name)):  # `..` would be a folder of this machine
        raise RecordingError(Place(address), "this names no data set", "write it like hf://owner/data?split=test")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    known = {option.name for option in fields(HuggingFace)} - {"name", "file", "streaming"}
    if unknown := options.keys() - known:
        what = f"no option {', '.join(sorted(unknown))}"
        raise RecordingError(Place(address), what, f"there are {', '.join(sorted(known))}")
    if revision:
        options["revision"] = revision
    return replace(reader or HuggingFace(), name=f"{owner}/{name}", file=file, **options)


def _has_conversations(path: Path) -> bool:
    """Return whether a Parquet or Arrow file has a column of messages, as lists of records or as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            start = file.read(8)
            file.seek(0)
            if start.startswith(_PARQUET):
                schema = pq.read_schema(file)
            else:
                schema = (pa.ipc.open_file if start.startswith(_ARROW_FILE) else pa.ipc.open_stream)(file).schema
    except (OSError, pa.ArrowException):
        return start.startswith((_PARQUET, _ARROW_FILE))  # a damaged table: its reader says what is wrong with it
    columns = [schema.field(name).type for name in _COLUMNS if name in schema.names]
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_string, pa.types.is_large_string, pa.types.is_struct)
    return any(is_kind(column) for column in columns for is_kind in lists)


def _is_csv_of_conversations(head: bytes) -> bool:
    """Return whether a CSV file has a column of messages, with a list in its first row."""
    try:
        rows = csv.reader(head.decode("utf-8", "replace").splitlines(keepends=True))
        names, first = next(rows), next(rows)
    except (csv.Error, StopIteration):
        return False
    return any(name in _COLUMNS and cell.lstrip().startswith("[") for name, cell in zip(names, first, strict=False))


def _library(wanted: str) -> Any:
    try:
        library = import_module("datasets")
    except ImportError:
        missing = MissingExtra("datasets", "datasets")
        raise RecordingError(Place(wanted), str(missing).partition(": ")[0], str(missing).partition(": ")[2]) from None
    library.disable_progress_bars()
    return library


def _file(path: Path, library: Any) -> _Rows:
    with path.open("rb") as file:
        start = file.read(8)
    by_content = {_PARQUET: "parquet", _ARROW_FILE: "arrow", _ARROW_STREAM: "arrow"}
    builder = next((name for mark, name in by_content.items() if start.startswith(mark)), "")
    builder = builder or _BUILDERS.get(path.suffix.lower(), "")
    if not builder:
        known = ", ".join(_BUILDERS)
        raise RecordingError(Place(str(path)), f"a {path.suffix or 'nameless'} file is no data set", f"give {known}")
    rows: _Rows = library.load_dataset(builder, data_files=str(path), split="train", streaming=True)
    return rows


def _loaded(rows: Callable[[], _Rows], place: Place, library: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows. An error of the library (wrong name, lost connection, damaged file) becomes a RecordingError."""
    try:
        yield from rows()
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        what = f"cannot be loaded: {str(error).partition(chr(10))[0] or type(error).__name__}"
        remedy = "check name, config, split and revision, or the file"
        if place.file.startswith(HUB):
            remedy += "; with a slash at its end, an address stands for the files, of any format"
        raise RecordingError(place, what, remedy) from None


def _messages(value: Any, column: str, place: Place, problems: Problems) -> tuple[Message, ...]:
    """Return a row's conversation in either form. A list of records may come as a record of lists, or as text."""
    if isinstance(value, str):
        value = _from_text(value, place.at(column))
    if isinstance(value, dict):
        try:
            value = [dict(zip(value, record, strict=True)) for record in zip(*value.values(), strict=True)]
        except (TypeError, ValueError):
            what = "a record of lists whose lists have not one length"
            raise RecordingError(place.at(column), what, "give a list of messages") from None
    if isinstance(value, list) and value and isinstance(value[0], dict) and "from" in value[0]:
        return ShareMessages(place).all(convert({"conversations": value}, Share, place))
    where = place.at(column)
    return chat_messages(convert(without_nulls(value), list[ChatMessage], where), where, problems)


def _from_text(text: str, place: Place) -> Any:
    """Return the value of JSON text, or of Python's, as which pandas writes a list into CSV."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        why = str(error).removeprefix("JSON is malformed: ")
    try:
        return ast.literal_eval(text)  # literals alone: it runs nothing
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RecordingError(place, f"neither a list nor JSON: {why}", "write the column as JSON text") from None
