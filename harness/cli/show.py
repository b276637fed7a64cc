"""`ctxbench show`: what was sent at a step, beside what was kept, dropped and added."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .paste import command

if TYPE_CHECKING:
    from rich.text import Text

    from ...scenarios.model import Message
    from ..load import Run


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
    """Show the context that was sent at a step, and what became of every message of the history.

    [bold]same[/bold] was there a step before, in the same place · [bold]new[/bold] was added · [bold]dropped[/bold]
    was said and not sent · [bold]written[/bold] was put there by the strategy.
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
    places = {id(message): place for place, message in enumerate(conversation.messages[:at])}
    here = {id(message) for message in sent}
    dropped = [place for name, place in places.items() if name not in here]
    console = Console(highlight=False)
    console.print(f"[bold]{escape(strategy)}[/bold]  step {number} of {len(contexts)}  ", end="")
    console.print(f"{at} messages said, {len(sent)} sent, {kept} of them the same prefix, {len(dropped)} dropped\n")
    for line in _lines(conversation.messages, sent, kept, places, dropped, full):
        console.print(line, no_wrap=not full, overflow="fold" if full else "ellipsis", crop=not full)


def _lines(
    said: Sequence[Message], sent: Sequence[Message], kept: int, places: dict[int, int], dropped: list[int], full: bool
) -> Iterator[Text]:
    """The context in its order, with each dropped message where it was said."""
    left = deque(dropped)
    for number, message in enumerate(sent):
        place = places.get(id(message))
        while left and place is not None and left[0] < place:
            yield _line("dropped", "red", said[left.popleft()], full)
        if number < kept:
            yield _line("same", "dim", message, full)
        elif place is not None:
            yield _line("new", "green", message, full)
        else:
            yield _line("written", "magenta", message, full)
    for place in left:
        yield _line("dropped", "red", said[place], full)


def _line(word: str, style: str, message: Message, full: bool) -> Text:
    """One message: what became of it, id, role, then its text or the start of it. Nothing in it is markup."""
    from rich.text import Text

    from ...reports.words import printable

    said = message.text
    said += "".join(f" → {call.name}({call.arguments})" for call in message.calls)
    if not full:
        said = " ".join(said[:1000].split())
    return Text.assemble((f"{word:<8}", style), printable(f"{message.id:<8} {message.role:<10}{said}"))
