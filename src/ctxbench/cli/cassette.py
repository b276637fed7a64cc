"""`ctxbench lab cassette`: export and import recorded model replies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .streams import say


def export(*, to: Path, cassette: Path | None = None) -> None:
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


def import_(file: Path, *, cassette: Path | None = None) -> None:
    """Add exported lines to a cassette. Replies that it has already stay.

    Args:
        file (FILE): Lines that `ctxbench lab cassette export` wrote.
    """
    from ctxbench.harness.models.cassette import Cassette, entries
    from ctxbench.scenarios.files import lines_of

    with _named(file), Cassette(_path(cassette)) as into:
        new = into.put_many(entries(lines_of(file), str(file)))
    say(f"{new:,} new replies in {_path(cassette)}")


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
