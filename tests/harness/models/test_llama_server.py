"""Commands against a real OpenAI-compatible server: what users of Ollama, vLLM or llama.cpp do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Conversation, Message, Probe
from tests.harness.command import ctxbench, said
from tests.harness.models.llama import llama_server, needs_llama

pytestmark = [pytest.mark.slow, needs_llama]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llama_server() as found:
        yield found


def talk() -> Conversation:
    messages = (
        Message("m1", "user", "My name is Ines, and the locker code is 4711."),
        Message("m2", "assistant", "I have written it down."),
        Message("m3", "user", "Thank you. Good night."),
        Message("m4", "assistant", "Good night."),
    )
    probes = (Probe("code", "What is the locker code?", ("4711",), ("m1",), "single_hop"),)
    return Conversation("locker", messages, probes=probes)


def test_a_server_answers_and_grades(tmp_path: Path, address: str) -> None:
    """`run --answerer … --grader llm(…)` asks it for answers and verdicts; what it lost is seen."""
    (tmp_path / "talk.jsonl").write_bytes(talk().to_json() + b"\n")
    at = f"openai/local(api_base={address!r})"
    models = ("--answerer", at, "--grader", f"llm(model={at!r})")
    done = ctxbench("run", "talk.jsonl", "-s", "none", "-s", "last_turn", *models, "--cassette", "c", cwd=tmp_path)
    assert any(line.startswith("to ask: openai/local: ") for line in said(done.stderr))
    found = json.loads(ctxbench("report", "runs/talk", "--json", cwd=tmp_path).stdout)
    by_model = next(each for each in found["answers"] if each["answerer"] == "openai/local")
    assert by_model["strategies"]["none"]["correct"] == 1.0
    assert by_model["strategies"]["last_turn"]["correct"] == 0.0
