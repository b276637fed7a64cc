"""HTTP recordings: whole prompts of four APIs, what requests refer to instead of repeating it, and streams."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.exchanges import _yaml
from ctxbench.scenarios.readers.http import HttpRecordings
from ctxbench.scenarios.source import Problems
from tests.examples import examples

CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
MESSAGES = "https://api.anthropic.com/v1/messages?beta=true"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"


def interaction(url: str, asked: Any, replied: Any, status: Any = 200, **reply: Any) -> dict[str, Any]:
    """A request and its response as newer cassettes hold them."""
    response = {"status": {"code": status}, "headers": {"Date": ["Tue, 14 Nov 2023 22:13:20 GMT"]}}
    response |= reply or {"parsed_body": replied}
    return {"request": {"method": "POST", "uri": url, "parsed_body": asked}, "response": response}


def load(path: Path, *interactions: Any) -> tuple[list[Conversation], Problems]:
    text = {"version": 1, "interactions": interactions}
    path.write_text(json.dumps(text) if path.suffix == ".json" else yaml.safe_dump(text, allow_unicode=True))
    assert isinstance(detect(path), HttpRecordings)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def shown(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


def chat(messages: list[Any], answer: Any, name: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    counts = {"prompt_tokens": 2000, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1024}}
    choice = {"finish_reason": "stop", "index": 0, "message": message}
    replied = {"id": name, "model": "gpt-4o-2024", "created": 1_700_000_000, "choices": [choice], "usage": counts}
    return interaction(CHAT, {"model": "gpt-4o", "messages": messages, **fields}, replied)


BOMB = "- [&a0 [x], " + ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)) + "]\n"


@pytest.mark.parametrize(
    ("tail", "what"),
    [
        ("- request: {uri: [\n", "not YAML"),
        ("- request: !!int ''\n", "not YAML"),
        ("- &a [*a]\n", "not YAML: the alias a stands before its value, or within it"),
        (BOMB, "over 2,000,000 values"),
        ("- {<<: [{x: 1}, 2]}\n", "not YAML: << merges what is no mapping"),
        ("- [<<]\n", "not YAML: << is no key here"),
        ("- !!python/object:os.system {x: 1}\n", "the tag tag:yaml.org,2002:python/object:os.system is none that"),
        ("- !!int [1]\n", "the tag tag:yaml.org,2002:int is none that is read here"),
        ("- {[1]: 2}\n--- 3\n", "unhashable"),
        *((f"- {bracket * 20_000}", "nested too deep") for bracket in ("[", "{a: ", "- ", "? ")),
    ],
)
def test_damaged_yaml(tmp_path: Path, tail: str, what: str) -> None:
    """What is no YAML, refers to itself, or stands for far more than its text is one clear error."""
    path = tmp_path / "some.yaml"
    path.write_text(f"interactions:\n- request: {{uri: 'x'}}\n  response: {{}}\n{tail}")
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    [error] = problems.errors
    assert what in error.what
    assert error.place.line >= 4
    assert "looks for" not in error.what, "it is of this format"


def test_merges_and_tags() -> None:
    """They are read as the library does: own keys win over merged ones, of these the first."""
    text = (
        b"a: &a {x: 1, y: 1}\nb: &b !!map {<<: *a, y: 2}\nc: {y: 3, <<: [*b, {z: 4, x: 5}], '<<': ! [6]}\nd: !!seq [*b]"
    )
    assert _yaml(text, Place("a", 1)) == yaml.safe_load(text)


WHOLE = yaml.safe_dump({"interactions": [chat([{"role": "user", "content": "é: One"}], "1", "r1")]}, allow_unicode=True)


@examples(200, ignored=HealthCheck)
@given(
    st.integers(0, len(WHOLE)), st.integers(0, 30), st.text(max_size=8) | st.sampled_from(["!!binary x", "? ", "&a *a"])
)
def test_any_change_of_a_cassette(at: int, cut: int, put: str) -> None:
    """Whatever stands in a cassette in YAML: only problems with its place, and sound conversations."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.yaml"
        path.write_text(WHOLE[:at] + put + WHOLE[at + cut :], encoding="utf-8", errors="surrogatepass")
        problems = Problems()
        for one in read(find([path], problems, "http"), problems):
            check(one, Place(str(path)))
        for error in problems.errors:
            assert error.place.file == str(path)
            str(error).encode()


def test_events_that_are_none_of_the_api(tmp_path: Path) -> None:
    """Bedrock's Converse streams frames: text that looks like server-sent events is one clear error."""
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1:0/converse"
    asked = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    found, problems = load(tmp_path / "a.json", interaction(url, asked, None, body="data: {}\n\n"))
    assert not found
    assert [error.what for error in problems.errors] == ["not JSON: invalid character (byte 0)"]


def test_hosted_calls_are_named_once(tmp_path: Path) -> None:
    """A call that OpenAI ran itself is named where it comes first: in an answer, or in the input that alone has it."""
    call = {"type": "mcp_call", "id": "mcp_1", "name": "search", "arguments": "{}", "output": "41 rooms"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There are 41."}]}
    asked = {"type": "message", "role": "user", "content": "How many rooms?"}
    first = interaction(RESPONSES, {"model": "m", "input": [asked]}, {"id": "r1", "model": "m", "output": [call, said]})
    again = {"model": "m", "input": [asked, call, said, asked]}
    last = interaction(RESPONSES, again, {"id": "r2", "model": "m", "output": [said]})
    for name, interactions in (("both", (first, last)), ("input", (last,))):
        found, problems = load(tmp_path / f"{name}.json", *interactions)
        assert found
        problems.note_unknown()
        assert ["hosted tool call of type 'mcp_call': 1 not read" in note for note in problems.notes] == [True], name
