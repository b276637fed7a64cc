"""The bill of a run: its requests rebuilt from the context log, provider caches simulated over them, and prices."""

from enum import StrEnum

MODELS = ("claude-sonnet-5", "gpt-5.6", "gemini-2.5-pro")
"""Models that a run is billed under besides the recorded one: three providers that cache by different rules."""


class SummaryPrompt(StrEnum):
    """Prompts by which a summary is asked for."""

    separate = "separate"
    history = "history"
    extends = "extends"
