"""What is said on standard error: one line each, whatever a recording may hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

_SOME = 4


def say(text: str) -> None:
    """One line on standard error. Nothing in it can steer the terminal."""
    typer.echo("".join(char if char.isprintable() else "·" for char in text), err=True)


def say_what_was_passed_over(ignored: Sequence[str], notes: Sequence[str]) -> None:
    """What of folders is no recording, those with a reason first; and what else is to be known of the reading."""
    from ...reports.words import count

    if ignored:
        some = sorted((Path(each).name for each in ignored), key=lambda name: ": " not in name)[:_SOME]
        say(f"not recordings: {count(len(ignored), 'file')} ({'; '.join(some)}{' …' * (len(ignored) > _SOME)})")
    for note in notes[:_SOME]:
        say(f"note: {note}")
    if len(notes) > _SOME:
        say(f"note: {len(notes) - _SOME} more")
