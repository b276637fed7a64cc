"""`ctxbench describe`: sets of recordings side by side."""

from __future__ import annotations

from pathlib import Path

from ctxbench.scenarios.errors import RunError


def describe(
    recordings: list[str],
    *,
    form: str | None = None,
    encoding: str = "o200k_base",
    coverage: bool = False,
    as_json: bool = False,
) -> None:
    """Describe recordings side by side: length, tools, repetition, pauses, and how hard their questions are.

    Beside the embedded set `standard` it shows what is different about your own. --coverage is for those who add a
    format: it names the keys under which text stands that is in no message.

    Args:
        recordings (PATH|SCENARIO...): Recordings or embedded scenarios: a column each.
        coverage: Also show how much of the text in the files is in a message.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.metrics.profile import profile
    from ctxbench.metrics.tokens import text_counter
    from ctxbench.reports.profile import coverage_tables, profile_table
    from ctxbench.scenarios.coverage import compared
    from ctxbench.scenarios.read import find
    from ctxbench.scenarios.source import Problems

    from .output import put
    from .progress import counting
    from .streams import report_problems

    count, profiles = text_counter(encoding), {}
    with counting(len(recordings), "sets") as done:
        for name in dict.fromkeys(recordings):
            problems = Problems()
            profiles[name] = profile(RunInputs((name,), form).read(problems), count)
            report_problems(problems)
            done(1)
    if not any(figures["conversations"] for figures in profiles.values()):
        raise RunError("no conversation could be read: there is nothing to describe")
    paths = [Path(name) for name in recordings if coverage and Path(name).exists()]  # embedded scenarios have no files
    rows = [compared(batch, Problems()) for batch in find(paths, Problems(), form)] if coverage else []
    shown = {**profiles, "coverage": rows} if coverage else profiles
    put(lambda: shown, lambda: [profile_table(profiles), *(coverage_tables(rows) if coverage else ())], as_json)
