"""Inspect's, the OpenAI Agents SDK's, headroom's and distil's ways, called as their agents call them.

Messages are turned into the library's by the functions of our adapters, which is not timed.
"""

import logging
from collections.abc import Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters.inspect import to_inspect
from ctxbench.strategies.adapters.openai_agents import to_items
from tests.perf.peers import CLOCK, SUMMARY, Count, Peer, Step, dicts, in_one_loop


def tool_output_trimmer(**settings: int) -> Peer:
    """The SDK's ToolOutputTrimmer on the whole history, which it copies where it cuts."""

    def start(conversation: Conversation, count: Count) -> Step:
        from agents.extensions.tool_output_trimmer import ToolOutputTrimmer
        from agents.run_config import CallModelData, ModelInputData

        trim = ToolOutputTrimmer(**settings)
        by_message = [to_items([message]) for message in dicts(conversation)]
        items: list[Any] = [item for each in by_message for item in each]
        ends = list(accumulate(map(len, by_message)))

        def step(at: int) -> Sequence[Any]:
            data = ModelInputData(input=items[: ends[at - 1]], instructions=None)
            return trim(CallModelData(model_data=data, agent=None, context=None)).input  # type: ignore[arg-type]

        return step

    return Peer("openai-agents ToolOutputTrimmer", start, grows=False)


def compaction_session(items: int) -> Peer:
    """The SDK's OpenAIResponsesCompactionSession over its SQLite session; OpenAI's endpoint replies at once."""

    def start(conversation: Conversation, count: Count) -> Step:
        from agents import SQLiteSession
        from agents.memory import OpenAIResponsesCompactionSession

        async def compact(model: str, input: list[Any]) -> Any:
            with CLOCK.standing():
                users = [item for item in input if item.get("role") == "user"]
                return SimpleNamespace(output=[*users, {"type": "compaction", "encrypted_content": SUMMARY}])

        session = OpenAIResponsesCompactionSession(
            "session",
            SQLiteSession("session"),
            client=SimpleNamespace(responses=SimpleNamespace(compact=compact)),  # type: ignore[arg-type]
            should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= items,
        )
        messages = dicts(conversation)
        by_message: list[list[Any]] = [to_items([message]) for message in messages]
        heard = 1  # the system prompt is no part of a session

        async def step(at: int) -> Sequence[Any]:
            nonlocal heard
            for number in range(heard, at):
                await session.add_items(by_message[number])
                if messages[number]["role"] == "assistant" and "tool_calls" not in messages[number]:
                    await session.run_compaction()
            heard = at
            return await session.get_items()

        return in_one_loop(step)

    return Peer("openai-agents CompactionSession", start)


def compaction(kind: str, **settings: Any) -> Peer:
    """Inspect's compaction handler around each call: what came in, and the tokens that the provider billed for it."""

    def start(conversation: Conversation, count: Count) -> Step:
        from inspect_ai import model as inspect_model

        @inspect_model.modelapi("replying")
        class Api(inspect_model.ModelAPI):
            async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
                return inspect_model.ModelOutput.from_content("replying", SUMMARY)

            async def count_text_tokens(self, text: str) -> int:
                return count(text)

        model = inspect_model.Model(Api("replying"), inspect_model.GenerateConfig())
        made, said, sent = to_inspect(dicts(conversation)), list[Any](), list[Any]()
        first = next(conversation.calls())
        for message in made[:first]:
            message.source = "input"
        handler = inspect_model.compaction(getattr(inspect_model, kind)(**settings), prefix=made[:first], model=model)
        arguments = {call.id: call.arguments for message in conversation.messages for call in message.calls}
        heard = 0

        def tokens_of(message: Any) -> int:
            calls = getattr(message, "tool_calls", None) or ()
            return 4 + count(message.text) + sum(count(call.function) + count(arguments[call.id]) for call in calls)

        async def step(at: int) -> Sequence[Any]:
            nonlocal heard, sent
            if heard:
                with CLOCK.standing():  # a provider says what its prompt was
                    tokens = sum(map(tokens_of, sent))
                    usage = inspect_model.ModelUsage(input_tokens=tokens)
                    output = inspect_model.ModelOutput(model="replying", usage=usage)
                await handler.record_output(sent, output)
            said.extend(made[heard:at])
            heard = at
            sent, summary = await handler.compact_input(said)
            if summary:
                said.append(summary)
            return sent

        return in_one_loop(step)

    return Peer(f"inspect {kind}", start)


def headroom(**settings: int) -> Peer:
    """headroom's compress on the whole history, without its model for prose, whose weights are a download."""

    def start(conversation: Conversation, count: Count) -> Step:
        import headroom
        from headroom.paths import set_process_stateless
        from headroom.tokenizers import BaseTokenizer, register_tokenizer

        class Tokenizer(BaseTokenizer):  # type: ignore[misc]
            def count_text(self, text: str) -> int:
                return count(text)

        set_process_stateless(True)
        logging.getLogger("headroom").addHandler(logging.NullHandler())
        register_tokenizer("counted", Tokenizer())
        messages = dicts(conversation)
        limits: dict[str, Any] = {"model": "counted", "kompress_model": "disabled", **settings}
        return lambda at: headroom.compress(messages[:at], **limits).messages

    return Peer("headroom compress", start, grows=False, calls=10)


def distil() -> Peer:
    """distil's compress_chat_completions on the whole history. It counts no tokens."""

    def start(conversation: Conversation, count: Count) -> Step:
        from distil.adapters.openai import compress_chat_completions

        messages = dicts(conversation)
        return lambda at: compress_chat_completions(messages[:at], persist=False)[0]

    return Peer("distil compress_chat_completions", start, grows=False, calls=10)
