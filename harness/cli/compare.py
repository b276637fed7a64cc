"""`ctxbench compare`: two runs, or the strategies of one, in pairs of conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import MODELS

if TYPE_CHECKING:
    from ..compare.compare import Rules, RunComparison
    from ..compare.figures import MeasuredRun


def compare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that is compared with, or the only one.")],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="OTHER", help="The run that is compared with it. Without it, the strategies of RUN are."
        ),
    ] = None,
    against: Annotated[
        str, typer.Option(help="Within one run: the strategy that the others are compared with.", metavar="STRATEGY")
    ] = "none",
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", "-s", help="Compare this strategy only; repeat it.", show_default="all"),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", help="Compare by this metric only; repeat it.", show_default="all but those of the clock"
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to bill under; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="Compare what it would cost.")] = True,
    clock: Annotated[
        bool, typer.Option("--clock", help="Compare decision times too: of runs on the same, idle machine.")
    ] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown to this file; - is standard output.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")] = False,
) -> None:
    """Compare two runs of the same recordings, or the strategies of one run: better, same, worse, or cannot tell.

    The conversation is the unit: differences are taken in pairs, intervals are over conversations. What cannot be
    paired is counted.
    """
    from ...reports.compare import as_json as exact
    from ...reports.compare import tables
    from ...scenarios.errors import UserError
    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    models = tuple(model or MODELS) if cost else ()
    if other is None:
        compared, titles = _within(run, against, strategy or [], metric or [], models, clock)
    else:
        compared = _between(run, other, strategy or [], metric or [], models, clock)
        titles = ("before", "after")
    if as_json:
        print_json(exact(compared))
    elif markdown is not None:
        write_markdown(list(tables(compared, titles)), markdown)
    else:
        print_tables(list(tables(compared, titles)))


def _within(
    folder: Path, against: str, wanted: list[str], metrics: list[str], models: tuple[str, ...], clock: bool
) -> tuple[RunComparison, tuple[str, str]]:
    from ...scenarios.errors import RunError
    from ..compare.compare import compare as compared
    from ..compare.figures import measured
    from ..folder.contexts import rows_of
    from ..folder.run import load
    from .arguments import strategy as meant

    run = load(folder)
    base = meant(run, against)
    names = list(dict.fromkeys(meant(run, each) for each in wanted)) or list(run.manifest["plan"]["strategies"])
    pairs = [(name, base) for name in names if name != base]
    if not pairs:
        raise RunError(f"{folder}: {base} alone has nothing to be compared with: name another run")
    found = measured(run, rows_of, models, clock)
    return compared(found, found, pairs, _rules(found, metrics)), (base, "this one")


def _between(
    folder: Path, other: Path, wanted: list[str], metrics: list[str], models: tuple[str, ...], clock: bool
) -> RunComparison:
    from dataclasses import replace

    from ..compare.compare import compare as compared
    from ..compare.compare import strategies
    from ..compare.figures import measured
    from ..folder.contexts import rows_of
    from ..folder.run import load
    from .arguments import strategy as meant

    runs = load(folder), load(other)
    names = list(dict.fromkeys(meant(runs[1], each) for each in wanted)) or list(runs[1].manifest["plan"]["strategies"])
    before, after = (measured(run, rows_of, models, clock) for run in runs)
    pairs = [(name, name) for name in names if name in before.sums]
    found = compared(before, after, pairs, _rules(after, metrics))
    apart = [] if wanted else strategies(before, after)
    return replace(found, unpaired=(*apart, *found.unpaired))


def _rules(found: MeasuredRun, metrics: list[str]) -> Rules:
    """The usual margins of the metrics that are wanted. Raises SpecError for one that there is not."""
    from ...metrics.figures import METRICS
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import meant
    from ..compare.gate import REST, GatePolicy, MetricPolicy

    known = dict.fromkeys([*found.metrics, *METRICS])
    for name in metrics:
        if name not in known:
            raise SpecError(f"unknown metric {name!r}{meant(name, known)}")
    return GatePolicy({name: MetricPolicy() for name in metrics or [REST]}).rule
