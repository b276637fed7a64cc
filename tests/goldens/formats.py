"""Golden texts of every recorded format: the samples, and small recordings of shapes that the samples do not have.

`recordings/<format>/<case>/` holds the files of one case. The golden of a format is one text file of all its cases.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import find, format_name, read
from ctxbench.scenarios.readers import readers
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import SAMPLES

HERE = Path(__file__).parent
CASES = HERE / "recordings"
GOLDENS = HERE / "formats"
RECORDINGS = HERE / "recordings.json"


def formats() -> list[str]:
    """The formats that are read."""
    return sorted(readers())


def golden(name: str) -> str:
    """All cases of a format and what they read as."""
    parts = [f"{case}\n{told}" for case, told in _cases(name)]
    return "\n".join(parts)


def _cases(name: str) -> Iterator[tuple[str, str]]:
    if name in SAMPLES:
        sample = SAMPLES[name]
        with TemporaryDirectory() as above:
            (folder := Path(above, "samples", name)).mkdir(parents=True)  # some formats take names from the folders
            sample.write(folder, sample.text(sample.records(2)))
            yield "== sample", told(folder)
    options: dict[str, str] = json.loads((CASES / "formats.json").read_text())
    for case in sorted(path for path in (CASES / name).glob("*") if path.is_dir()):
        form = options.get(f"{name}/{case.name}")
        yield f"== {case.name}" + (f", --format {form}" if form else ""), told(case, form)


def told(folder: Path, form: str | None = None) -> str:
    """Return the text of what a folder reads as, with the paths from there."""
    with _inside(folder):
        problems = Problems()
        batches = find([Path()], problems, form)
        lines = [f"read as {', '.join(sorted({format_name(batch.reader) for batch in batches}))}"]
        for conversation in read(batches, problems):
            lines += _conversation(conversation)
        return "\n".join((*lines, *_problems(problems))) + "\n"


class _inside:
    """A context in another folder: options of readers name files there, and places are paths from there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._before = Path.cwd()
        os.chdir(self._folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)


def _conversation(conversation: Conversation) -> Iterator[str]:
    """Every field that is not the default, a line for each message, call, tool, probe, fact and compaction."""
    fields = {name: value for name, value in msgspec.to_builtins(conversation).items() if name != "ctxbench"}
    listed = {name: fields.pop(name, ()) for name in ("tools", "messages", "compactions", "facts", "probes")}
    yield f"conversation {_fields(fields)}"
    for tool in listed["tools"]:
        yield f"  tool {_fields(tool)}"
    for message in listed["messages"]:
        call = message.pop("call", None)
        said = f"{message.pop('role')} {message.pop('id')}: {_json(message.pop('text', ''))}"
        yield f"  {said} {_fields(message)}".rstrip()
        if call is not None:
            yield f"    call {_fields(call)}".rstrip()
    for kind in ("compactions", "facts", "probes"):
        for value in listed[kind]:
            yield f"  {kind[:-1]} {_fields(value)}"


def _problems(problems: Problems) -> Iterator[str]:
    yield from (f"error {error}" for error in problems.errors)
    yield from (f"ignored {path}" for path in problems.ignored)
    yield from (f"note {note}" for note in problems.notes)


def _fields(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={_json(value)}" for name, value in values.items())


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def digests(folder: Path) -> dict[str, dict[str, Any]]:
    """Return counts and a digest of what each batch of the sample recordings reads as.

    A batch is named by its folder or file, and none of its text is shown.
    """
    found: dict[str, dict[str, Any]] = {}
    with _inside(folder):
        for batch in find([Path()], Problems()):
            problems = Problems()
            text = hashlib.sha256()
            counts = dict.fromkeys(("conversations", "messages", "calls", "tokens", "compactions", "probes"), 0)
            for conversation in read([batch], problems):
                text.update("\n".join(_conversation(conversation)).encode())
                usages = [
                    usage for message in conversation.messages if message.call for _, usage in message.call.billed
                ]
                counts["conversations"] += 1
                counts["messages"] += len(conversation.messages)
                counts["calls"] += sum(1 for _ in conversation.calls())
                counts["tokens"] += sum((usage.input or 0) + (usage.output or 0) for usage in usages)
                counts["compactions"] += len(conversation.compactions)
                counts["probes"] += len(conversation.probes)
            for line in _problems(problems):
                text.update(line.encode())
            counts["problems"] = len(problems.errors)
            first = batch.files[0]
            name = str(first.parent) + "/" if batch.reader.folder else str(first)
            key = f"{name} {format_name(batch.reader)}"
            found[key] = {"files": len(batch.files), **counts, "digest": text.hexdigest()[:16]}
    return found


def write(recordings: Path) -> None:
    """Write the goldens of all formats, and the digests of the sample recordings where they are."""
    GOLDENS.mkdir(exist_ok=True)
    for path in GOLDENS.glob("*.txt"):
        path.unlink()
    for name in formats():
        (GOLDENS / f"{name}.txt").write_text(golden(name))
    if recordings.is_dir():
        RECORDINGS.write_text(json.dumps(digests(recordings), indent=1) + "\n")
