"""LangSmith: runs of exports and of batches, of LangChain and of wrapped clients, give the same conversation."""

from pathlib import Path
from typing import Any

from ctxbench.scenarios.model import Mark
from tests.scenarios.readers.traces import load

METADATA = {"ls_model_name": "asked", "ls_provider": "openai", "thread_id": "s1", "lc_agent_name": "cats"}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def run(name: str, second: int, kind: str, inputs: Any, outputs: Any, **more: Any) -> dict[str, Any]:
    times = {"start_time": f"2025-01-01T00:00:0{second}+00:00", "end_time": f"2025-01-01T00:00:0{second + 1}+00:00"}
    ids = {"id": name, "trace_id": "T", "parent_run_id": None if name == "a" else "a", "session_id": "a project"}
    extra = {"metadata": METADATA, "invocation_params": {"tools": TOOLS, "model": "asked"}}
    return {**ids, "run_type": kind, **times, "inputs": inputs, "outputs": outputs, "extra": extra, **more}


def test_cache_marks(tmp_path: Path) -> None:
    """Breakpoints of a request to Anthropic stand at its call, and the bill can use them."""
    content = [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]
    inputs = {"messages": [{"role": "user", "content": content}], "model": "claude"}
    [chat], _ = load(tmp_path, [run("b", 1, "llm", inputs, {"role": "assistant", "content": "Hi"})])
    call = chat.messages[1].call
    assert call is not None
    assert call.marks == (Mark("m0"),)
