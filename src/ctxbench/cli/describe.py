"""`ctxbench describe` and `ctxbench probe`: sets of recordings side by side, and questions that are made of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from ctxbench.scenarios.errors import RunError

from .streams import command, report_problems, say

EXAMPLES, PROBLEMS = 10, 3  # made questions, and records that cannot be read, that are printed


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


def probe(inputs: list[str], *, to: Path | None = None, form: str | None = None, as_json: bool = False) -> None:
    """Make questions of recordings that have none: of what users said and tools returned, asked some turns later.

    Rules make them, no model: the same that `ctxbench run` makes. The answer stands in one message, and a question is
    asked while nothing else in the history could answer it. To correct them write a file, a question a line, edit
    it, and give it to `ctxbench run --probes FILE`.

    Args:
        inputs (PATH): Recordings: files or folders.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.export.convert import write_lines
    from ctxbench.harness.quiz import made
    from ctxbench.metrics.quiz import AGES, MADE, age_of
    from ctxbench.reports.render import Column, table_of
    from ctxbench.scenarios.source import Problems

    from .output import put

    if as_json and str(to) == "-":
        raise RunError("--to -: --json prints on standard output: name another file")
    problems, lines, ages, questions = Problems(), [], Counter[tuple[str, int]](), []
    for conversation in RunInputs(tuple(inputs), form).conversations(problems):
        place = {message.id: at for at, message in enumerate(conversation.messages)}
        for each in made(conversation):
            lines.append(msgspec.json.encode({"conversation": conversation.id, **msgspec.to_builtins(each)}))
            kind = each.category.removeprefix(MADE)
            ages[kind, age_of(place[each.after] + 1 - place[each.evidence[0]])] += 1
            questions.append((kind, each.question, each.answers[0], conversation.id, each.evidence[0], each.after))
    report_problems(problems, PROBLEMS)
    if not lines:
        raise RunError("no question was made: the recordings have some, or nothing in them is said once and long ago")
    if to is not None:
        whole = b"".join(line + b"\n" for line in lines)
        same = to.is_file() and to.stat().st_size == len(whole) and to.read_bytes() == whole
        if str(to) != "-" and to.exists() and not same:  # a command that was stopped may be given again
            raise RunError(f"--to {to}: it is there, and may have been edited: name another file")
        write_lines(lines, to)
    options = [*(["-f", form] if form else []), *(["--probes", to] if to and str(to) != "-" else [])]
    say(f"to ask them: {command('run', *inputs, *options)}")
    kinds = sorted({kind for kind, _ in ages})
    rows = [{"kind": kind} | {f"from {age} messages ago": ages[kind, age] for age in AGES} for kind in kinds]
    some, keys = sorted(questions)[:: -(-len(questions) // EXAMPLES)], ("kind", "question", "answer")
    shown = [dict(zip((*keys, "conversation", "evidence", "after"), question, strict=True)) for question in some]
    tables = [
        table_of(title, [Column(key, key) for key in columns], of, prose=of is shown)
        for title, columns, of in (("Which questions were made?", rows[0], rows), ("Examples", keys, shown))
    ]
    if str(to) != "-":
        put(lambda: {"questions": rows, "examples": shown}, lambda: tables, as_json)
