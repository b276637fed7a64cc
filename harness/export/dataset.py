"""Write a run's recordings as a folder of a Hugging Face data set: Parquet, `dataset_info.json` and a card.

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

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ...scenarios.errors import RunError
from ...scenarios.model import Conversation, Message, Tool
from ..folder.run import Run
from ..folder.store import placed

DATA = "data/train-00000-of-00001.parquet"
# Conversations of a row group: few enough that a viewer reads one without the others.
_GROUP = 100

_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())])),
    ]
)
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("name", pa.string()),
        ("tool_calls", pa.list_(_CALL)),
        ("tool_call_id", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("licence", pa.string()),
        ("messages", pa.list_(_MESSAGE)),
        ("tools", pa.string()),
        ("ctxbench", pa.string()),
    ]
)
"""Columns of the data set. `tools` and `ctxbench` are JSON texts."""


def _is_ours(folder: Path) -> bool:
    """Return whether a folder holds a data set that this module wrote: it has a column of whole recordings."""
    try:
        features = json.loads((folder / "dataset_info.json").read_text("utf-8"))["features"]
        return "ctxbench" in features
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_dataset(run: Run, folder: Path) -> int:
    """Write the data set of a run's recordings and return the number of conversations.

    Raises RunError if the folder holds anything else than a data set of ours, or cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder}: is not a folder: name another with --out")
        if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
            raise RunError(
                f"{folder}: holds something else than a data set of ctxbench: name another folder with --out"
            )
        with placed(folder / DATA) as draft, pq.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
            count, languages, licences = 0, set(), set()
            conversations = run.conversations()
            while group := list(islice(conversations, _GROUP)):
                writer.write_table(pa.Table.from_pylist([_row(each) for each in group], SCHEMA))
                count += len(group)
                languages |= {conversation.language for conversation in group}
                licences |= {conversation.licence for conversation in group}
        size = (folder / DATA).stat().st_size
        with placed(folder / "dataset_info.json") as draft:
            draft.write_text(json.dumps(_info(count, size), indent=2) + "\n", "utf-8")
        with placed(folder / "README.md") as draft:
            draft.write_text(_card(run, count, sorted(filter(None, languages)), sorted(licences)), "utf-8")
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return count


def _row(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "language": conversation.language,
        "licence": conversation.licence,
        "messages": [_message(message) for message in conversation.messages],
        "tools": json.dumps([_tool(tool) for tool in conversation.tools], ensure_ascii=False),
        "ctxbench": conversation.to_json().decode(),
    }


def _message(message: Message) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {
        "role": message.role,
        "content": message.text,
        "name": message.name or None,
        "tool_calls": calls or None,
        "tool_call_id": message.answers,
    }


def _tool(tool: Tool) -> dict[str, Any]:
    try:
        parameters = msgspec.json.decode(tool.parameters)
    except msgspec.DecodeError:  # as it was recorded, well-formed or not
        parameters = {}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _info(count: int, size: int) -> dict[str, Any]:
    """Return `dataset_info.json`: the columns, and the size of the only split."""
    split = {"name": "train", "num_bytes": size, "num_examples": count, "dataset_name": "ctxbench"}
    features = {field.name: _feature(field.type) for field in SCHEMA}
    return {"description": "Conversations of language model agents.", "features": features, "splits": {"train": split}}


def _feature(kind: pa.DataType) -> Any:
    """Return a column's type in the words of the library `datasets`."""
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"dtype": "string", "_type": "Value"}


def _card(run: Run, count: int, languages: Sequence[str], licences: Sequence[str]) -> str:
    text = files(__package__).joinpath("data/dataset_card.md").read_text("utf-8")
    plan = run.manifest.plan
    values = {
        "languages": _yaml(languages or ["und"]),
        "conversations": f"{count:,}",
        "messages": f"{len(run.table('messages')):,}",
        "size": _size(count),
        "data": DATA,
        "licences": "; ".join(filter(None, licences)) or "not recorded",
        "digest": run.manifest.digest,
        "recordings": ", ".join(Path(name).name for name in plan.names),
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _yaml(words: Sequence[str]) -> str:
    return json.dumps(list(words))  # which YAML reads as well


def _size(count: int) -> str:
    """Return the category of the hub for a number of rows."""
    bounds: Iterator[tuple[int, str]] = iter([(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")])
    return next((name for bound, name in bounds if count < bound), "100K<n<1M")
