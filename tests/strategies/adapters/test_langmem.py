"""LangMem's strategy sends what LangMem, called natively, would send."""

from collections.abc import Callable

from ctxbench.scenarios.model import Conversation
from tests.strategies.adapters.native import SUMMARY, Seen, check_native, library
from tests.strategies.adapters.test_langchain import langchain_count, langchain_messages, langchain_seen

SUMMARIZATION = "langmem.summarization(max_tokens=600, max_tokens_before_summary=400, max_summary_tokens=100)"


def native_node(conversation: Conversation) -> Callable[[int, int], Seen]:
    models = library("langchain_core.language_models")
    node = library("langmem.short_term").SummarizationNode(
        model=models.FakeListChatModel(responses=[SUMMARY]),
        max_tokens=600,
        max_tokens_before_summary=400,
        max_summary_tokens=100,
        token_counter=langchain_count,
    )
    context: dict[str, object] = {}

    def step(start: int, stop: int) -> Seen:
        messages = langchain_messages(conversation, 0, stop)
        for at, message in enumerate(messages):
            message.id = str(at)
        update = node.invoke({"messages": messages, "context": context})
        context.update(update.get("context", {}))
        return langchain_seen(update["summarized_messages"])

    return step


def test_it_sends_what_the_library_would() -> None:
    """At every call the messages are those of LangMem's graph node that is called natively."""
    library("langmem.short_term")
    check_native(SUMMARIZATION, native_node)
