"""`ctxbench show`: what was sent at a step, what became of the rest of the history, and what the strategy did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from ..probes.ask import CEILING, FLOOR
from .arguments import RunArgument, chosen
from .streams import command

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ...strategies.events import Event
    from ..diff import StepDiff
    from ..folder.run import Run
    from ..probes.results import StoredProbe


BOUNDS = (FLOOR, CEILING)
"""Were asked in every run."""

STYLES = {"same": "dim", "again": "cyan", "new": "green", "summarised": "yellow", "dropped": "red"}
"""What may become of a message, and its colour."""

EVIDENCE = "◆"
"""Before a message that the answer to a probe rests on."""

MARK = "▮"
"""Before a message that has a cache breakpoint after it."""

ID, LINE, FIELD = 16, 1000, 80
"""Characters that an id has room for; of a message, and of a field of an event, that are shown where lines are cut."""


class Show(TyperCommand):
    """The command, whose step may be a negative number: -1 is no option."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put a negative number, which can only be the last argument, behind all options."""
        numbers = [] if "--" in args else [each for each in args if re.fullmatch(r"-\d+", each)]
        rest = [each for each in args if each not in numbers]
        return super().parse_args(ctx, [*rest, "--", *numbers] if numbers else args)


def show(
    run: RunArgument = Path("runs"),
    conversation: Annotated[
        str | None,
        typer.Argument(metavar="CONVERSATION", help="Its id, or its number in the list. Without it, all are listed."),
    ] = None,
    step: Annotated[
        int,
        typer.Argument(
            metavar="STEP", help="Which model call, from 0, or from the end: -1, -2 …", show_default="the last"
        ),
    ] = -1,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            help="One of the run's strategies, or as much of its text as tells it from the others.",
            show_default="the first but none",
        ),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option("--probe", "-p", metavar="ID", help="Show what is sent for this question: its id, or its number."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show whole texts, not one line of each.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: all that the text shows, and more.")] = False,
) -> None:
    """Show what was sent at a step, what was not, and what the strategy did.

    [bold]same[/bold]        sent, as at the step before, after the same messages
    [bold]again[/bold]       sent, as at the step before, but not after the same
    [bold]new[/bold]         sent, and not at the step before
    [bold]summarised[/bold]  not sent, but in a summary made up to this step
    [bold]dropped[/bold]     not sent, and in no summary

    [bold]replaced[/bold]    stands with another text for a message that was said
    [bold]written[/bold]     is the strategy's own message
    ▮           has a cache breakpoint after it

    Then follow the tools that the strategy added, and what it did.

    With --probe it is what is sent for a question of the recording, asked where it belongs. A ◆ is before each message
    that the answer rests on, and what has become of it follows the messages.
    """
    from ..diff import probe_diff, step_diff
    from ..folder.run import load
    from . import arguments
    from .output import print_json

    found = load(chosen(run))
    if conversation is None:
        _list(found, as_json)
        return
    name = arguments.conversation(found, conversation)
    if probe is None:
        at = step_diff(found, name, arguments.strategy(found, strategy), step)
    else:
        which = strategy if strategy in BOUNDS else arguments.strategy(found, strategy)
        at = probe_diff(found, name, which, arguments.probe(found, name, probe))
    if as_json:
        print_json(at.as_json())
    else:
        _show(at, full)


def _list(run: Run, as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ...reports.render import WIDE, printable
    from .output import print_json

    heads = ("steps", "messages", "tokens")
    table = run.table("conversations")
    told = (table[name].tolist() for name in ("conversation", "calls", "messages", "tokens"))
    rows = [
        {"number": number, "conversation": name, "steps": calls, "messages": messages, "tokens": tokens}
        for number, (name, calls, messages, tokens) in enumerate(zip(*told, strict=True), start=1)
    ]
    if as_json:
        print_json(rows)
        return
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("", justify="right", no_wrap=True)
    shown.add_column("conversation", no_wrap=True)
    for head in heads:
        shown.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        name = escape(printable(row["conversation"]).replace("\n", "·"))
        shown.add_row(str(row["number"]), name, *(f"{row[head]:,}" for head in heads))
    Console(width=WIDE, highlight=False).print(shown)  # a narrow terminal wraps a row: an id can be copied whole
    typer.echo(f"\n{command('show', run.folder)} NUMBER|CONVERSATION [STEP] [--strategy SPEC]")


def _show(at: StepDiff, full: bool) -> None:
    from rich.markup import escape

    from ...reports.render import WIDE, count
    from .output import console as standard_output

    console = standard_output()
    cut = console.width < WIDE and not full
    if at.probe is not None:
        _say_what_is_asked(at.probe, console)
    where = f"step {at.step} of 0 to {at.steps - 1}" if at.steps > 1 else "step 0, the only one"
    where = where if at.probe is None else "after " + where if at.step >= 0 else "before any step"
    console.print(f"[bold]{escape(at.strategy)}[/bold]  {where}, {at.tokens_sent:,} of {at.tokens_full:,} tokens")
    console.print(f"{count(at.said, 'message')} said · {at.sent} sent: {_counts(at)}\n")
    for line in _lines(at, full, LINE if cut else None):
        console.print(line, no_wrap=True, overflow="ellipsis") if cut else console.print(line, soft_wrap=True)
    if at.probe is not None:
        _say_what_is_there(at.probe, console)
    for line in _did(at, cut):
        console.print(line, soft_wrap=not cut)


def _say_what_is_asked(found: StoredProbe, console: Console) -> None:
    from ...reports.render import printable

    kind = f" ({printable(found.probe.category)})" if found.probe.category else ""
    accepted = " · ".join(found.probe.answers) or (
        "none is known" if found.probe.answerable else "it cannot be answered"
    )
    console.print(f"probe {found.probe.id}{kind}: {printable(found.probe.question)}", markup=False, soft_wrap=True)
    console.print(f"accepted: {printable(accepted)}\n", markup=False, soft_wrap=True)


def _say_what_is_there(found: StoredProbe, console: Console) -> None:
    from ...reports.render import percent, printable

    states = " · ".join(f"{name} {state}" for name, state in found.evidence.items())
    console.print(f"\nevidence     {printable(states) or 'none had been said'}", markup=False, soft_wrap=True)
    if found.place is not None:
        share = percent(found.tokens_evidence / found.tokens_sent)
        where = (
            f"{found.tokens_evidence:,} of {found.tokens_sent:,} tokens ({share}), at {percent(found.place)} of them"
        )
        console.print(f"             {where}", markup=False, soft_wrap=True)
    said = {True: "an accepted one is there", False: "no accepted one is there", None: "no accepted one had been said"}
    console.print(f"answer       {said[found.answer]}", markup=False, soft_wrap=True)


def _counts(at: StepDiff) -> str:
    """How many were sent for the first time, again and so on, where there are any; what was dropped in any case."""
    sent = [f"{at.count(word)} {word}" for word in ("same", "again", "new") if at.count(word)]
    which = [f"{at.count(word)} {word}" for word in ("replaced", "written") if at.count(word)]
    lost = [f"{at.count(word)} {word}" for word in ("summarised", "dropped") if at.count(word) or word == "dropped"]
    return f"{', '.join(sent) or 'none'}{' · ' * bool(which)}{', '.join(which)} · {', '.join(lost)}"


def _lines(at: StepDiff, full: bool, most: int | None) -> Iterator[Text]:
    """Each message: what became of it, id, role, whose it is where any is not the recording's, its text or a start."""
    from rich.text import Text

    from ...reports.render import printable

    longest = min(max((len(fate.message.id) for fate in at.fates), default=0), ID)
    beside = any(fate.origin != "recorded" for fate in at.fates)
    for fate in at.fates:
        message, mark = fate.message, MARK if fate.place in at.marks else " "
        said = message.text + "".join(f" → {call.name}({call.arguments})" for call in message.calls)
        if not full:
            said = " ".join(said[:most].split())
        origin = f"{'' if fate.origin == 'recorded' else fate.origin:<9}" * beside
        mark = EVIDENCE if at.probe is not None and message.id in at.probe.evidence else mark
        who = printable(f" {mark} {message.id:<{longest}} {message.role:<10}")
        yield Text.assemble((f"{fate.status:<10}", STYLES[fate.status]), who, (origin, "magenta"), printable(said))


def _did(at: StepDiff, cut: bool) -> Iterator[Text]:
    """The tools that the strategy added, and a line for each event of the step: its kind and its fields."""
    from rich.text import Text

    from ...reports.render import printable
    from ..diff import kind_of

    lines = [("tools", ", ".join(at.tools_added))] if at.tools_added else []
    lines += [(kind_of(event), _fields(event, cut)) for event in at.events]
    if lines:
        yield Text()
    for kind, text in lines:
        yield Text.assemble((f"{kind:<10}", "cyan"), "   ", printable(text))


def _fields(event: Event, cut: bool) -> str:
    """`name=value` of each field, where lines are cut a long value or list with its start and what is left out."""
    import msgspec

    found = []
    for name, value in msgspec.structs.asdict(event).items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if cut and len(text := " ".join(text.split())) > FIELD:
            text = f"{text[:FIELD]}…" + (f" ({len(value)} of them)" if isinstance(value, tuple) else "")
        found.append(f"{name}={text}")
    return "  ".join(found)
