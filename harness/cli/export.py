"""`ctxbench export`: a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .bill import MODELS
from .runs import RunArgument, chosen


def export(
    run: RunArgument = Path("runs"),
    prometheus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write Prometheus' text format, as its textfile collector reads it; - is stdout."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to bill under; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
) -> None:
    """Write a run as text for monitoring: agent_token_usage_total and others, by strategy and scenario."""
    from ...scenarios.errors import RunError, UserError
    from ..exporting import prometheus as as_text
    from ..loading import load
    from ..store import placed
    from .say import say

    if prometheus is None:
        raise UserError("say what to write: --prometheus FILE")
    text = as_text(load(chosen(run)), tuple(model or MODELS))
    if str(prometheus) == "-":
        typer.echo(text, nl=False)
        return
    try:
        with placed(prometheus) as draft:  # it may be read at any moment
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{prometheus}: cannot be written: {error.strerror or error}") from None
    say(f"written: {prometheus}")
