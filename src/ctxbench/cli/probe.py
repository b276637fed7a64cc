"""`ctxbench probe`: questions that are made of recordings."""

from __future__ import annotations

from collections import Counter
from itertools import chain, zip_longest
from pathlib import Path

from ctxbench.scenarios.errors import RunError

from .streams import command, report_problems, say

EXAMPLES = 10


def probe(inputs: list[str], *, to: Path | None = None, form: str | None = None, as_json: bool = False) -> None:
    """Make questions of recordings that have none: of what users said and tools returned, asked some turns later.

    Rules make them, no model. An answer stands in one message, and a question is asked while nothing else in the
    history could answer it. `ctxbench run` makes the same ones; to correct them, write them to a file, edit it, and
    give it to `ctxbench run --probes FILE`.

    Args:
        inputs (PATH): Recordings: files or folders.
        to (FILE): The file to write, a question a line; - is standard output. [default: none]
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.export.convert import write_lines
    from ctxbench.harness.quiz import to_line
    from ctxbench.metrics.quiz import AGES, MADE, age_of
    from ctxbench.reports.render import Column, Table, count, table_of
    from ctxbench.scenarios.source import Problems

    from .output import put

    if to is not None and str(to) != "-" and to.exists():
        raise RunError(f"--to {to}: is there, and somebody may have edited it: name another, or delete it")
    if as_json and str(to) == "-":
        raise RunError("--to -: --json prints on standard output: name a file")
    problems = Problems()
    conversations = list(RunInputs(tuple(inputs), form, "made").open(problems).conversations())
    report_problems(problems)
    if not conversations:
        raise RunError("no conversation could be read: there is nothing to ask about")
    kinds: dict[str, Counter[str]] = {}
    examples: dict[str, list[tuple[str, str, str]]] = {}
    lines = []
    for conversation in conversations:
        place = {message.id: at for at, message in enumerate(conversation.messages, 1)}
        for made in conversation.probes:
            if made.category.startswith(MADE):
                kind = made.category.removeprefix(MADE)
                age = age_of(place[made.after] - place[made.evidence[0]] + 1)
                kinds.setdefault(kind, Counter())[age] += 1
                examples.setdefault(kind, []).append((kind, made.question, made.answers[0]))
                lines.append(to_line(conversation.id, made))
    own = sum(any(not asked.category.startswith(MADE) for asked in each.probes) for each in conversations)
    if own:
        say(f"note: {count(own, 'conversation has', 'conversations have')} questions already, so none are made")
    if not lines:
        raise RunError("no question could be made: nothing in these recordings is said once and old enough to be asked")
    if to is not None:
        write_lines(lines, to)
    shown = [example for example in chain.from_iterable(zip_longest(*examples.values())) if example][:EXAMPLES]
    rows = [{"kind": kind, **kinds[kind], "all": kinds[kind].total()} for kind in sorted(kinds)]
    total = sum(kinds.values(), Counter[str]())
    rows.append({"kind": "all", **total, "all": total.total()})
    figures = [Column(name, lambda row, name=name: row.get(name, 0), "{:,}".format) for name in (*AGES, "all")]

    def tables() -> list[Table]:
        ages = ", ".join(f"{name}: {least} messages or more" for name, least in AGES.items())
        title = f"{count(len(lines), 'question')} made of {count(len(conversations), 'conversation')}, by age"
        names = (Column("kind", lambda row: row[0]), Column("question", lambda row: row[1]))
        return [
            table_of(title, [Column("kind", "kind"), *figures], rows, [f"{ages}."]),
            table_of("Examples", [*names, Column("answer", lambda row: row[2])], shown, prose=True, names=3),
        ]

    examples_of = [dict(zip(("kind", "question", "answer"), example, strict=True)) for example in shown]
    if str(to) != "-":
        put(lambda: {"questions": rows, "examples": examples_of}, tables, as_json)
    if not as_json:
        run = command("run", *inputs, *(["--probes", to] if to is not None else []))
        say(f"to ask them: {run}" if to else f"to edit them: {command('probe', *inputs, '--to', 'questions.jsonl')}")
