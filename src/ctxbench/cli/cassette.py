"""`ctxbench lab cassette`: export, import, check and repair recorded model replies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from .arguments import CassetteOption, ToOption
from .streams import say


def export(
    to: ToOption,
    cassette: CassetteOption = None,
) -> None:
    """Write every reply of a cassette as one JSON line."""
    from ctxbench.harness.folder.files import placed
    from ctxbench.harness.models.cassette import Cassette, write_lines

    with Cassette(_path(cassette), read_only=True) as opened:
        if str(to) == "-":
            sys.stdout.buffer.writelines(write_lines(opened))
            sys.stdout.buffer.flush()
            return
        with _named(to), placed(to) as draft, draft.open("wb") as file:
            file.writelines(write_lines(opened))
    say(f"written: {to}")


def import_(
    file: Annotated[Path, typer.Argument(help="Lines that `ctxbench lab cassette export` wrote.", metavar="FILE")],
    cassette: CassetteOption = None,
) -> None:
    """Add exported lines to a cassette. Replies that it has already stay."""
    from ctxbench.harness.models.cassette import Cassette, read_lines
    from ctxbench.scenarios.files import lines_of

    with _named(file), Cassette(_path(cassette)) as into:
        new = read_lines(into, lines_of(file), str(file))
    say(f"{new:,} new replies in {_path(cassette)}")


def check(cassette: CassetteOption = None) -> None:
    """List replies whose prompts have changed since: those that come with ctxbench, or those of a cassette.

    For those that come with ctxbench, also list replies that the scenario `questions` lacks or no longer needs. The
    exit code is 1 if there are any.
    """
    from ctxbench.harness.answers.forms import PROMPTS
    from ctxbench.harness.graders.registry import prompts
    from ctxbench.harness.models.cassette import Cassette, shipped, stale

    if cassette is None:
        where, entries = "the replies that come with ctxbench", list(shipped().entries())
    else:
        with Cassette(cassette, read_only=True) as opened:
            where, entries = str(cassette), list(opened.entries())
    answers = dict(prompt.split("@") for prompt in PROMPTS)
    old = stale(entries, answers | prompts())
    for prompt, times in old.items():
        print(f"stale: {times:,} replies to {prompt}, which has changed since: record them again")
    more = list(_quality_problems()) if cassette is None else []
    for line in more:
        print(line)
    say(f"{len(entries):,} replies, {sum(old.values()):,} stale: {where}")
    raise typer.Exit(1 if old or more else 0)


def verify(
    cassette: CassetteOption = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Drop what is damaged: it is asked again when it is next recorded.")
    ] = False,
) -> None:
    """Compare every reply of a cassette, and what was spent, with the digests that were written with them.

    The exit code is 1 if anything is damaged or lost. `--repair` keeps all that is whole, while no other program has
    the cassette open.
    """
    from ctxbench.harness.models.cassette import Cassette, DamagedCassette, DamageError
    from ctxbench.reports.render import count

    path = _path(cassette)
    try:
        with Cassette(path, read_only=True) as opened:
            replies = sum(1 for _ in opened.entries())
    except DamageError as error:
        if not repair:
            say(str(error))
            raise typer.Exit(1) from None
    else:
        say(f"{path}: all is as it was recorded: {count(replies, 'reply', 'replies')}")
        return
    with DamagedCassette(path) as damaged:
        repaired = damaged.repair()
    for label in repaired.dropped:
        print(f"dropped: {label}")
    for name in repaired.dropped_accounts:
        print(f"dropped: what was spent by {name}")
    say(f"{path}: kept {count(repaired.replies, 'reply', 'replies')}, dropped {len(repaired.dropped):,}")


def _quality_problems() -> Iterator[str]:
    """Replay the scenario `questions` and yield what is wrong with its replies."""
    from ctxbench.harness.quality import SCENARIO, replayed, unused

    with TemporaryDirectory() as folder:
        replies = replayed(Path(folder) / SCENARIO)
    if not replies.are_whole:
        yield f"{SCENARIO}: {replies.in_words()}"
    if more := len(unused(replies)):
        yield f"{SCENARIO}: {more:,} replies are no longer needed: run `make record`"


def _path(file: Path | None) -> Path:
    from ctxbench.harness.models import Settings

    return Settings(cassette=str(file or "")).path()


@contextmanager
def _named(file: Path) -> Iterator[None]:
    from ctxbench.scenarios.errors import SetupError

    try:
        yield
    except OSError as error:
        raise SetupError(f"{file}: {error.strerror or error}") from None
