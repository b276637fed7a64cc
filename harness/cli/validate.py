"""`ctxbench validate`: the cache models beside the usage that recordings hold."""

from __future__ import annotations

from typing import Annotated

import typer

from .say import say, say_what_was_passed_over


def validate(
    inputs: Annotated[list[str], typer.Argument(help="Recordings that hold the provider's usage.", metavar="PATH...")],
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    encoding: Annotated[str, typer.Option(help="For what the provider did not count.")] = "o200k_base",
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad recording.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print every call as JSON on standard output.")] = False,
) -> None:
    """Replay recorded requests through the cache model of their provider and date, and compare call by call.

    The prompt cache of each model is simulated under the rules that were in force when the recording was made. What it
    says was read from the cache is compared with what the provider reported.
    """
    from ...metrics.cache.agreement import agreement
    from ...metrics.cache.recorded import Replayed
    from ...metrics.tokens import TokenCounter
    from ...reports.validation import as_json, tables
    from ...scenarios.errors import RunError
    from ...scenarios.source import Problems
    from ..inputs import Inputs
    from .summary import print_json, print_tables

    problems = Problems(strict=strict)
    conversations = list(Inputs(tuple(inputs), form).open(problems).conversations())
    replayed = Replayed(TokenCounter(encoding))
    rows = list(replayed.compare(conversations))
    for problem in problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(problems.ignored, problems.notes)
    if not rows and not replayed.without_rule and not replayed.overmarked:
        raise RunError("no recorded call reports its usage: there is nothing to compare with")
    said = (agreement(rows), rows, replayed.assumed, replayed.without_rule, replayed.overmarked)
    if json:
        print_json(as_json(*said))
    else:
        print_tables(tables(*said))
