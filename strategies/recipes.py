"""Compositions that the documents propose or that people run, by name. A recipe is its chain: that is its identity."""

from __future__ import annotations

from typing import NamedTuple


class Recipe(NamedTuple):
    """A chain that has a name."""

    chain: str
    about: str
    source: str
    fails: str


RECIPES: dict[str, Recipe] = {
    "archive_window": Recipe(
        "archive | window(max_tokens=32000)",
        "Long tool results go to the archive, and what remains is cut to a window: an agent's usual pair.",
        "001 §3, 003 §3.2",
        "what matters was said, not returned by a tool, and has left the window",
    ),
    "summary_window": Recipe(
        "summary | window(max_tokens=8000)",
        "A summary of what is old, with a window as the promise that it always fits.",
        "003 §8.3",
        "the newest twenty messages are longer than the window: they go without being summarised",
    ),
    "smart_cached": Recipe(
        "smart | cache_marks",
        "Messages kept by score, and the system prompt marked for the provider's cache.",
        "000 §2.2, §2.5",
        "conversations stay under 54 600 tokens: nothing is compressed until then",
    ),
    "facts_summary_cached": Recipe(
        "facts | summary | cache_marks",
        "Facts before a summary of what is old, the system prompt, facts and summary each with a mark.",
        "002, 003 §3.3, 000 §3.1",
        "facts or summary change at most calls: they stand before the history, whose cache goes with them",
    ),
    "all_of_000": Recipe(
        "layered | smart | session_summary | cache_marks",
        "Everything that document 000 has, in its order: memories, compression, session summary, cache.",
        "000 §2–§4",
        "what it saves in tokens it pays in summaries and lost cache: each stage rewrites the start of the context",
    ),
}
"""`ctxbench list strategies` shows them; on the command line their names stand for their chains."""
