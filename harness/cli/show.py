"""`ctxbench show`: what was sent at a step, what became of the rest of the history, and what the strategy did."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .paste import command

if TYPE_CHECKING:
    from rich.text import Text

    from ...scenarios.model import Message
    from ...strategies.events import Event
    from ..load import Run

STYLES = {
    "same": "dim",
    "new": "green",
    "written": "magenta",
    "replaced": "magenta",
    "summarised": "yellow",
    "dropped": "red",
}
"""What may become of a message, and its colour."""

MARK = "▮"
"""Before a message that has a cache breakpoint after it."""

FIELD = 80
"""Characters of a field of an event that are shown."""


def show(
    run: Annotated[Path, typer.Argument(help="The run folder.", show_default="the newest under runs/")] = Path("runs"),
    conversation: Annotated[
        str | None, typer.Argument(help="Its id, or its number in the list. Without it, all are listed.")
    ] = None,
    step: Annotated[int, typer.Argument(help="Which model call, from 0.", show_default="the last")] = -1,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", "-s", help="One of the run's strategies.", show_default="the first but none"),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show whole texts, not their first lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the context as JSON.")] = False,
) -> None:
    """Show the context that was sent at a step, what became of every message of the history, and what the strategy did.

    Sent: [bold]same[/bold] was there a step before, in the same place · [bold]new[/bold] was added ·
    [bold]replaced[/bold] stands in another text for a message that was said · [bold]written[/bold] was put there by
    the strategy. Not sent: [bold]summarised[/bold] is in a summary made up to this step · [bold]dropped[/bold] is in
    none. ▮ stands before a message with a cache breakpoint after it. Then follow the tools that the strategy added, and
    each event of this step.
    """
    from ..load import load
    from .runs import chosen

    found = load(chosen(run))
    if conversation is None:
        _list(found)
        return
    _show(found, _named(found, conversation), step, _strategy(found, strategy), full, as_json)


def _strategy(run: Run, text: str | None) -> str:
    from ...strategies.chain import parse, spec

    if text is not None:
        return spec(parse(text))
    names: list[str] = run.manifest["plan"]["strategies"]
    return next((name for name in names if name != "none"), names[0])


def _named(run: Run, text: str) -> str:
    """The id that a user means by an id, or by a number in the list. An id that is a number comes first."""
    names = [str(name) for name in run.table("conversations").conversation]
    if text in names or not (text.isdecimal() and len(text) < 10 and 0 < int(text) <= len(names)):
        return text
    return names[int(text) - 1]


def _list(run: Run) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ...reports.words import printable
    from .summary import console

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("conversation", overflow="fold")
    for head in ("steps", "messages", "tokens"):
        table.add_column(head, justify="right", no_wrap=True)
    for number, row in enumerate(run.table("conversations").itertuples(), start=1):
        name = escape(printable(str(row.conversation)).replace("\n", "·"))
        table.add_row(str(number), name, str(row.calls), str(row.messages), f"{row.tokens:,}")
    console().print(table)
    typer.echo(f"\n{command('show', run.folder)} NUMBER|CONVERSATION [STEP] [--strategy SPEC]")


def _show(run: Run, name: str, step: int, strategy: str, full: bool, as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    from ...scenarios.errors import RunError
    from ...scenarios.view import shared

    conversation = run.conversation(name)
    contexts = list(run.contexts(conversation, strategy))
    if not contexts:
        raise RunError(f"{run.folder}: {strategy} has no steps in {name!r} (the cell failed, or no model was called)")
    if not -len(contexts) <= step < len(contexts):
        raise RunError(f"{name!r} has {len(contexts)} steps: give 0 to {len(contexts) - 1}")
    number = step % len(contexts)
    sent = contexts[number]
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(list(sent)), indent=2).decode())
        return
    kept = shared(contexts[number - 1], sent) if number else 0
    at = list(conversation.calls())[number]
    events = run.events(name, strategy)
    marks, tools = run.marks_and_tools(name, strategy)[number]
    fates = list(_fates(conversation.messages[:at], sent, kept, _summarised(events, number)))
    console = Console(highlight=False)
    console.print(f"[bold]{escape(strategy)}[/bold]  step {number} of {len(contexts)}  ", end="")
    console.print(f"{at} messages said, {len(sent)} sent, {kept} of them the same prefix{_counts(fates)}\n")
    shown = [*(_line(fate, fate.place in marks, full) for fate in fates), *_did(tools, events, number, full)]
    for line in shown:
        console.print(line, no_wrap=not full, overflow="fold" if full else "ellipsis", crop=not full)


class _Fate(NamedTuple):
    """What became of a message."""

    word: str
    message: Message
    place: int = -1
    """In the context; -1 = not sent."""


def _summarised(events: Iterable[tuple[int, Event]], step: int) -> set[str]:
    """Ids of the messages that summaries made up to a step stand for."""
    from ...strategies.events import Summarised

    return {name for at, event in events if at <= step and isinstance(event, Summarised) for name in event.replaced}


def _fates(said: Sequence[Message], sent: Sequence[Message], kept: int, summarised: set[str]) -> Iterator[_Fate]:
    """The context in its order, with each message that is not sent where it was said."""
    places = {message.id: place for place, message in enumerate(said)}
    here = {message.id for message in sent}
    left = deque(message for message in said if message.id not in here)

    def absent(before: int) -> Iterator[_Fate]:
        while left and places[left[0].id] < before:
            message = left.popleft()
            yield _Fate("summarised" if message.id in summarised else "dropped", message)

    for number, message in enumerate(sent):
        place = places.get(message.id)
        if place is not None:
            yield from absent(place)
        if place is not None and message != said[place]:
            yield _Fate("replaced", message, number)
        elif number < kept:
            yield _Fate("same", message, number)
        else:
            yield _Fate("written" if place is None else "new", message, number)
    yield from absent(len(said))


def _counts(fates: Iterable[_Fate]) -> str:
    """How many messages were replaced, summarised and so on, where there are any; dropped ones in any case."""
    counted = Counter(fate.word for fate in fates)
    words = [word for word in ("replaced", "summarised", "dropped") if counted[word] or word == "dropped"]
    return "".join(f", {counted[word]} {word}" for word in words)


def _line(fate: _Fate, marked: bool, full: bool) -> Text:
    """One message: what became of it, id, role, then its text or the start of it. Nothing in it is markup."""
    from rich.text import Text

    from ...reports.words import printable

    message = fate.message
    said = message.text
    said += "".join(f" → {call.name}({call.arguments})" for call in message.calls)
    if not full:
        said = " ".join(said[:1000].split())
    word = (f"{fate.word:<10}", STYLES[fate.word])
    return Text.assemble(word, f" {MARK if marked else ' '} ", printable(f"{message.id:<8} {message.role:<10}{said}"))


def _did(tools: Sequence[str], events: Iterable[tuple[int, Event]], step: int, full: bool) -> Iterator[Text]:
    """The tools that the strategy added, and a line for each event of the step: its kind and its fields."""
    from rich.text import Text

    from ...reports.words import printable

    lines = [("tools", ", ".join(tools))] if tools else []
    lines += [(str(event.__struct_config__.tag), _fields(event, full)) for at, event in events if at == step]
    if lines:
        yield Text()
    for kind, text in lines:
        yield Text.assemble((f"{kind:<10}", "cyan"), "   ", printable(text))


def _fields(event: Event, full: bool) -> str:
    """`name=value` of each field, a long value or list with its start and what is left out."""
    import msgspec

    found = []
    for name, value in msgspec.structs.asdict(event).items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if not full and len(text := " ".join(text.split())) > FIELD:
            text = f"{text[:FIELD]}…" + (f" ({len(value)} of them)" if isinstance(value, tuple) else "")
        found.append(f"{name}={text}")
    return "  ".join(found)
