"""LangMem: `summarize_messages`; its messages are LangChain's."""

from __future__ import annotations

import warnings
from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, imported
from .langchain import chat_model, from_langchain, to_langchain, token_counter


@adapter()
def summarization(
    services: ChatServices,
    max_tokens: int = 8000,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
) -> Step:
    """Extend a running summary by the oldest messages (`summarize_messages`).

    It does so once they have `max_tokens_before_summary` tokens (`max_tokens` if not given). The summariser replies in
    at most `max_summary_tokens`, as LangMem's documentation binds it. The first message stays if it is a system
    message; later ones are summarised as well.
    """
    short_term, said = imported("langmem.short_term"), list[Any]()
    settings = {
        "model": chat_model(services).bind(max_tokens=max_summary_tokens),
        "max_tokens": max_tokens,
        "max_tokens_before_summary": max_tokens_before_summary,
        "max_summary_tokens": max_summary_tokens,
        "token_counter": token_counter(services),
    }
    running: Any = None

    def step(new: list[ChatDict]) -> list[ChatDict]:
        nonlocal running
        said.extend(to_langchain(new))
        with warnings.catch_warnings():
            # It warns at every call whose material the summariser's window would not hold.
            warnings.simplefilter("ignore", RuntimeWarning)
            result = short_term.summarize_messages(said, running_summary=running, **settings)
        running = result.running_summary
        return from_langchain(result.messages)

    return step
