"""Deep Agents: its `SummarizationMiddleware`; its messages are LangChain's."""

from __future__ import annotations

from typing import Any

from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, imported
from .langchain import chat_model, from_langchain, to_langchain, token_counter


@adapter()
def summarization(services: ChatServices, window: int | None = None) -> Step:
    """Summarise all but the newest messages at a limit (`SummarizationMiddleware`).

    It is set up as `create_deep_agent` does. For a model of unknown `window` the limit is 170,000 tokens and 6
    messages are kept. Else it is 0.85 of the window and 0.10 are kept; tool results that are over it even then are
    moved to files, or the conversation fails. Before all that, strings of over 2,000 characters in calls of
    `write_file` and `edit_file` are cut, but for the newest 20 messages or 0.10 of the window. Files are in memory:
    the summary names the one with the history, and no recorded call reads it.
    """
    model = chat_model(services)
    model.profile = {"max_input_tokens": window} if window else None
    store = imported("langgraph.store.memory").InMemoryStore()
    files = imported("deepagents.backends").StoreBackend(store=store, namespace=lambda _: ("files",))
    summaries = imported("deepagents.middleware.summarization")
    middleware = summaries.create_summarization_middleware(model, files, token_counter=token_counter(services))
    system, said = list[Any](), list[Any]()
    agents = imported("langchain.agents.middleware")
    add_messages = imported("langgraph.graph.message").add_messages
    # Its own name for the history's file, which the summary says, is random.
    state: dict[str, Any] = {"_summarization_session_id": "session"}

    def step(new: list[ChatDict]) -> list[ChatDict]:
        system.extend(to_langchain(message for message in new if message["role"] == "system"))
        said.extend(to_langchain(message for message in new if message["role"] != "system"))
        prompt = "\n\n".join(message.text for message in system) or None
        request = agents.ModelRequest(model=model, messages=said, system_prompt=prompt, state=state)
        sent = list[Any]()
        response = middleware.wrap_model_call(request, lambda request: sent.extend(request.messages))
        if response:
            state.update(response.command.update)
            said[:] = add_messages(said, state.pop("messages", []))
        return from_langchain([*system, *sent])

    return step
