"""Chains and settings by name. A recipe is its chain: that is its identity, and what stands in every row.

`RECIPES` are compositions that the documents propose or that people run; `run` without a strategy runs them too.
`PRESETS` are the design documents' own variants, where our defaults are not the document's letter, and run when named.
"""

from __future__ import annotations

from typing import NamedTuple


class Recipe(NamedTuple):
    """A chain that has a name. It may have one stage alone."""

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
PRESETS: dict[str, Recipe] = {
    "window_document": Recipe(
        "window(max_tokens=8000, user_first=False)",
        "003's own example: exactly the newest messages that fit. Ours keeps the user message that opened the turn.",
        "003 §3.2, §6",
        "an agent's turn is longer than the window: no user message is left, and providers refuse the request",
    ),
    "summary_document": Recipe(
        "summary(user_first=False)",
        "Exactly the newest twenty messages, the others summarised at every call. Ours keeps the turn's user message.",
        "003 §3.3, §5",
        "conversations are long: every call summarises and rewrites the start of the context, and its cache goes",
    ),
    "session_summary_document": Recipe(
        "session_summary(user_first=False)",
        "Exactly the last four messages beside the summary. Ours keeps the user message that opened the turn.",
        "000 §2.3, §3.2",
        "the last four messages are calls and results: what the user asked is in the summary, or nowhere",
    ),
    "facts_document": Recipe(
        "facts(similarity=0.0, confidence=1.0, limit=15)",
        "The 15 surest facts, what 002 replaced. Ours weighs how well a fact fits what is being said.",
        "002",
        "there are more than 15 facts of equal confidence: what is asked about plays no part",
    ),
    "layered_document": Recipe(
        "layered(search='document')",
        "The document's code for search: working memory only by the whole question, short-term memory never.",
        "000 §2.4, §3.3",
        "what is needed is a task, a tool result or session history: of these it finds next to nothing",
    ),
    "cache_marks_document": Recipe(
        "cache_marks(count='chars4')",
        "A mark where a system message has 4096 characters itself. Ours counts tokens of all that comes up to it.",
        "000 §2.5, §3.1",
        "the system prompt is Chinese, or a short memory follows a long prompt: neither is marked",
    ),
    "archive_document": Recipe(
        "archive(fresh=False)",
        "A placeholder at once, as 001's code has it. Ours shows the model a result whole once, as 001's table has it.",
        "001 §3.4",
        "the answer is in the result that has just come: the model sees 200 characters of it and must ask again",
    ),
    "tiered_small": Recipe(
        "tiered(limit=4096, working=16384, archive=65536, recall=1024)",
        "The tiers at a fraction of their sizes: conversations of ordinary recordings reach all four.",
        "004",
        "a tool's result is longer than the limit",
    ),
    **{
        f"tiered_{name}": Recipe(
            f"tiered(policy='{policy}')",
            f"The Working tier by the hybrid score, {about}.",
            "004 §5.1",
            "the conversation fits in the Working tier: no policy differs from another",
        )
        for name, policy, about in (
            ("default", "hybrid", "balanced"),
            ("conversation", 'hybrid(profile="conversation")', "recency above all"),
            ("knowledge", 'hybrid(profile="knowledge")', "frequency above all"),
            ("context", 'hybrid(profile="context")', "likeness to the question above all"),
        )
    },
    "tiered_document": Recipe(
        "tiered(policy='lru_k_document', truncation='importance', retrievers=('vector', 'bm25', 'graph'), "
        "preload=True, tune=True)",
        "The document's own: its LRU-K as written, importance, all three retrievers, preload and tuner.",
        "004",
        "it is billed: importance writes the cache again at each call, and the rest changes little (decision 21)",
    ),
}

NAMED: dict[str, Recipe] = {**RECIPES, **PRESETS}
"""`ctxbench list strategies` shows them; on the command line their names stand for their chains."""
