"""The `offline` summariser: it extracts sentences (`metrics.extract`). No key, no network, no download."""

from __future__ import annotations

from functools import lru_cache

from ...metrics.extract import extract, matters
from ...metrics.tokens import TokenCounter
from ...strategies.base import ModelError, Prompt
from . import Reply


class Extractor:
    """Replies with the sentences of the material that matter most. It reads no instruction, and costs nothing.

    Every strategy has it summarise the same messages, so it remembers the sentences it read, about a shard's (40 MB).
    """

    def __init__(self) -> None:
        self._read = lru_cache(1 << 16)(matters)

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """At most `prompt.max_tokens` tokens, exactly. Raises ModelError if no material is there, or none fits."""
        text = extract(prompt.material, prompt.max_tokens, counter.text, self._read)
        if not text:
            blank = not any(material.strip() for material in prompt.material)
            why = "the material is empty" if blank else f"nothing fits in {prompt.max_tokens} tokens"
            raise ModelError(f"offline: {why}")
        shown = sum(counter.text(each) for each in prompt.material)
        return Reply(text, "offline", shown, counter.text(text), 0.0)
