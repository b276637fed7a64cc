"""A small sound recording of every format, `recorded/<format>.json`, for tests that damage them.

In a recording, NAME stands for the name of the conversation.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

FUNCTION = {"name": "look", "description": "Looks", "parameters": {"type": "object"}}
QUESTIONS = {
    "abstention": [{"question": "My cat?", "ideal_response": "Not said.", "rubric": ["not said"]}],
    "contradiction": [{"question": "Flask?", "answer": 2, "source_chat_ids": {"a": [0], "b": [[0], 9]}, "rubric": []}],
}


@cache
def recorded(form: str) -> str:
    """The text of a format's recording."""
    return (Path(__file__).parent / "recorded" / f"{form}.json").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Sample:
    """How a format's records stand in files. `beside` are further files of the recording, by their path."""

    name: str
    form: Literal["lines", "array", "object", "session"]
    """Records on lines or in an array, one in a file, or a file of lines that make one conversation."""
    file: str = "some.json"
    beside: tuple[tuple[str, Any], ...] = ()

    def make(self, name: str) -> Any:
        """The recorded conversation, or lines of one, under that name."""
        return json.loads(recorded(self.name).replace("NAME", name))

    def records(self, count: int) -> list[Any]:
        """So many records, each another conversation; of a session, its lines."""
        return [self.make(f"r{at}") for at in range(count)] if self.form in ("lines", "array") else self.make("r0")

    def text(self, records: Any) -> bytes:
        """A file of these records."""
        if self.form in ("lines", "session") and isinstance(records, list):
            return b"".join(json.dumps(record).encode() + b"\n" for record in records)
        return json.dumps(records, indent=1 if self.form == "array" else None, ensure_ascii=False).encode()

    def write(self, folder: Path, text: bytes) -> Path:
        """The file with that text, and what stands beside it."""
        path = folder / self.file
        path.write_bytes(text)
        for name, more in self.beside:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(more))
        return path


SAMPLES: dict[str, Sample] = {
    sample.name: sample
    for sample in (
        Sample("ai_sdk", "lines"),
        Sample("anthropic_messages", "lines"),
        Sample("api_calls", "lines"),
        Sample("atif", "object"),
        Sample("beam", "object", "chat.json", (("probing_questions/probing_questions.json", QUESTIONS),)),
        Sample("braintrust", "session", "logs.jsonl"),
        Sample("chatgpt", "array"),
        Sample("claude_ai", "array"),
        Sample("claude_code", "session", "s.jsonl"),
        Sample("claude_stream", "session", "stream.jsonl"),
        Sample("cline", "object"),
        Sample("codex", "session", "rollout.jsonl"),
        Sample("codex_exec", "session", "exec.jsonl"),
        Sample("copilot_cli", "session", "events.jsonl"),
        Sample("ctxbench", "lines"),
        Sample("cursor", "session", "a.jsonl"),
        Sample("datadog_llm", "session", "spans.jsonl"),
        Sample("gemini_cli", "session", "session.jsonl"),
        Sample("goose", "object"),
        Sample("helicone", "session", "requests.jsonl"),
        Sample("http", "object"),
        Sample("inspect", "object"),
        Sample("kdconv", "array"),
        Sample("langchain", "lines"),
        Sample("langgraph", "lines"),
        Sample("langfuse", "object"),
        Sample("langsmith", "session", "runs.jsonl"),
        Sample("litellm_log", "object"),
        Sample("litellm_proxy", "session", "spend.jsonl"),
        Sample("locomo", "array"),
        Sample("longmemeval", "array"),
        Sample("memdaily", "array"),
        Sample("memorybank", "object", "memory_bank_en.json", (("probing_questions_en.jsonl", {"r0": ["?"]}),)),
        Sample("mini_swe", "object", "r0.traj.json"),
        Sample("mlflow_traces", "object"),
        Sample("mtrag", "lines"),
        Sample("openai_agents", "session", "spans.jsonl"),
        Sample("openai_batch", "session", "batch.jsonl"),
        Sample("openai_items", "lines"),
        Sample("openai_chat", "lines"),
        Sample("openclaw_telemetry", "session", "telemetry.jsonl"),
        Sample("otel", "session", "spans.jsonl"),
        Sample("opencode", "object"),
        Sample("openhands", "session", "s.jsonl"),
        Sample("pi", "session", "s.jsonl"),
        Sample("provider_requests", "lines"),
        Sample("sharegpt", "lines"),
        Sample("swe_agent", "object", "r0.traj"),
        Sample("tau2", "object"),
        Sample("tau_bench", "array"),
        Sample("vscode_chat", "session", "chat.jsonl"),
        Sample("weave", "session", "calls.jsonl"),
        Sample("terminal_bench", "object", "debug.json"),
    )
}
