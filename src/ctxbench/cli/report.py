"""`ctxbench report` and `ctxbench show`: a run as tables and files to read, and the context of a single step."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Meta

from .arguments import MOST_OF_ANYTHING, RequestForm, run_folder
from .commands import PlainCommand
from .streams import command

if TYPE_CHECKING:
    from rich.text import Text

    from ctxbench.harness.diff import StepDiff
    from ctxbench.harness.folder.run import Run
    from ctxbench.harness.probes import StoredProbe
    from ctxbench.strategies.events import Event

_STYLES = {"same": "dim", "again": "cyan", "new": "green", "summarised": "yellow", "dropped": "red"}
# Marks before a message: evidence of the probe, or a cache breakpoint after the message.
_EVIDENCE, _BREAKPOINT = "◆", "▮"
# Characters of an id, of a message and of an event's field that are shown where lines are cut.
_ID, _LINE, _FIELD = 16, 1000, 80


def report(
    run: Path = Path("runs"),
    *,
    out: Path | None = None,
    model: list[str] | None = None,
    every: bool = False,
    inspect: list[str] | None = None,
    figures: bool = False,
    by: Literal["conversation", "kind"] | None = None,
    print_only: bool = False,
    no_text: bool = False,
    markdown: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the verdict on a run, and write its report: report.html, report.md, tables/ (CSV).

    report.html is one file that needs nothing else: open it from disk, send it, or store it in CI. With --json,
    --markdown, --by conversation or --print-only no report is written.

    Args:
        out (-o FOLDER): Where the report goes. [default: RUN/report]
        every (--all): Print all tables, not the verdict alone.
        inspect (CONVERSATION): Put this one into the page's inspector; repeat it.
        figures: Draw the charts as SVG and PNG too, for papers: figures/.
        by: conversation: a row per conversation and strategy instead. kind: all tables, with the probes by kind.
        print_only: Print, and write no report.
    """
    from ctxbench.api.names import find_conversation
    from ctxbench.harness.bill import check_priced
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.results import by_conversation
    from ctxbench.reports.tables import conversation_table

    from .output import check_form, print_tables, put, results_of, run_json, run_tables, verdict_tables

    check_form(as_json, markdown)
    folder = run_folder(run)
    if by == "conversation":
        rows = by_conversation(load(folder), text=not no_text)
        put(lambda: rows, lambda: [conversation_table(rows)], as_json, markdown)
        return
    check_priced(model or ())
    results = results_of(folder, model or (), text=not no_text)
    all_tables = partial(run_tables, results, by == "kind")
    if as_json or markdown is not None:
        put(partial(run_json, results), all_tables, as_json, markdown)
        return
    from ctxbench.reports.html.folder import write
    from ctxbench.reports.html.inspector import check

    named = [find_conversation(results.run, name) for name in inspect or ()]
    check(results.run, named)
    print_tables(all_tables() if every or by else verdict_tables(results))
    if not print_only:
        typer.echo(f"report: {shlex.quote(str(write(results, out or folder / 'report', named, figures=figures)))}")


class Show(PlainCommand):
    """Command `show`, whose step may be a negative number: -1 is not an option."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put a negative number, which can only be the last argument, behind all options."""
        numbers = [] if "--" in args else [arg for arg in args if re.fullmatch(r"-\d+", arg)]
        rest = [arg for arg in args if arg not in numbers]
        return super().parse_args(ctx, [*rest, "--", *numbers] if numbers else args)


def show(
    run: Path = Path("runs"),
    conversation: str | None = None,
    step: Annotated[int, Meta(ge=-MOST_OF_ANYTHING, le=MOST_OF_ANYTHING)] = -1,
    *,
    strategy: str | None = None,
    probe: str | None = None,
    full: bool = False,
    target: RequestForm | None = None,
    as_json: bool = False,
) -> None:
    """Show what was sent at a step, what was not, and what the strategy did.

    [bold]same[/bold]        sent, as at the step before, after the same messages
    [bold]again[/bold]       sent, as at the step before, but not after the same
    [bold]new[/bold]         sent, and not at the step before
    [bold]summarised[/bold]  not sent, but in a summary made up to this step
    [bold]dropped[/bold]     not sent, and in no summary

    [bold]replaced[/bold]    stands for a message of the history, with another text
    [bold]written[/bold]     is the strategy's own message
    ▮           has a cache breakpoint after it

    The tools that the strategy added and its actions follow.

    --probe shows the context of a question of the recording instead. A ◆ stands before each message that the answer
    rests on; what became of them follows the messages.

    Args:
        conversation (CONVERSATION): Its id, or its number in the list. Without it, list all.
        step (STEP): Number of the model call, from 0, or from the end: -1, -2 … [default: the last]
        probe (-p ID): Show the context of this question: its id, or its number.
        full: Show whole texts instead of one line each.
        target (--as): Print the body of the request that this API would take.
    """
    from ctxbench.api import names
    from ctxbench.harness.diff import probe_diff, step_diff
    from ctxbench.harness.export.requests import BODIES
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.probes import CEILING, FLOOR

    from .output import print_json

    opened = load(run_folder(run))
    if conversation is None:
        _list(opened, as_json)
        return
    name = names.find_conversation(opened, conversation)
    if probe is None:
        at = step_diff(opened, name, names.find_strategy(opened, strategy), step)
    else:
        which = strategy if strategy in (FLOOR, CEILING) else names.find_strategy(opened, strategy)
        at = probe_diff(opened, name, which, names.find_probe(opened, name, probe))
    if target is not None:
        print_json(BODIES[target](at.request))
    elif as_json:
        print_json(at.as_json())
    else:
        _show(at, full)


def _list(run: Run, as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ctxbench.reports.render import WIDE
    from ctxbench.scenarios.errors import printable_line

    from .output import print_json

    table = run.table("conversations")
    columns = (table[name].tolist() for name in ("conversation", "calls", "messages", "tokens"))
    heads = ("number", "conversation", "steps", "messages", "tokens")
    rows = [dict(zip(heads, (at, *row), strict=True)) for at, row in enumerate(zip(*columns, strict=True), start=1)]
    if as_json:
        print_json(rows)
        return
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        justify: Literal["left", "right"] = "left" if head == "conversation" else "right"
        shown.add_column("" if head == "number" else head, justify=justify, no_wrap=True)
    for row in rows:
        name = escape(printable_line(row["conversation"]))
        shown.add_row(str(row["number"]), name, *(f"{row[head]:,}" for head in heads[2:]))
    Console(width=WIDE, highlight=False).print(shown)  # a narrow terminal wraps a row: an id can be copied whole
    typer.echo(f"\n{command('show', run.folder)} NUMBER|CONVERSATION [STEP] [--strategy SPEC]")


def _show(at: StepDiff, full: bool) -> None:
    from rich.markup import escape

    from ctxbench.reports.render import WIDE, count

    from .output import console as standard_output

    console = standard_output()
    cut = console.width < WIDE and not full
    if at.probe is not None:
        for text in _question(at.probe):
            console.print(text, markup=False, soft_wrap=True)
    where = f"step {at.step} of 0 to {at.steps - 1}" if at.steps > 1 else "step 0, the only one"
    where = where if at.probe is None else "after " + where if at.step >= 0 else "before any step"
    console.print(f"[bold]{escape(at.strategy)}[/bold]  {where}, {at.tokens_sent:,} of {at.tokens_full:,} tokens")
    console.print(f"{count(at.said, 'message')} in the history · {at.sent} sent: {_counts(at)}\n")
    for line in _lines(at, full, _LINE if cut else None):
        console.print(line, no_wrap=True, overflow="ellipsis") if cut else console.print(line, soft_wrap=True)
    if at.probe is not None:
        for text in _evidence(at.probe):
            console.print(text, markup=False, soft_wrap=True)
    for line in _action_lines(at, cut):
        console.print(line, soft_wrap=not cut)


def _question(stored: StoredProbe) -> tuple[str, str]:
    """Return the lines before the messages: the question of a probe, and the answers that are right."""
    from ctxbench.scenarios.errors import printable

    probe = stored.probe
    kind = f" ({printable(probe.category)})" if probe.category else ""
    accepted = " · ".join(probe.answers) or ("none known" if probe.answerable else "it cannot be answered")
    return f"probe {probe.id}{kind}: {printable(probe.question)}", f"accepted: {printable(accepted)}\n"


def _evidence(stored: StoredProbe) -> Iterator[str]:
    """Yield the lines behind the messages: what became of a probe's evidence, and whether its answer is there."""
    from ctxbench.reports.render import percent
    from ctxbench.scenarios.errors import printable

    states = " · ".join(f"{name} {state}" for name, state in stored.evidence.items())
    yield f"\nevidence     {printable(states) or 'none before this question'}"
    row = stored.row
    if row["evidence_place"] is not None:
        evidence, sent = row["evidence_tokens"], row["tokens_sent"]
        share, place = percent(evidence / sent), percent(row["evidence_place"])
        yield f"             {evidence:,} of {sent:,} tokens ({share}), at {place} of them"
    words = {True: "in context", False: "not in context", None: "not in the history either"}
    yield f"answer       {words[row['answer']]}"


def _counts(at: StepDiff) -> str:
    """Return how many messages were sent, replaced, lost and so on; the number of dropped ones in any case."""
    sent = [f"{at.count(word)} {word}" for word in ("same", "again", "new") if at.count(word)]
    origins = [f"{at.count(word)} {word}" for word in ("replaced", "written") if at.count(word)]
    lost = [f"{at.count(word)} {word}" for word in ("summarised", "dropped") if at.count(word) or word == "dropped"]
    return f"{', '.join(sent) or 'none'}{' · ' * bool(origins)}{', '.join(origins)} · {', '.join(lost)}"


def _lines(at: StepDiff, full: bool, most: int | None) -> Iterator[Text]:
    """Yield a line for each message: status, id, role, origin where not all are recorded, and its text."""
    from rich.text import Text

    from ctxbench.scenarios.errors import printable

    longest = min(max((len(diff.message.id) for diff in at.messages), default=0), _ID)
    beside = any(diff.origin != "recorded" for diff in at.messages)
    for diff in at.messages:
        message, mark = diff.message, _BREAKPOINT if diff.place in at.request.marks else " "
        text = message.text + "".join(f" → {call.name}({call.arguments})" for call in message.calls)
        if not full:
            text = " ".join(text[:most].split())
        origin = f"{'' if diff.origin == 'recorded' else diff.origin:<9}" * beside
        mark = _EVIDENCE if at.probe is not None and message.id in at.probe.evidence else mark
        who = printable(f" {mark} {message.id:<{longest}} {message.role:<10}")
        yield Text.assemble((f"{diff.status:<10}", _STYLES[diff.status]), who, (origin, "magenta"), printable(text))


def _action_lines(at: StepDiff, cut: bool) -> Iterator[Text]:
    """Yield the tools that the strategy added, and a line for each event of the step: its kind and its fields."""
    from rich.text import Text

    from ctxbench.harness.diff import kind_of
    from ctxbench.scenarios.errors import printable

    lines = [("tools", ", ".join(at.tools_added))] if at.tools_added else []
    lines += [(kind_of(event), _fields(event, cut)) for event in at.events]
    if lines:
        yield Text()
    for kind, text in lines:
        yield Text.assemble((f"{kind:<10}", "cyan"), "   ", printable(text))


def _fields(event: Event, cut: bool) -> str:
    """Return `name=value` of each field; where lines are cut, a long value or list is cut too."""
    import msgspec

    fields = []
    for name, value in msgspec.structs.asdict(event).items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if cut and len(text := " ".join(text.split())) > _FIELD:
            text = f"{text[:_FIELD]}…" + (f" ({len(value)} of them)" if isinstance(value, tuple) else "")
        fields.append(f"{name}={text}")
    return "  ".join(fields)
