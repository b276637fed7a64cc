"""Other people's text, made fit to be shown: on a terminal, in a table, in a label of a metric."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return text that cannot steer a terminal: control, bidirectional and invisible characters become `·`."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "·" for char in text)


def printable_line(text: str) -> str:
    """Return such text as one line: its line breaks become `·` too."""
    return printable(text).replace("\n", "·")


def csv_text(text: str) -> str:
    """Return such text for a CSV file's cell or column name: no spreadsheet takes it for a formula."""
    return f"'{printable(text)}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else printable(text)
