"""Write conversations as a folder of a Hugging Face data set: Parquet, `dataset_info.json` and a card.

Each row is a conversation. `messages` and `tools` are in OpenAI's form, for anybody's programs; `ctxbench` is the whole
recording as JSON, with times, usage, probes and evidence, from which the reader `huggingface` has it back without loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ctxbench.scenarios.chat import chat_message, chat_tool
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation

from ..folder.files import placed

DATA = "data/train-00000-of-00001.parquet"
# Conversations of a row group: few enough that a viewer reads one without the others.
_GROUP = 100
# Categories of the hub for a number of rows.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))

_TEXT = pa.string()
_FUNCTION = pa.struct({"name": _TEXT, "arguments": _TEXT})
_CALLS = pa.list_(pa.struct({"id": _TEXT, "type": _TEXT, "function": _FUNCTION}))
_MESSAGE = pa.struct({"role": _TEXT, "content": _TEXT, "name": _TEXT, "tool_calls": _CALLS, "tool_call_id": _TEXT})
_COLUMNS = ("id", "language", "licence", "messages", "tools", "ctxbench")
SCHEMA = pa.schema({name: pa.list_(_MESSAGE) if name == "messages" else _TEXT for name in _COLUMNS})
"""Columns of the data set. `tools` and `ctxbench` are JSON texts."""


def write_dataset(
    conversations: Iterator[Conversation], folder: Path, names: Sequence[str], option: str, origin: str = ""
) -> int:
    """Write a data set and return the number of conversations.

    Its card names the recordings, and ends the words "Written by ctxbench" with their `origin`. Raises RunError if
    there is no conversation, or if the folder, which the user named by `option`, holds anything else than a data set of
    ours, or cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder}: is not a folder: name another with {option}")
        if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
            what = "holds something else than a data set of ctxbench"
            raise RunError(f"{folder}: {what}: name another folder with {option}")
        count, messages, languages, licences = 0, 0, set[str](), set[str]()
        with placed(folder / DATA) as draft, pq.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
            while group := list(islice(conversations, _GROUP)):
                writer.write_table(pa.Table.from_pylist(list(map(_row, group)), SCHEMA))
                count += len(group)
                messages += sum(len(conversation.messages) for conversation in group)
                languages |= {conversation.language for conversation in group if conversation.language}
                licences |= {conversation.licence for conversation in group if conversation.licence}
            if not count:
                raise RunError("no conversation could be read")
        split = {"name": "train", "num_bytes": (folder / DATA).stat().st_size, "num_examples": count}
        info = {
            "description": "Conversations of language model agents.",
            "features": {column.name: _feature(column.type) for column in SCHEMA},
            "splits": {"train": split | {"dataset_name": "ctxbench"}},
        }
        card = {
            "languages": json.dumps(sorted(languages) or ["und"]),  # which YAML reads as well
            "conversations": f"{count:,}",
            "messages": f"{messages:,}",
            "size": next((size for most, size in _SIZES if count < most), "100K<n<1M"),
            "data": DATA,
            "licences": "; ".join(sorted(licences)) or "not recorded",
            "origin": origin,
            "recordings": ", ".join(Path(name).name for name in names),
        }
        text = files(__package__).joinpath("data/dataset_card.md").read_text("utf-8")
        for name, value in card.items():
            text = text.replace("{" + name + "}", value)
        for name, content in (("dataset_info.json", json.dumps(info, indent=2) + "\n"), ("README.md", text)):
            with placed(folder / name) as draft:
                draft.write_text(content, "utf-8")
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return count


def _is_ours(folder: Path) -> bool:
    """Return whether a folder holds a data set that this module wrote: it has a column of whole recordings."""
    try:
        return "ctxbench" in json.loads((folder / "dataset_info.json").read_text("utf-8"))["features"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _row(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "language": conversation.language,
        "licence": conversation.licence,
        "messages": [chat_message(message) for message in conversation.messages],
        "tools": json.dumps([chat_tool(tool) for tool in conversation.tools], ensure_ascii=False),
        "ctxbench": conversation.to_json().decode(),
    }


def _feature(kind: pa.DataType) -> Any:
    """Return a column's type in the words of the library `datasets`."""
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"dtype": "string", "_type": "Value"}
