"""Hooks of MkDocs for building the site: the reference of all commands comes from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARKER = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference of all commands in the place of its marker."""
    return markdown.replace(MARKER, "\n".join(reference())) if MARKER in markdown else markdown


def reference() -> Iterator[str]:
    """Yield the reference as Markdown, line by line: a heading, the help and a table of options per command."""
    import typer

    from ctxbench.cli import app

    yield from _command(typer.main.get_command(app), "ctxbench", 1)


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    """Yield a command, then the commands in it."""
    context = command.make_context(name, [], resilient_parsing=True)
    if level > 1:
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        yield from ("", f"{'#' * level} {name}", "", f"`{usage}`", "", _help(command.help or ""), "")
        rows = [row for parameter in command.get_params(context) if (row := _parameter(parameter, context))]
        if rows:
            yield from ("| | | default |", "|---|---|---|", *rows, "")
    for child in getattr(command, "commands", {}).values():
        yield from _command(child, f"{name} {child.name}", level + 1)


def _help(text: str) -> str:
    """Return the help of a command as Markdown; a paragraph with words in bold is a list that is laid out already."""
    paragraphs = text.replace("\b", "").strip().split("\n\n")
    return "\n\n".join(f"```text\n{_plain(part)}\n```" if "[bold]" in part else part for part in paragraphs)


def _plain(text: str) -> str:
    return text.replace("[bold]", "").replace("[/bold]", "")


def _parameter(parameter: Any, context: Any) -> str:
    """Return the row of an option or argument, "" for --help."""
    record = parameter.get_help_record(context)
    if parameter.name == "help" or getattr(parameter, "hidden", False):
        return ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    about = (getattr(parameter, "help", None) or (record[1] if record else "")).replace("|", "\\|")
    show, default = getattr(parameter, "show_default", True), parameter.default
    if isinstance(show, str):
        text = show
    elif default is None or default is False or callable(default) or not show:
        text = ""
    else:
        text = f"`{default}`" if default is not True else ""
    return f"| {names} | {about} | {text} |".replace("\n", " ")
