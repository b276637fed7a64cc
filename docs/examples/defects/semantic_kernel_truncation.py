"""Semantic Kernel: truncation to 20 messages drops the task, the only user message, and keeps all 30 behind it."""

import asyncio

from semantic_kernel.contents import ChatHistoryTruncationReducer, FunctionCallContent, FunctionResultContent

history, calls = ChatHistoryTruncationReducer(target_count=20, threshold_count=10), 0
history.add_system_message("You are an engineer.")
history.add_user_message("Fix bug 42.")
while history.messages[1].content == "Fix bug 42.":
    calls += 1
    history.add_assistant_message([FunctionCallContent(id=str(calls), name="t", arguments="{}")])
    history.add_tool_message([FunctionResultContent(id=str(calls), name="t", result="done")])
    asyncio.run(history.reduce())
print(calls, "tool calls,", len(history.messages), "messages are kept:", *(m.role.value for m in history.messages[:3]))
