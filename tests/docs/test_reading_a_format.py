"""docs/reading-a-format.md: its reader reads, and says where it cannot."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.source import Problems, key_paths

TEXT = (Path(__file__).parents[2] / "docs" / "reading-a-format.md").read_text("utf-8")


def test_the_reader_of_the_page_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket becomes a conversation, the damaged line after it is named by its field, and the rest is read."""
    (code,) = re.findall(r"^`my_format.py`\n\n```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    file, module = tmp_path / "tickets.jsonl", tmp_path / "my_format.py"
    module.write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location("my_format", module)
    assert spec is not None
    assert spec.loader is not None
    my_format = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "my_format", my_format)
    spec.loader.exec_module(my_format)
    good = '{"ticket": "%s", "lines": [{"who": "customer", "what": "Hello"}, {"who": "agent", "what": "Hi"}]}\n'
    file.write_text(good % "a" + '{"ticket": "b", "lines": [{"who": "agent"}]}\n' + good % "c", "utf-8")
    problems = Problems()
    read = [conversation for _, conversation in my_format.SupportDesk().read([file], problems)]
    assert [conversation.id for conversation in read] == ["a", "c"]
    assert [message.role for message in read[0].messages] == ["user", "assistant"]
    (error,) = problems.errors
    assert "lines[0]" in str(error)
    assert ":2" in str(error)
    assert my_format.SupportDesk.shapes[0] <= key_paths((good % "a").encode())


def test_the_dialect_of_the_page_reads(tmp_path: Path) -> None:
    """Two spans of a session are one conversation with their usage, by the places that the dialect declares alone."""
    (code,) = re.findall(r"^`my_tracer.py`\n\n```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {"__name__": "my_tracer"}
    exec(compile(code, "my_tracer.py", "exec"), module)
    asked = [{"role": "user", "content": "Hello"}]
    said = {"role": "assistant", "content": "Hi"}
    span = {"trace": "t", "parent": None, "kind": "model", "model": "m", "tokens": {"prompt_tokens": 9}}
    spans = [
        {**span, "span": "a", "began": "2025-06-15T12:00:00", "asked": asked, "said": said, "meta": {"session": "s"}},
        {**span, "span": "b", "began": "2025-06-15T12:00:05", "asked": [*asked, said, *asked], "said": said},
        {**span, "span": "c", "began": "soon"},
    ]
    spans[1]["meta"] = json.dumps({"session": "s"})
    file = tmp_path / "spans.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in spans))
    problems = Problems()
    [(_, conversation)] = module["MyTracer"]().read([file], problems)
    assert (conversation.id, len(conversation.messages)) == ("s", 4)
    assert [message.call.usage.input for message in conversation.messages if message.call] == [9, 9]
    [error] = problems.errors
    assert str(error).startswith(f"{file}:3: began: 'soon' is no time")
