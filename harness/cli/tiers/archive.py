"""`ctxbench bench-tier archive`: what recordings take on disk, beside other coders and a bound, and how fast they
are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class DictionaryKind(StrEnum):
    """What blocks are compressed with."""

    none = "none"
    trained = "trained"
    raw = "raw"


def archive(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|SCENARIO", help="Recordings (files, folders) or embedded scenarios.", show_default="standard"
        ),
    ] = None,
    level: Annotated[int, typer.Option("--level", "-l", min=1, max=22, help="zstd's.")] = 19,
    dictionary: Annotated[
        DictionaryKind,
        typer.Option("--dictionary", "-d", help="raw: the text of earlier blocks. trained: what zstd picks of it."),
    ] = DictionaryKind.raw,
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    encoding: Annotated[str, typer.Option(help="Of the token counts.")] = "o200k_base",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Archive recordings in a folder that is removed again, and measure sizes, losses and speed.

    Lossless: the whole archive beside zstd, xz, brotli and the bound of a model. Dictionaries: made of the earlier
    half of the conversations, tested on the later half. Lossy: extractive summaries and quantised embeddings, their
    originals kept.
    """
    from ....metrics.tokens import TokenCounter
    from ....reports.tiers_archive import as_json as exact
    from ....reports.tiers_archive import tables
    from ....scenarios.source import Problems
    from ....strategies.tiers.archive import Coding
    from ...archiving import archived
    from ...inputs import Inputs
    from ..say import say, say_what_was_passed_over
    from ..summary import print_json, print_tables

    coding = Coding(level=level, dictionary=dictionary.value)
    counter = TokenCounter(encoding)
    problems = Problems()
    conversations = list(Inputs(tuple(recordings or ("standard",)), form).open(problems).conversations())
    say_what_was_passed_over(problems.ignored, problems.notes)
    for error in problems.found:
        say(f"left out: {error}")
    found = archived(conversations, coding, counter, say)
    if as_json:
        print_json(exact(found))
    else:
        print_tables(tables(found))
