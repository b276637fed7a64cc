"""The command line. Heavy imports happen inside commands, so that --help is quick.

Exit codes: 0 success, 1 the gate fails, 2 an error that the user can fix, 3 a bug of ours, 130 stopped by Ctrl-C, 143
by SIGTERM, 129 by SIGHUP. A reader that goes away (`| head`) is a success.
"""

from __future__ import annotations

import sys
import traceback

import typer

from ...scenarios.errors import UserError
from ..engine.threads import one_thread
from . import (
    answer,
    bill,
    calibrate,
    cassette,
    claims,
    compare,
    export,
    list_,
    report,
    run,
    streams,
    tune,
    view,
)
from .bench_tier import bench_tier
from .streams import say

app = typer.Typer(
    name="ctxbench",
    help="Replay recorded conversations through context strategies, offline, and measure what each would send.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="demo")(run.demo)
app.command(name="run")(run.run)
app.command(name="report")(report.report)
app.command(name="show", cls=report.Show)(report.show)
app.command(name="view")(view.view)
app.command(name="answer")(answer.answer)
app.command(name="quality")(answer.quality)
app.command(name="bill")(bill.bill)
app.command(name="compare")(compare.compare)
app.command(name="baseline")(compare.baseline)
app.command(name="gate")(compare.gate)
app.command(name="mlflow")(export.mlflow)
app.command(name="export")(export.export)
app.command(name="kv-cache")(bill.kv_cache)
app.command(name="validate")(calibrate.validate)
app.command(name="calibrate")(calibrate.calibrate)
app.command(name="convert")(export.convert)
app.command(name="claims")(claims.claims)
app.command(name="tune")(tune.tune)
app.command(name="list")(list_.list_)
app.add_typer(cassette.cassette, name="cassette")
app.add_typer(bench_tier, name="bench-tier")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"ctxbench {version('ctxbench')}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Replay recorded conversations through context strategies, offline, and measure what each would send."""


def main() -> None:
    """Run `ctxbench` and exit with its code."""
    streams.guard()
    streams.listen()
    one_thread()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except UserError as error:
        say(f"error: {error}")
        sys.exit(2)
    except Exception:
        traceback.print_exc()
        typer.echo("\nThis is a bug in ctxbench. Please report it with the lines above.", err=True)
        sys.exit(3)
