"""Hooks of MkDocs for building the site: the reference of all commands comes from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARKER = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference of all commands in the place of its marker."""
    return markdown.replace(MARKER, "\n".join(reference())) if MARKER in markdown else markdown


def reference() -> Iterator[str]:
    """Yield Markdown of each command: its help, usage, arguments and options."""
    import typer
    from typer.cli import get_docs_for_click

    from ctxbench.cli import app

    def of(group: Any, context: Any, path: str) -> Iterator[str]:
        for name in group.commands:
            command = group.commands[name]  # imports it
            if hasattr(command, "commands"):
                yield from of(command, context, f"{path} {name}")
            else:
                command.help = "\n\n".join(map(_laid_out, command.help.replace("\b", "").strip().split("\n\n")))
                yield get_docs_for_click(obj=command, ctx=context, indent=1, call_prefix=path)

    program = typer.main.get_command(app)
    yield from of(program, typer.Context(program), "ctxbench")


def _laid_out(paragraph: str) -> str:
    """Return a paragraph of a help; one with words in bold is a list that is laid out already."""
    plain = paragraph.replace("[bold]", "").replace("[/bold]", "")
    return paragraph if plain == paragraph else f"```text\n{plain}\n```"
