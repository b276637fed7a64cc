"""`ctxbench gate`: is a run worse than the baseline?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import MODELS, RunArgument, chosen

if TYPE_CHECKING:
    import pandas as pd

    from ...reports.gate import Step
    from ..compare.figures import MeasuredRun
    from ..compare.gate import GatePolicy
    from ..folder.run import Run


FILE = Path("baseline.json")


def baseline(
    run: RunArgument = Path("runs"),
    out: Annotated[Path, typer.Option("--out", "-o", help="Write to this file; - is standard output.")] = FILE,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to bill under; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="Keep what it would cost.")] = True,
) -> None:
    """Write the figures of a run as a baseline, which `ctxbench gate` compares other runs with.

    A small JSON file: a line for each strategy and metric, with the figure of every conversation. Review it, commit it.
    Times of the clock are not in it: another machine has others.
    """
    from ...reports.render import count
    from ..compare.baseline import as_text, write
    from ..compare.figures import measured
    from ..folder.contexts import rows_of
    from ..folder.run import load
    from .streams import say

    found = measured(load(chosen(run)), rows_of, tuple(model or MODELS) if cost else ())
    if str(out) == "-":
        typer.echo(as_text(found), nl=False)
        return
    write(found, out)
    strategies = count(len(found.sums), "strategy", "strategies")
    sizes = count(len(found.digests), "conversation"), strategies, count(len(found.metrics), "metric")
    say(f"written: {out} ({' × '.join(sizes)})")


_COST = re.compile(r"cost\((.+)\)")


def gate(
    run: RunArgument = Path("runs"),
    baseline: Annotated[
        Path, typer.Option("--baseline", "-b", help="The file that `ctxbench baseline` wrote.", metavar="FILE")
    ] = FILE,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            "-p",
            help="What is guarded, with which margins (docs/ci.md).",
            metavar="FILE",
            show_default="everything in the baseline, with the usual margins",
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Append Markdown to this file: $GITHUB_STEP_SUMMARY; - is standard output.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")] = False,
) -> None:
    """Compare a run with a baseline: exit code 0 if it passes, 1 if it fails, 2 if something has to be mended first.

    It fails where a metric is worse, or where what was measured is gone. Where it cannot tell it passes, unless the
    policy says otherwise. Where the recordings, a metric's formula or a model's prices are others than in the baseline,
    it says so with exit code 2.
    """
    from ...reports.gate import as_json as exact
    from ...reports.gate import as_junit, tables
    from ...scenarios.errors import UserError
    from ..compare import baseline as files
    from ..compare.figures import measured
    from ..compare.gate import CODES
    from ..compare.gate import gate as decide
    from ..folder.run import load
    from .output import print_json, print_tables, write_markdown, write_text

    if as_json and str(markdown) == "-":
        raise UserError("give --json or --markdown -, not both: there is one standard output")
    before = files.read(baseline)
    opened = load(chosen(run))
    asked = _policy(policy, before, opened)
    rows = _Rows()
    after = measured(opened, rows, _models(before, asked))
    found = decide(before, after, asked)
    step = rows.step(opened)
    if junit is not None:
        write_text(as_junit(found), junit)
    made = list(tables(found, step))
    if markdown is not None:
        write_markdown(made, markdown, append=True)
    if as_json:
        print_json(exact(found, step))
    elif str(markdown) != "-":
        print_tables(made)
    raise typer.Exit(CODES[found.result])


def _models(baseline: MeasuredRun, policy: GatePolicy) -> list[str]:
    """Those under whose bill the run is guarded."""
    costs = [(found[1], name) for name in baseline.metrics if (found := _COST.fullmatch(name))]
    return [model for model, name in costs if policy.rule(name, baseline.metrics[name])]


def _policy(file: Path | None, baseline: MeasuredRun, run: Run) -> GatePolicy:
    from ..compare.gate import GatePolicy, read

    if file is None:
        return GatePolicy()
    return read(file, baseline.metrics, [*baseline.sums, *run.manifest["plan"]["strategies"]])


class _Rows:
    """The tables of a run, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, pd.DataFrame] = {}

    def __call__(self, run: Run, table: str) -> pd.DataFrame:
        from ..folder.contexts import rows_of

        if table not in self._known:
            self._known[table] = rows_of(run, table)
        return self._known[table]

    def step(self, run: Run) -> Step:
        """From metric, conversation and strategy to the step that weighs most against the figure."""
        from ...metrics.figures import METRICS
        from ..compare.figures import ANSWERS, worst_step

        def found(metric: str, conversation: str, strategy: str) -> int | None:
            known = METRICS.get(metric)
            if known is None or known.table == ANSWERS:
                return None
            return worst_step(self(run, known.table), known, conversation, strategy)

        return found
