"""What is said on standard error: one line each, whatever a recording may hold."""

from __future__ import annotations

import typer


def say(text: str) -> None:
    """One line on standard error. Nothing in it can steer the terminal."""
    typer.echo("".join(char if char.isprintable() else "·" for char in text), err=True)
