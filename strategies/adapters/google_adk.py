"""Google's Agent Development Kit: `ContextFilterPlugin`, `EventsCompactionConfig`; contents of google-genai.

The system prompt stands apart, as the kit's agents have it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from typing import Any

import msgspec

from ..functions import ChatDict, Step
from ..services import ChatServices, content_text
from . import adapter, arguments_of, chat_call, chat_dict, chat_tokens, imported, system_apart

_SILENCE = logging.NullHandler()


def to_contents(messages: Iterable[ChatDict]) -> list[Any]:
    """Return message dicts as `Content`s. Raises MissingExtra.

    Tool results that stand together are one content. System messages have the role `system`: the API takes them as
    `system_instruction`. Ids, names and arguments as they were recorded are metadata of the parts.
    """
    types = imported("google.genai.types")
    contents, results, tools = list[Any](), list[Any](), dict[str, str]()
    for message in messages:
        metadata = {key: message[key] for key in ("id", "name", "tool_call_id") if key in message}
        if message["role"] == "tool":
            call_id, result = message["tool_call_id"], {"result": message["content"]}
            response = types.FunctionResponse(id=call_id, name=tools.get(call_id, ""), response=result)
            results.append(types.Part(function_response=response, part_metadata=metadata))
            if len(results) == 1:
                contents.append(types.Content(role="user", parts=[]))
            contents[-1].parts = list(results)
            continue
        results = []
        calls = message.get("tool_calls", ())
        tools |= {call["id"]: call["function"]["name"] for call in calls}
        parts = [
            types.Part(
                function_call=types.FunctionCall(id=call["id"], name=call["function"]["name"], args=arguments_of(call)),
                part_metadata=metadata | {"call": call},
            )
            for call in calls
        ]
        if message["content"] or not calls:
            parts.insert(0, types.Part(text=message["content"], part_metadata=metadata))
        contents.append(types.Content(role="model" if message["role"] == "assistant" else message["role"], parts=parts))
    return contents


def from_contents(contents: Iterable[Any]) -> list[ChatDict]:
    """Return `Content`s as message dicts: a message for each function response, and one for all other parts."""
    messages: list[ChatDict] = []
    for content in contents:
        others, calls = list[Any](), list[ChatDict]()
        for part in content.parts or ():
            if part.thought:
                continue
            metadata = part.part_metadata or {}
            if response := part.function_response:
                # A function that returns text has it under `result`.
                text = (response.response or {}).get("result")
                text = text if isinstance(text, str) else msgspec.json.encode(response.response).decode()
                # The kit takes away ids that it may have given itself.
                call_id = response.id or metadata.get("tool_call_id")
                messages.append(chat_dict("tool", text, tool_call_id=call_id, **_named(part)))
                continue
            others.append(part)
            if call := part.function_call:
                recorded = metadata.get("call")
                call_id = call.id or (recorded or {}).get("id", "")
                calls.append(chat_call(call.name, call_id, call.args or {}, [recorded] if recorded else ()))
        if others:
            role = "assistant" if content.role == "model" else content.role
            text = content_text([part.text for part in others if part.text])
            messages.append(chat_dict(role, text, tool_calls=calls, **_named(others[0])))
    return messages


def _named(part: Any) -> dict[str, Any]:
    return {key: (part.part_metadata or {}).get(key) for key in ("id", "name")}


def llm(services: ChatServices) -> Any:
    """Return a model of the kit that the run's summariser answers. Raises MissingExtra."""
    models, types = imported("google.adk.models"), imported("google.genai.types")

    class SummariserLlm(models.BaseLlm):  # type: ignore[misc, name-defined]
        """Asks the run's summariser."""

        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:  # noqa: ARG002
            text = services.complete(from_contents(llm_request.contents))
            yield models.LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))

    return SummariserLlm(model="summariser")


@adapter()
def context_filter(services: ChatServices, num_invocations_to_keep: int = 3, remove_amount: int = 1) -> Step:
    """Send the newest questions, each with what was called and said for it (`ContextFilterPlugin`)."""
    plugins = imported("google.adk.plugins.context_filter_plugin")
    plugin = plugins.ContextFilterPlugin(num_invocations_to_keep, remove_amount=remove_amount)
    llm_request = imported("google.adk.models.llm_request").LlmRequest
    contents = list[Any]()

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        contents.extend(to_contents(new))
        request = llm_request(contents=list(contents))
        await plugin.before_model_callback(callback_context=None, llm_request=request)
        return from_contents(request.contents)

    return system_apart(step)


@adapter()
def events_compaction(
    services: ChatServices,
    compaction_interval: int | None = 3,
    overlap_size: int | None = 1,
    token_threshold: int | None = None,
    event_retention_size: int | None = None,
) -> Step:
    """Summarise each few questions, or all but the newest events over a token limit (`EventsCompactionConfig`)."""
    intervals = {"compaction_interval": compaction_interval, "overlap_size": overlap_size}
    limits = {"token_threshold": token_threshold, "event_retention_size": event_retention_size}
    session, system = _Session(services, intervals | limits), list[ChatDict]()

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        system.extend(message for message in new if message["role"] == "system")
        for content in to_contents(message for message in new if message["role"] != "system"):
            await session.append(content)
        sent = [*system, *from_contents(await session.contents())]
        session.prompt_tokens = chat_tokens(services, sent)
        return sent

    return step


class _Session:
    """A session of one agent, whose events come from a recording.

    An invocation starts with a message of the user and ends before the next. The kit's runner compacts between two
    invocations, and its agent before each model call. Neither can be called alone, so the parts that they call are.
    """

    def __init__(self, services: ChatServices, limits: dict[str, int | None]) -> None:
        self._types = imported("google.genai.types")
        apps, self._compaction = self._module("apps.app"), self._module("apps.compaction")
        self._agent = self._module("agents.llm_agent").LlmAgent(name="agent", model=llm(services))
        summarizer = self._module("apps.llm_event_summarizer").LlmEventSummarizer(self._agent.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the kit calls its configuration experimental
            config = apps.EventsCompactionConfig(summarizer=summarizer, **limits)
        self._app = apps.App(name="recording", root_agent=self._agent, events_compaction_config=config)
        self._service = self._module("sessions.in_memory_session_service").InMemorySessionService()
        self._context: Any = None
        self._asking = False
        self.prompt_tokens = 0
        """Tokens of the last request, which a model reports with its reply."""
        # The kit warns of calls without results where it estimates tokens after an invocation.
        logging.getLogger("google_adk").addHandler(_SILENCE)

    @staticmethod
    def _module(name: str) -> Any:
        return imported(f"google.adk.{name}")

    async def append(self, content: Any) -> None:
        """Append an event with this content, after the end of an invocation if the user asks anew."""
        asks = content.role == "user" and not any(part.function_response for part in content.parts)
        if self._context is None or (asks and not self._asking):
            await self._next_invocation()
        self._asking = asks
        session = self._context.session
        usage = self._types.GenerateContentResponseUsageMetadata(prompt_token_count=self.prompt_tokens)
        event = self._module("events.event").Event(
            author="user" if asks else self._agent.name,
            content=content,
            invocation_id=self._context.invocation_id,
            timestamp=float(len(session.events) + 1),  # times are compared with each other alone
            usage_metadata=usage if content.role == "model" else None,
        )
        await self._service.append_event(session, event)

    async def _next_invocation(self) -> None:
        """Compact what the last invocation left, as the runner does, and start the next."""
        if self._context is None:
            session, number = await self._service.create_session(app_name=self._app.name, user_id="user"), 0
        else:
            session, number = self._context.session, int(self._context.invocation_id)
            compaction = self._compaction._run_compaction_for_sliding_window(self._app, session, self._service)
            async for event in compaction:
                await self._service.append_event(session, event)
        self._context = self._module("agents.invocation_context").InvocationContext(
            session_service=self._service,
            invocation_id=str(number + 1),
            agent=self._agent,
            session=session,
            events_compaction_config=self._app.events_compaction_config,
        )

    async def contents(self) -> list[Any]:
        request = self._module("models.llm_request").LlmRequest()
        for processor in ("compaction", "contents"):
            flow = self._module(f"flows.llm_flows.{processor}")
            async for _ in flow.request_processor.run_async(self._context, request):
                pass
        contents: list[Any] = request.contents
        return contents
