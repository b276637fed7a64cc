"""`ctxbench cassette`: recorded model replies as JSON Lines, out of a cassette and into one, and which are stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from .streams import say

cassette = typer.Typer(help="Recorded model replies: export, import, check.", no_args_is_help=True)

File = Annotated[Path | None, typer.Option(help="The cassette.", show_default="~/.cache/ctxbench/cassette.sqlite")]


@cassette.command(name="export")
def export(
    out: Annotated[Path, typer.Argument(help="The file to write; - is standard output.", metavar="FILE|-")],
    cassette: File = None,
) -> None:
    """Write every reply of a cassette as a line."""
    from ..models.cassette import Cassette, write_lines

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
    from ..models.cassette import Cassette, read_lines

    with _named(file), file.open("rb") as lines, Cassette(_path(cassette)) as into:
        new = read_lines(into, lines, str(file))
    say(f"{new:,} new replies in {_path(cassette)}")


@cassette.command()
def check(cassette: File = None) -> None:
    """Say which replies are to prompts that have changed since: those that come with ctxbench, or those of a cassette.

    Of those that come with ctxbench also which the scenario `quality` lacks, and which it does not ask for any more.
    Exit code 1 if there are any.
    """
    from ..answers.chat import PROMPT
    from ..graders.registry import prompts
    from ..models.cassette import Cassette, shipped, stale

    if cassette is None:
        where, found = "the replies that come with ctxbench", list(shipped().entries())
    else:
        with Cassette(cassette, read_only=True) as opened:
            opened.check()
            where, found = str(cassette), list(opened.entries())
    answer, _, digest = PROMPT.partition("@")
    old = stale(found, {answer: digest, **prompts()})
    for prompt, times in old.items():
        print(f"stale: {times:,} replies to {prompt}, which has changed since: record them anew")
    more = list(_of_quality()) if cassette is None else []
    for line in more:
        print(line)
    say(f"{len(found):,} replies, {sum(old.values()):,} stale: {where}")
    raise typer.Exit(1 if old or more else 0)


def _of_quality() -> Iterator[str]:
    """What is wrong with the replies for the scenario `quality`, which is replayed for it."""
    from ..quality import SCENARIO, replayed, unused

    with TemporaryDirectory() as folder:
        replies = replayed(Path(folder) / SCENARIO)
    if not replies.are_whole:
        yield f"{SCENARIO}: {replies.in_words()}"
    if more := len(unused(replies)):
        yield f"{SCENARIO}: {more:,} replies are to what is not asked any more: run `make record`"


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
