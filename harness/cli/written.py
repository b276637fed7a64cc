"""Writing what a command has found to a file that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...scenarios.errors import RunError

if TYPE_CHECKING:
    from ...reports.render import Table


def write_markdown(found: Sequence[Table], file: Path, append: bool = False) -> None:
    """Tables as Markdown; - is standard output."""
    from ...reports.render import markdown

    write_text(markdown(found), file, append)


def write_text(text: str, file: Path, append: bool = False) -> None:
    """Text; - is standard output. Raises RunError for a file that cannot be written."""
    if str(file) == "-":
        typer.echo(text, nl=False)
        return
    try:
        with file.open("a" if append else "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None
    typer.echo(f"written: {file}", err=True)
