"""Hugging Face datasets with a conversation in each row. Needs the extra `datasets`.

    --format "huggingface(name='org/data', split='train')"            a data set on the hub: no path is needed
    --format huggingface  rows.parquet | rows.jsonl | rows.arrow      local files
    --format huggingface  folder                                      what `save_to_disk` wrote

A row's conversation is its column `messages` (OpenAI's form), else `conversations` (ShareGPT's form); `column` names
another one, of either form; `tools` holds tool schemas, or the JSON text of them. The row's `id`, or else its number,
becomes the conversation's id. A column `ctxbench`, which `ctxbench export dataset` writes, has the whole recording as
JSON text, and counts alone. Other columns are not read. An error's line is the number of the row, from 1.

`config`, `split`, `revision` and `streaming` are parameters of `datasets.load_dataset` for the hub; of local files all
rows are read, one at a time. A hub data set is downloaded: this is the one reader that may use the network. It
is never chosen by content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from ..errors import MissingExtra, Place, RecordingError
from ..model import Conversation, Message
from ..source import Problems, convert, decode
from . import Recordings
from .messages import ChatMessage, chat_messages
from .sharegpt import Share, ShareMessages, share_tools

_BUILDERS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".arrow": "arrow"}
_Rows = Iterable[dict[str, Any]]
_COLUMNS = ("messages", "conversations")
_WHOLE = "ctxbench"
# What stands beside the data of a data set.
_BESIDE = ("dataset_dict.json", "dataset_info.json", "README.md", ".gitattributes")


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """A data set of the hub, or local files of one."""

    about: ClassVar[str] = "Hugging Face datasets: a hub name, or parquet, arrow and JSON files (extra: datasets)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = ()  # never chosen by content: it may use the network
    folder: ClassVar[bool] = True

    name: str = ""
    config: str = ""
    split: str = "train"
    column: str = ""
    streaming: bool = True
    revision: str = ""

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if not (self.name or files):
            remedy = "give --format \"huggingface(name='owner/data')\", or the path of a file or folder"
            raise RecordingError(Place("--format huggingface"), "neither a data set nor a path is named", remedy)
        library = _library()
        for place, rows in self._tables(files, library):
            try:
                yield from self._conversations(_loaded(rows, place, library), place, problems)
            except RecordingError as error:
                problems.add(error)

    def _tables(self, files: Sequence[Path], library: Any) -> Iterator[tuple[Place, Callable[[], _Rows]]]:
        """Yield the place of every table, and a function that opens it."""
        if self.name:
            yield Place(f"huggingface:{self.name}"), partial(self._hub, library)
        saved = {path.parent for path in files if path.name == "state.json"}
        for folder in sorted(saved):
            yield Place(str(folder)), partial(library.load_from_disk, str(folder))
        for path in files:
            if path.parent not in saved and path.name not in _BESIDE:
                yield Place(str(path)), partial(_file, path, library)

    def _hub(self, library: Any) -> _Rows:
        rows: _Rows = library.load_dataset(
            self.name,
            self.config or None,
            split=self.split,
            streaming=self.streaming,
            revision=self.revision or None,
        )
        return rows

    def _conversations(self, rows: _Rows, place: Place, problems: Problems) -> Recordings:
        name = self.name or Path(place.file).stem
        for at, row in enumerate(rows):
            if not self.column and isinstance(whole := row.get(_WHOLE), str):
                where = Place(place.file, at + 1)
                try:
                    yield where, decode(whole.encode(), Conversation, where.at(_WHOLE))
                except RecordingError as error:
                    problems.add(error)
                continue
            column = self.column or next((name for name in _COLUMNS if row.get(name) is not None), "")
            if column not in row:
                what = f"no column {column or ' or '.join(_COLUMNS)}: it has {', '.join(row)}"
                raise RecordingError(place, what, "name the column that holds the conversation: column='…'")
            where = Place(place.file, at + 1)
            try:
                messages = _messages(row[column], column, where)
                tools = share_tools(_without_nulls(row.get("tools")), where.at("tools"))
                yield where, Conversation(id=f"{name}/{row.get('id', at)}", messages=messages, tools=tools)
            except RecordingError as error:
                problems.add(error)


def _library() -> Any:
    try:
        return import_module("datasets")
    except ImportError:
        raise MissingExtra("datasets", "datasets") from None


def _file(path: Path, library: Any) -> _Rows:
    if path.suffix not in _BUILDERS:
        known = ", ".join(_BUILDERS)
        raise RecordingError(Place(str(path)), f"a {path.suffix or 'nameless'} file is no data set", f"give {known}")
    rows: _Rows = library.load_dataset(_BUILDERS[path.suffix], data_files=str(path), split="train", streaming=True)
    return rows


def _loaded(rows: Callable[[], _Rows], place: Place, library: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows. An error of the library (wrong name, lost connection, damaged file) becomes a RecordingError."""
    try:
        yield from rows()
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        what = f"cannot be loaded: {str(error).partition(chr(10))[0] or type(error).__name__}"
        raise RecordingError(place, what, "check name, config, split and revision, or the file") from None


def _messages(value: Any, column: str, place: Place) -> tuple[Message, ...]:
    """Return a row's conversation in either form. A list of records may come as a record of lists."""
    if isinstance(value, dict):
        value = [dict(zip(value, record, strict=True)) for record in zip(*value.values(), strict=True)]
    if isinstance(value, list) and value and isinstance(value[0], dict) and "from" in value[0]:
        return ShareMessages(place).all(convert({"conversations": value}, Share, place))
    return chat_messages(convert(_without_nulls(value), list[ChatMessage], place.at(column)), place.at(column))


def _without_nulls(value: Any) -> Any:
    """Return a value without the nulls that a table adds for keys that only other rows have."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
