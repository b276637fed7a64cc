"""The command line. Heavy imports happen inside commands, so that --help is quick.

Exit codes: 0 success, 1 the gate fails, 2 an error that the user can fix, 3 a bug of ours, 130 stopped by Ctrl-C, 143
by SIGTERM, 129 by SIGHUP. A reader that goes away (`| head`) is a success.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable
from inspect import getdoc
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from ...scenarios.errors import Stopped, UserError
from ..engine.threads import one_thread
from . import (
    answer,
    audit,
    bench_tier,
    bill,
    calibrate,
    cassette,
    check_reader,
    claims,
    compare,
    configuration,
    describe,
    export,
    list_,
    report,
    run,
    streams,
    survey,
    tune,
    verify,
    view,
)
from .arguments import with_files
from .streams import say

BEGIN, MORE = "Begin", "More"
"""Panels of the first help below the ten commands of every day."""


def _group(about: str) -> typer.Typer:
    return typer.Typer(help=about, no_args_is_help=True, rich_markup_mode="rich")


def _add(
    group: typer.Typer,
    path: str,
    words: str,
    function: Callable[..., None],
    panel: str | None = None,
    cls: type[TyperCommand] | None = None,
    context_settings: dict[Any, Any] | None = None,
) -> None:
    """Add a command to a group under the last word of its path; path and words are the example that opens its help."""
    first, *rest = (getdoc(function) or "").split("\n\n")
    # typer keeps line breaks: only lists and examples are laid out, sentences are filled to the terminal's width.
    about = [part if "[bold]" in part or part.startswith(" ") else " ".join(part.split()) for part in (first, *rest)]
    group.command(
        name=path.split()[-1],
        cls=cls,
        context_settings=context_settings,
        help=f"[bold]{escape(f'ctxbench {path} {words}'.rstrip())}[/bold]\n\n" + "\n\n".join(about),
        short_help=f"{about[0].partition(':')[0].rstrip('.')}.",
        rich_help_panel=panel,
    )(with_files(function))


app = typer.Typer(
    name="ctxbench",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
exports = _group("Hand a run over to other programs: experiment trackers, Prometheus, data sets, server benchmarks.")
lab = _group("Check ctxbench itself: its cache models, graders, memory tiers, claims, recorded replies.")
cassettes = _group("Export, import, check or repair recorded model replies.")
tiers = _group("Measure one memory tier alone, against the best known alternative and its bound.")

_add(app, "run", "~/.claude/projects/my-project -s none -s 'archive | cache_marks'", run.run)
_add(app, "report", "runs/standard", report.report)
_add(app, "view", "runs/standard", view.view)
_add(app, "show", "runs/standard 1 12 --strategy retrieval", report.show, cls=report.Show)
_add(app, "compare", "runs/before runs/after", compare.compare)
_add(app, "gate", "runs/now --baseline baseline.json", compare.gate)
_add(app, "bill", "runs/standard -m claude-sonnet-5", bill.bill)
_add(app, "tune", "'window(max_tokens=?)' standard --trials 20", tune.tune)
_add(app, "list", "strategies retrieval", list_.list_)
_add(app, "describe", "standard ~/recordings", describe.describe, MORE)
_add(app, "convert", "talks/ --to talks.jsonl", export.convert)
_add(app, "demo", "", run.demo, BEGIN)
_add(app, "audit", "~/.claude/projects", audit.audit, BEGIN)
_add(app, "init", "~/.claude/projects/my-project", configuration.init, BEGIN)
# What follows the name of a command is for that command.
_AS_GIVEN = {"allow_interspersed_args": False}
_add(app, "config", "run --jobs 2", configuration.config, BEGIN, context_settings=_AS_GIVEN)

_add(exports, "export mlflow", "runs/before runs/after", export.mlflow)
_add(exports, "export wandb", "runs/now", export.wandb)
_add(exports, "export tensorboard", "runs/now", export.tensorboard)
_add(exports, "export prometheus", "runs/now --to ctxbench.prom", export.prometheus)
_add(exports, "export dataset", "runs/now --out build/dataset", export.dataset)
_add(exports, "export mooncake", "runs/now --strategy retrieval --to trace.jsonl", export.mooncake)

_add(lab, "lab answer", "runs/now -a gpt-4o-mini", answer.answer)
_add(lab, "lab quality", "--brief", answer.quality)
_add(lab, "lab check-reader", "~/recordings", check_reader.check_reader)
_add(lab, "lab validate", "~/recordings", calibrate.validate)
_add(lab, "lab calibrate", "labels.jsonl --grader rules", calibrate.calibrate)
_add(lab, "lab claims", "runs/standard --quick", claims.claims)
_add(lab, "lab survey", "--markdown survey.md", survey.survey)
_add(lab, "lab verify", "runs/standard --repair", verify.verify)
_add(lab, "lab kv-cache", "runs/standard --memory 131072", bill.kv_cache)

_add(tiers, "lab bench-tier working", "--trace mem_002", bench_tier.working)
_add(tiers, "lab bench-tier archive", "standard --level 19", bench_tier.archive)
_add(tiers, "lab bench-tier focus", "standard --limit 8192", bench_tier.focus)
_add(tiers, "lab bench-tier rag", "standard --retriever vector,bm25", bench_tier.rag)
_add(tiers, "lab bench-tier all", "", bench_tier.every)

_add(cassettes, "lab cassette export", "--to replies.jsonl", cassette.export)
_add(cassettes, "lab cassette import", "replies.jsonl", cassette.import_)
_add(cassettes, "lab cassette check", "", cassette.check)
_add(cassettes, "lab cassette verify", "--repair", cassette.verify)

lab.add_typer(tiers, name="bench-tier")
lab.add_typer(cassettes, name="cassette")
app.add_typer(exports, name="export", rich_help_panel=MORE)
app.add_typer(lab, name="lab", rich_help_panel=MORE)


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
        settings = configuration.configuration(context.command)
        if settings is None:
            return
        context.default_map = settings.default_map()
        # A file that is out of sight must not change figures without a word.
        if settings.is_elsewhere and context.invoked_subcommand in context.default_map:
            streams.say(f"settings: {settings.file}")


# New objects before the next look for garbage in cycles; Python's own number is 700.
_ALLOCATIONS = 100_000


def main() -> None:
    """Run `ctxbench` and exit with its code."""
    streams.guard()
    streams.listen()
    one_thread()
    # Tables as lists are millions of objects without cycles: looking for some took a seventh of a report's time.
    gc.set_threshold(_ALLOCATIONS)
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
    except Exception:
        traceback.print_exc()
        typer.echo("\nThis is a bug in ctxbench. Please report it with the lines above.", err=True)
        sys.exit(3)
