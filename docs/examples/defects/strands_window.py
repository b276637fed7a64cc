"""Strands: the default window of 40 messages drops the task, an agent's only user message, after 20 tool calls."""

from types import SimpleNamespace

from strands.agent.conversation_manager import SlidingWindowConversationManager

agent, calls = SimpleNamespace(messages=[{"role": "user", "content": [{"text": "Fix bug 42."}]}]), 0
manager = SlidingWindowConversationManager()
while agent.messages[0]["content"] == [{"text": "Fix bug 42."}]:
    calls += 1
    use, result = {"toolUseId": str(calls), "name": "t", "input": {}}, {"toolUseId": str(calls), "content": []}
    agent.messages.append({"role": "assistant", "content": [{"toolUse": use}]})
    agent.messages.append({"role": "user", "content": [{"toolResult": result}]})
    manager.apply_management(agent)  # before each model call with per_turn=True, else after the answer
print(calls, "tool calls,", len(agent.messages), "messages are kept, the first is", agent.messages[0])
