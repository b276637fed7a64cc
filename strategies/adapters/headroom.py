"""headroom: `compress` on OpenAI's message dicts, which need no conversion."""

from __future__ import annotations

import logging
from typing import Any

from ..functions import Step
from ..services import ChatServices
from . import adapter, imported, of_all


@adapter()
def compress(
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
    headroom = imported("headroom")
    # It writes what it leaves out to the user's home, and warns at each call that it could not shorten.
    imported("headroom.paths").set_process_stateless(True)
    logging.getLogger("headroom").addHandler(logging.NullHandler())
    tokenizers: Any = imported("headroom.tokenizers")

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
    return of_all(lambda said: headroom.compress(list(said), **settings).messages)
