"""`ctxbench describe`: sets of recordings side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from .arguments import EncodingOption, FormatOption, JsonOption


def describe(
    recordings: Annotated[
        list[str],
        typer.Argument(metavar="PATH|SCENARIO...", help="Recordings or embedded scenarios: a column each."),
    ],
    form: FormatOption = None,
    encoding: EncodingOption = "o200k_base",
    as_json: JsonOption = False,
) -> None:
    """Describe recordings side by side: length, tools, repetition, pauses, and how hard their questions are.

    Beside the embedded set `standard` it shows what is different about your own.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.metrics.profile import profile
    from ctxbench.metrics.tokens import text_counter
    from ctxbench.reports.profile import profile_table
    from ctxbench.scenarios.errors import RunError
    from ctxbench.scenarios.source import Problems

    from .output import print_json, print_tables
    from .progress import counting
    from .streams import report_ignored, say

    count, profiles = text_counter(encoding), {}
    with counting(len(recordings), "sets") as done:
        for name in dict.fromkeys(recordings):
            problems = Problems()
            profiles[name] = profile(RunInputs((name,), form).open(problems).conversations(), count)
            report_ignored(problems.ignored, problems.notes)
            for error in problems.errors:
                say(f"left out: {error}")
            done(1)
    if not any(figures["conversations"] for figures in profiles.values()):
        raise RunError("no conversation could be read: there is nothing to describe")
    if as_json:
        print_json(profiles)
    else:
        print_tables([profile_table(profiles)])
