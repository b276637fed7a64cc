"""LlamaIndex's ChatMemoryBuffer sends a tool result without its call, which providers reject, once a turn is long."""

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

memory = ChatMemoryBuffer.from_defaults(token_limit=20, tokenizer_fn=str.split)
memory.put(ChatMessage("Read the file.", role="user"))
for part in ("1", "2", "3"):
    call = {"id": part, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    memory.put(ChatMessage(f"Read part {part}.", role="assistant", additional_kwargs={"tool_calls": [call]}))
    memory.put(ChatMessage("word " * 6, role="tool", additional_kwargs={"tool_call_id": part}))
print([message.role.value for message in memory.get()])
