"""AutoGen: a token limit drops a call from the middle and sends its result, which providers reject."""

import asyncio
from types import SimpleNamespace

from autogen_core import FunctionCall
from autogen_core import model_context as contexts
from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage, UserMessage

call = AssistantMessage(content=[FunctionCall(id="1", name="t", arguments="{}")], source="agent")
result = FunctionExecutionResultMessage(content=[FunctionExecutionResult(content="done", name="t", call_id="1")])
messages = [UserMessage(content="Fix bug 42.", source="user"), call, result]
counting = SimpleNamespace(count_tokens=lambda messages, **_: 100 * len(messages))
context = contexts.TokenLimitedChatCompletionContext(counting, token_limit=200, initial_messages=messages)
print([message.type for message in asyncio.run(context.get_messages())])
