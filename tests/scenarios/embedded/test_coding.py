"""The coding scenario: seeded, believable, and with gold that its evidence holds."""

from __future__ import annotations

import ast
import json
import re
from itertools import pairwise

import pytest

from ctxbench.scenarios.embedded.coding import make
from ctxbench.scenarios.embedded.forms import load
from ctxbench.scenarios.model import Conversation

CASES = [(seed, language) for seed in range(4) for language in ("en", "zh")]
CJK = re.compile(r"[\u3400-\u9fff]")


def characters(conversation: Conversation) -> int:
    return sum(len(m.text) + sum(len(call.arguments) for call in m.calls) for m in conversation.messages)


def speech(conversation: Conversation) -> list[str]:
    """Return the texts of people and of the agent, without quoted code."""
    texts = [m.text for m in conversation.messages if m.role != "tool"] + [p.question for p in conversation.probes]
    return [re.sub(r"`[^`]*`", "", text) for text in texts if text]


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_size(seed: int, language: str) -> None:
    """Twelve turns have the size of a long agent session, with files of up to 25 000 characters."""
    conversation = make(seed, 12, language)
    assert 180_000 < characters(conversation) < 360_000
    longest = max(len(m.text) for m in conversation.messages if m.name == "read_file")
    assert 10_000 < longest < 32_000


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_updates(seed: int, language: str) -> None:
    """The gold for a constant that was changed is the value of the last edit before the question."""
    conversation = make(seed, 60, language)
    place = {m.id: at for at, m in enumerate(conversation.messages)}
    value: dict[str, str] = {}
    moments: list[tuple[int, str, str]] = []
    for at, message in enumerate(conversation.messages):
        for call in message.calls:
            new = json.loads(call.arguments).get("new", "")
            if constant := re.fullmatch(r"([A-Z_0-9]+) = (\d+)\n", new):
                moments.append((at, constant[1], constant[2]))
    checked = 0
    for probe in conversation.probes:
        if probe.category != "updated_fact" or not probe.answers[0].isdigit():
            continue
        value = {name: to for at, name, to in moments if at < place[probe.after]}
        name = next((n for at, n, _ in moments if place[probe.evidence[0]] < at < place[probe.evidence[1]] + 1), None)
        if name is not None:
            assert value[name] == probe.answers[0]
            checked += 1
    assert checked


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_calls(seed: int, language: str) -> None:
    """A turn has 3 to 9 calls, each answered once; some go out two in one message."""
    conversation = make(seed, 12, language)
    answered = [m.answers for m in conversation.messages if m.role == "tool"]
    called = [call.id for m in conversation.messages for call in m.calls]
    assert answered == called
    assert any(len(m.calls) == 2 for m in conversation.messages)
    starts = [at for at, m in enumerate(conversation.messages) if m.role == "user"] + [len(conversation.messages)]
    for start, end in pairwise(starts):
        assert 3 <= sum(len(m.calls) for m in conversation.messages[start:end]) <= 9


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_python(seed: int, language: str) -> None:
    """Every file that is read whole is Python that parses."""
    conversation = make(seed, 30, language)
    whole = set()
    for message in conversation.messages:
        for call in message.calls:
            arguments = json.loads(call.arguments)
            if call.name == "read_file" and arguments["path"].endswith(".py") and "start" not in arguments:
                whole.add(call.id)
    files = [m.text for m in conversation.messages if m.answers in whole]
    assert len(files) > 8
    for text in files:
        assert any(isinstance(node, ast.ClassDef) for node in ast.parse(text).body)


def test_files_change() -> None:
    """The agent reads later what it edits now: an edit's old text stood in the file, its new text does after."""
    conversation = make(3, 40, "en")
    text = {m.answers: m.text for m in conversation.messages if m.role == "tool"}
    for message in conversation.messages:
        for call in message.calls:
            arguments = json.loads(call.arguments)
            if call.name == "edit_file" and arguments["path"].startswith("src/"):
                shown = re.sub(r"(?m)^ *\d+  ", "", text[call.id])
                assert arguments["new"].rstrip("\n").split("\n")[0] in shown


@pytest.mark.parametrize("seed", range(4))
def test_language(seed: int) -> None:
    """People speak the conversation's language: Chinese has no English phrases, English no Chinese letters."""
    spoken = speech(make(seed, 30, "zh"))
    assert not [text for text in spoken if re.search(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+", text)]
    letters = "".join(spoken)
    assert len(CJK.findall(letters)) / len(re.sub(r"\s", "", letters)) > 0.6
    assert not re.search(r"[\u3400-\u9fff][,;:?!]", letters)
    assert not CJK.search(make(seed, 30, "en").to_json().decode())


def test_same_keys() -> None:
    """All that can be said in one language can be said in the other, with the same number of reasons."""
    english, chinese = (load("ctxbench.scenarios.embedded.coding", f"speech_{language}") for language in ("en", "zh"))
    assert english.keys() == chinese.keys()
    assert len(english["reasons"]) == len(chinese["reasons"])
