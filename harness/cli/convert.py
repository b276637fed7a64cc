"""`ctxbench convert`: any recordings to ctxbench JSONL."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from .streams import say, say_what_was_passed_over

if TYPE_CHECKING:
    from ...scenarios.model import Conversation


def convert(
    inputs: Annotated[list[str], typer.Argument(help="Recordings and embedded scenarios.", metavar="PATH|SCENARIO")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write; - is standard output.")],
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="User turns of generated conversations.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of generated conversations.")] = 0,
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad recording.")] = False,
) -> None:
    """Convert recordings to ctxbench JSONL: lossless, one conversation a line."""
    from ...reports.render import count
    from ...scenarios.errors import RunError
    from ...scenarios.source import Problems
    from ..engine.plan import RunInputs

    problems = Problems(strict=strict)
    conversations = RunInputs(tuple(inputs), form, turns, seed).open(problems).conversations()
    try:
        written = _write(conversations, out)
    except OSError as error:
        raise RunError(f"{out}: cannot be written: {error.strerror or error}") from None
    for problem in problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(problems.ignored, problems.notes)
    if not written:
        raise RunError("no conversation could be read")
    say(f"{count(written, 'conversation')} written to {out}")


def _write(conversations: Iterator[Conversation], out: Path) -> int:
    """Write all lines and count them. A file is replaced only by a whole one that holds something."""
    if str(out) == "-":
        written = _lines(conversations, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return written
    if out.exists() and not out.is_file():
        with out.open("wb") as file:
            return _lines(conversations, file)
    out = Path(os.path.realpath(out))
    draft = out.with_name(f".{out.name[:200]}.part")
    try:
        with draft.open("wb") as file:
            written = _lines(conversations, file)
        if written:
            draft.replace(out)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return written


def _lines(conversations: Iterator[Conversation], file: IO[bytes]) -> int:
    written = 0
    for conversation in conversations:
        file.write(conversation.to_json() + b"\n")
        written += 1
    return written
