"""`ctxbench cassette`: recorded model replies as JSON Lines, out of a cassette and into one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .say import say

cassette = typer.Typer(help="Recorded model replies as JSON Lines: export, import.", no_args_is_help=True)

File = Annotated[Path | None, typer.Option(help="The cassette.", show_default="~/.cache/ctxbench/cassette.sqlite")]


@cassette.command(name="export")
def export(
    out: Annotated[Path, typer.Argument(help="The file to write; - is standard output.", metavar="FILE|-")],
    cassette: File = None,
) -> None:
    """Write every reply of a cassette as a line."""
    from ..models.cassette import Cassette
    from ..models.lines import write_lines

    with Cassette(_path(cassette), read_only=True) as found:
        found.check()
        if str(out) == "-":
            sys.stdout.buffer.writelines(write_lines(found))
            sys.stdout.buffer.flush()
            return
        with _named(out), out.open("wb") as file:
            file.writelines(write_lines(found))
    say(f"written: {out}")


@cassette.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="Lines that `ctxbench cassette export` wrote.", metavar="FILE")],
    cassette: File = None,
) -> None:
    """Put lines into a cassette. What is there already stays."""
    from ..models.cassette import Cassette
    from ..models.lines import read_lines

    with _named(file), file.open("rb") as lines, Cassette(_path(cassette)) as into:
        new = read_lines(into, lines, str(file))
    say(f"{new:,} new replies in {_path(cassette)}")


def _path(given: Path | None) -> Path:
    from ..models import Settings

    return Settings(cassette=str(given or "")).path()


@contextmanager
def _named(file: Path) -> Iterator[None]:
    from ...scenarios.errors import SetupError

    try:
        yield
    except OSError as error:
        raise SetupError(f"{file}: {error.strerror or error}") from None
