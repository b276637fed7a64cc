"""The command line. Commands are imported when they run, and heavy libraries inside them, so that --help is quick.

Exit codes: 0 success, 1 the gate fails, 2 an error that the user can fix, 3 a bug of ours, 130 stopped by Ctrl-C, 143
by SIGTERM, 129 by SIGHUP. A reader that goes away (`| head`) is a success.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
import warnings
from pathlib import Path

import typer

from ctxbench.harness.engine import one_thread
from ctxbench.scenarios.errors import Stopped, UserError

from . import streams
from .commands import group_of
from .streams import say


def _group(path: str, about: str) -> typer.Typer:
    return typer.Typer(cls=group_of(path), help=about, no_args_is_help=True, rich_markup_mode=None)


app = typer.Typer(
    name="ctxbench",
    cls=group_of(""),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich, which lays out the help of a command, takes 0.1 s
    context_settings={"help_option_names": ["-h", "--help"]},
)
exports = _group(
    "export", "Hand a run over to other programs: experiment trackers, Prometheus, data sets, server benchmarks."
)
lab = _group("lab", "Check ctxbench itself: its cache models, graders, memory tiers, claims.")

app.add_typer(exports, name="export", rich_help_panel="More")
app.add_typer(lab, name="lab", rich_help_panel="More")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"ctxbench {version('ctxbench')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),  # noqa: ARG001
) -> None:
    """Replay recorded conversations through context strategies, offline, and measure what each would send."""
    # Help and the commands about the file must work while the file is wrong.
    if context.invoked_subcommand not in ("init", "config") and not {"-h", "--help"} & set(sys.argv):
        from .configuration import configuration

        settings = configuration(context.command)
        if settings is None:
            return
        context.obj, context.default_map = settings, settings.default_map()
        for name, value in settings.environment.items():
            os.environ.setdefault(name, value)
        # A file that is out of sight must not change figures without a word.
        if settings.file.parent != Path() and context.invoked_subcommand in context.default_map:
            streams.say(f"settings: {settings.file}")


def main() -> None:
    """Run `ctxbench` and exit with its code."""
    streams.guard()
    streams.listen()
    one_thread()
    warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
    # Tables as lists are millions of objects without cycles: looking for some took a seventh of a report's time.
    gc.set_threshold(100_000)  # new objects before the next look for garbage in cycles; Python's own number is 700
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except Stopped:
        streams.say_how_to_repeat()
        raise
    except UserError as error:
        say(f"error: {error}")
        sys.exit(2)
    except Exception as error:
        if isinstance(error.__cause__, Stopped):  # Python wraps what comes while it makes a class
            streams.say_how_to_repeat()
            raise error.__cause__ from None
        traceback.print_exc()
        typer.echo("\nThis is a bug in ctxbench. Please report it with the lines above.", err=True)
        sys.exit(3)
    finally:
        streams.end_listening()
