"""`ctxbench convert`: any recordings to ctxbench JSONL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .say import say


def convert(
    inputs: Annotated[list[str], typer.Argument(help="Recordings and embedded scenarios.", metavar="PATH|SCENARIO...")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write; - is standard output.")],
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="User turns of generated conversations.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of generated conversations.")] = 0,
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad recording.")] = False,
) -> None:
    """Convert recordings to ctxbench JSONL: lossless, one conversation a line."""
    from ...scenarios.errors import RunError
    from ...scenarios.source import Problems
    from ..inputs import Inputs

    problems = Problems(strict=strict)
    conversations = Inputs(tuple(inputs), form, turns, seed).open(problems).conversations()
    written = 0
    draft = out.with_name(f".{out.name}.part")
    try:
        with sys.stdout.buffer if str(out) == "-" else draft.open("wb") as file:
            for conversation in conversations:
                file.write(conversation.to_json() + b"\n")
                written += 1
        if str(out) != "-":
            draft.replace(out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise RunError(f"{out}: cannot be written: {error.strerror or error}") from None
    for problem in problems.found:
        say(f"left out: {problem}")
    if problems.ignored:
        say(f"not recordings: {len(problems.ignored)} files")
    if not written:
        raise RunError("no conversation could be read")
    say(f"{written} conversations written to {out}")
