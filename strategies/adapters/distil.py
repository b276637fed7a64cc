"""distil: `compress_chat_completions` on OpenAI's message dicts, which need no conversion."""

from __future__ import annotations

from ..functions import Step
from ..services import ChatServices
from . import adapter, imported, of_all


@adapter()
def compress(services: ChatServices, verbatim: bool = False) -> Step:
    """Shorten tool results by their form (`compress_chat_completions`).

    Tables lose their repeated keys. Of long texts the lines between are folded under a handle, which an agent could
    expand with distil's tool; no recorded call does. With `verbatim` nothing is folded. Other messages lose spaces of
    JSON and repeated lines.
    """
    openai = imported("distil.adapters.openai")
    # Without `persist` what was folded stays in memory: else it is written to the user's home, and read from it.
    return of_all(lambda said: openai.compress_chat_completions(said, verbatim=verbatim, persist=False)[0])
