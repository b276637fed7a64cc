"""`ctxbench describe` and `ctxbench probe`: sets of recordings side by side, and questions that are made of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain, zip_longest
from pathlib import Path

from ctxbench.scenarios.errors import RunError

from .streams import command, report_problems, say

EXAMPLES = 10
"""Made questions that are printed."""


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
            profiles[name] = profile(RunInputs((name,), form).open(problems).conversations(), count)
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

    Rules make them, no model: the same that `ctxbench run` makes. Its answer stands in one message, and a question is
    asked while nothing else in the history could answer it. To correct them write a file, edit it, and give it to
    `ctxbench run --probes FILE`.

    Args:
        inputs (PATH): Recordings: files or folders.
        to (FILE): The file to write, a question a line; - is standard output. [default: none]
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.export.convert import write_lines
    from ctxbench.harness.quiz import made, to_line
    from ctxbench.metrics.quiz import AGES, MADE, age_of
    from ctxbench.reports.render import Column, count, table_of
    from ctxbench.scenarios.source import Problems

    from .output import put

    if to is not None and (as_json if str(to) == "-" else to.exists()):
        what = "--json prints on standard output" if as_json else "it is there, and may have been edited"
        raise RunError(f"--to {to}: {what}: name another file")
    problems, kinds, examples = (
        Problems(),
        defaultdict[str, Counter[str]](Counter),
        defaultdict[str, list[dict[str, str]]](list),
    )
    lines, asked, own = [], 0, 0
    for conversation in RunInputs(tuple(inputs), form).open(problems).conversations():
        place = {message.id: at for at, message in enumerate(conversation.messages)}
        probes = made(conversation)
        asked, own = asked + bool(probes), own + bool(conversation.probes)
        for each in probes:
            kind = each.category.removeprefix(MADE)
            kinds[kind][age_of(place[each.after] + 1 - place[each.evidence[0]])] += 1
            examples[kind].append({"kind": kind, "question": each.question, "answer": each.answers[0]})
            lines.append(to_line(conversation.id, each))
    report_problems(problems)
    if own:
        say(f"note: {count(own, 'conversation has', 'conversations have')} questions already, so none is made")
    if not lines:
        raise RunError(
            "no question could be made: nothing is said once in these recordings, and old enough to be asked"
        )
    if to is not None:
        write_lines(lines, to)
    say(f"to ask them: {command('run', *inputs)}" + (f" --probes {to}" if to else ""))
    if str(to) == "-":
        return
    shown = [example for example in chain.from_iterable(zip_longest(*examples.values())) if example][:EXAMPLES]
    kinds["all"] = sum(kinds.values(), Counter[str]())
    rows = [{"kind": kind, **dict.fromkeys(AGES, 0), **ages, "all": ages.total()} for kind, ages in kinds.items()]
    title = f"{count(len(lines), 'question')} made of {count(asked, 'conversation')}, by messages since the answer"
    heads = {f"from {least}": name for name, least in AGES.items()} | {"all": "all"}
    figures = [Column(head, name) for head, name in heads.items()]
    texts = [Column(name, name) for name in ("kind", "question", "answer")]
    put(
        lambda: {"questions": rows, "examples": shown},
        lambda: [
            table_of(title, [Column("kind", "kind"), *figures], rows),
            table_of("Examples", texts, shown, prose=True),
        ],
        as_json,
    )
