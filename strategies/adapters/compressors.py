"""headroom: `compress`; distil: `compress_chat_completions`; both take OpenAI's message dicts, without conversion.

Tokens are counted by the run's encoding.
"""

from __future__ import annotations

import logging
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, imported

_HEADROOM = "headroom-ai", "adapter-headroom"
_DISTIL = "distil-llm", "adapter-distil"


@adapter(*_HEADROOM, "what was left out of a compressed tool result is needed")
def headroom_compress(
    services: ChatServices,
    protect_recent: int = 4,
    min_tokens_to_compress: int = 250,
    compress_user_messages: bool = False,
) -> Step:
    """Compress tool results before the newest messages (`headroom.compress`).

    The last `protect_recent` messages stay, and those under `min_tokens_to_compress` tokens. System messages are
    compressed too, those of the user if asked. Its model for prose, whose weights are a download, is left out.
    What it removes could be had back by its tool, which no recorded call does.
    """
    headroom, said = imported("headroom", *_HEADROOM), list[ChatDict]()
    # It writes what it leaves out to the user's home, and warns at each call that it could not shorten.
    imported("headroom.paths", *_HEADROOM).set_process_stateless(True)
    logging.getLogger("headroom").addHandler(logging.NullHandler())
    tokenizers: Any = imported("headroom.tokenizers", *_HEADROOM)

    class RunTokenizer(tokenizers.BaseTokenizer):  # type: ignore[misc]
        """Counts by the run's encoding; for models by name headroom downloads theirs."""

        def count_text(self, text: str) -> int:
            return services.count_tokens(text)

    tokenizers.register_tokenizer("run", RunTokenizer())
    settings: dict[str, Any] = {
        "model": "run",
        "protect_recent": protect_recent,
        "min_tokens_to_compress": min_tokens_to_compress,
        "compress_user_messages": compress_user_messages,
        "kompress_model": "disabled",
    }

    def step(new: list[ChatDict]) -> list[ChatDict]:
        said.extend(new)
        sent: list[ChatDict] = headroom.compress(list(said), **settings).messages
        return sent

    return step


@adapter(*_DISTIL, "a line that was folded away is needed")
def distil_compress(services: ChatServices, verbatim: bool = False) -> Step:
    """Shorten tool results by their form (`compress_chat_completions`).

    Tables lose their repeated keys. Of long texts the lines between are folded under a handle, which an agent could
    expand with distil's tool; no recorded call does. With `verbatim` nothing is folded. Other messages lose spaces of
    JSON and repeated lines.
    """
    openai, said = imported("distil.adapters.openai", *_DISTIL), list[ChatDict]()

    def step(new: list[ChatDict]) -> list[ChatDict]:
        said.extend(new)
        # Without `persist` what was folded stays in memory: else it is written to the user's home, and read from it.
        sent: list[ChatDict] = openai.compress_chat_completions(said, verbatim=verbatim, persist=False)[0]
        return sent

    return step
