"""A data set of the hub, or local files of one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from ..errors import MissingExtra, Place, RecordingError
from ..model import Conversation, Message
from ..source import Problems, convert, decode, is_table, mended, records, table_rows, without_nulls
from . import OBJECT, Reader, Recordings, decoded
from .chats import Share, share_messages, share_tools
from .messages import ChatMessage, chat_messages

HUB = "hf://"
_NAME = r"[\w-][\w.-]*"  # `..` would be a folder of this machine
_ADDRESS = re.compile(
    rf"{HUB}(?:datasets/)?(?!datasets/)(?P<name>{_NAME}/{_NAME})(?:@(?P<revision>[^/?]+))?(?:/(?P<file>[^?]*))?"
    r"(?:\?(?P<options>.*))?"
)
# Files beside the tables of a data set, with a key of each.
_ABOUT = {
    "state.json": b'"_data_files"',
    "dataset_info.json": b'"features"',
    "dataset_infos.json": b'"features"',
    "dataset_dict.json": b'"splits"',
}
_Rows = Iterator[tuple[Place, dict[str, Any]]]
_COLUMNS = ("messages", "conversations")
_WHOLE = "ctxbench"
# Other files that stand beside the data of a data set.
_BESIDE = ("README.md", ".gitattributes")


@dataclass(frozen=True)
class HuggingFace(Reader):
    """Hugging Face datasets with a conversation in each row. The hub needs the extra `datasets`.

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

    about = "Hugging Face datasets: hf://owner/data (extra: datasets), or parquet, arrow and CSV tables"
    folder = True

    name: str = ""
    config: str = ""
    split: str = "train"
    column: str = ""
    streaming: bool = True
    revision: str = ""
    file: str = ""  # one file of a data set on the hub, or a pattern of them; empty = all of the split

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is a table with a column of conversations, or belongs to such tables.

        Tables within an archive are none: their rows are records like any others.
        """
        if path.name in _ABOUT and _ABOUT[path.name] in head:
            tables = path.parent.glob("*/*.arrow" if path.name == "dataset_dict.json" else "*.arrow")
            return any(map(_has_conversations, sorted(tables)[:1]))
        return is_table(path.suffix, head) and path.is_file() and _has_conversations(path)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if not (self.name or files):
            remedy = "name hf://owner/data, or the path of a file or folder"
            raise RecordingError(Place("--format huggingface"), "neither a data set nor a path is named", remedy)
        for name, rows in self._tables(files, problems):
            with problems.collect():
                for at, (where, row) in enumerate(rows):
                    if not (row.keys() & {self.column} if self.column else row.keys() & {_WHOLE, *_COLUMNS}):
                        what = f"no column {self.column or ' or '.join(_COLUMNS)}: it has {', '.join(row)}"
                        remedy = "name the column that holds the conversation: column='…'"
                        raise RecordingError(Place(where.file), what, remedy)
                    with problems.collect():
                        yield where, self._conversation(row, f"{name}/{row.get('id', at)}", where, problems)

    def _tables(self, files: Sequence[Path], problems: Problems) -> Iterator[tuple[str, _Rows]]:
        """Yield the name and the rows of every table; what `save_to_disk` wrote into a folder is one table."""
        if self.name:
            yield self.name, self._hub()
        tables = [path for path in files if path.name not in (*_ABOUT, *_BESIDE)]
        saved = {path.parent for path in files if path.name == "state.json"}
        for folder, group in groupby(tables, key=lambda path: path.parent):
            if folder in saved:
                yield folder.name, _rows(group, problems)
            else:
                yield from ((path.stem, _rows([path], problems)) for path in group)

    def _hub(self) -> _Rows:
        """Yield the rows of a data set on the hub. An error of the library becomes a RecordingError."""
        place = Place(f"{HUB}{self.name}")
        try:
            library = import_module("datasets")
        except ImportError:
            what, _, remedy = str(MissingExtra("datasets", "datasets")).partition(": ")
            raise RecordingError(place, what, remedy) from None
        library.disable_progress_bars()
        options = {"split": self.split, "streaming": self.streaming, "revision": self.revision or None}
        options |= {"data_files": self.file} if self.file else {}
        try:
            for at, row in enumerate(library.load_dataset(self.name, self.config or None, **options), 1):
                yield Place(place.file, at), row
        except (OSError, ValueError, library.exceptions.DatasetsError) as error:
            what = f"cannot be loaded: {str(error).partition(chr(10))[0] or type(error).__name__}"
            remedy = "check name, config, split and revision; with a slash at its end, an address stands for the files"
            raise RecordingError(place, what, remedy) from None

    def _conversation(self, row: dict[str, Any], name: str, place: Place, problems: Problems) -> Conversation:
        if not self.column and row.get(_WHOLE) is not None:
            return convert(decoded(row[_WHOLE]), Conversation, place.at(_WHOLE))
        present = [name for name in _COLUMNS if name in row] or _COLUMNS
        column = self.column or next((name for name in present if row.get(name) is not None), present[0])
        messages = _messages(row.get(column), column, place, problems)
        tools = share_tools(without_nulls(row.get("tools")), place.at("tools"))
        return Conversation(id=name, messages=messages, tools=tools)


def _rows(paths: Iterable[Path], problems: Problems) -> _Rows:
    for path in paths:
        for place, raw in records(path, problems):
            with problems.collect():
                yield place, decode(raw, OBJECT, place)


def _has_conversations(path: Path) -> bool:
    """Return whether the first row of a table has a column of messages, as a list or as text."""
    try:
        with closing(table_rows(path, Problems())) as rows:
            row = next((decode(raw, OBJECT, place) for place, raw in rows), {})
    except RecordingError:
        return True  # a damaged table: its reader says what is wrong with it
    cells = [row[name] for name in _COLUMNS if name in row]
    return any(isinstance(cell, (list, dict)) or str(cell).lstrip().startswith("[") for cell in cells)


def names_files(address: str) -> bool:
    """Return whether an address names files or folders of a data set's repository, or all of them by a last slash."""
    match = _ADDRESS.fullmatch(address)
    if match is None or match["file"] is None or match["options"] is not None:
        return False
    return ".." not in match["file"].split("/")


def from_address(address: str, reader: HuggingFace | None = None) -> HuggingFace:
    """Return the reader of a data set by its address, `hf://owner/data@revision/file?split=test`, with other options.

    Raises RecordingError for an address that names no data set, or an option that there is not.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise RecordingError(Place(address), "this names no data set", "write it like hf://owner/data?split=test")
    options: dict[str, Any] = dict(parse_qsl(match["options"] or ""))
    known = {option.name for option in fields(HuggingFace)} - {"name", "file", "streaming"}
    if unknown := options.keys() - known:
        what = f"no option {', '.join(sorted(unknown))}"
        raise RecordingError(Place(address), what, f"there are {', '.join(sorted(known))}")
    if match["revision"]:
        options["revision"] = match["revision"]
    return replace(reader or HuggingFace(), name=match["name"], file=(match["file"] or "").strip("/"), **options)


def _messages(value: Any, column: str, place: Place, problems: Problems) -> tuple[Message, ...]:
    """Return a row's conversation in either form. A list of records may come as a record of lists, or as text."""
    where = place.at(column)
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            why = str(error).removeprefix("JSON is malformed: ")
            try:  # Python's, as which pandas writes a list into CSV: literals alone, so that nothing is run
                value = ast.literal_eval(mended(value.encode())[0].decode())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                what = f"neither a list nor JSON: {why}"
                raise RecordingError(where, what, "write the column as JSON text") from None
    if isinstance(value, dict):
        try:
            value = [dict(zip(value, record, strict=True)) for record in zip(*value.values(), strict=True)]
        except (TypeError, ValueError):
            what = "a record of lists whose lists have not one length"
            raise RecordingError(where, what, "give a list of messages") from None
    if isinstance(value, list) and value and isinstance(value[0], dict) and "from" in value[0]:
        return share_messages(convert({"conversations": value}, Share, place), place)
    return chat_messages(convert(without_nulls(value), list[ChatMessage], where), where, problems)
