"""The command line, one small file per command. Heavy imports happen inside commands, so that --help is quick.

Exit codes: 0 fine, 1 the gate fails, 2 the user must mend something, 3 a bug of ours, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback

import typer

from ...scenarios.errors import UserError
from . import convert, list_, report, run, show
from .say import say

app = typer.Typer(
    name="ctxbench",
    help="Replay recorded conversations through context strategies, offline, and measure what each would send.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="run")(run.run)
app.command(name="report")(report.report)
app.command(name="show")(show.show)
app.command(name="convert")(convert.convert)
app.command(name="list")(list_.list_)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"ctxbench {version('ctxbench')}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Replay recorded conversations through context strategies, offline, and measure what each would send."""


def main() -> None:
    """Entry point of `ctxbench`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before we started
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (for as long as we run)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except UserError as error:
        say(f"error: {error}")
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        traceback.print_exc()
        typer.echo("\nThis is a bug in ctxbench. Please report it with the lines above.", err=True)
        sys.exit(3)
