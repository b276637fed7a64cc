"""Aider's chat history: Markdown in which the kind of a line is how it begins."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.chats import Aider
from ctxbench.scenarios.source import Problems

CHAT = """
# aider chat started at 2025-06-19 14:32:16

> You can skip this check with --no-gitignore
> Model: gpt-4o with diff edit format
> Git repo: .git with 3 files

#### /add main.py

> Added main.py to the chat

#### Fix the bug
#### in the loop.

# The loop

The bug is here:

```python
for each in range(3):
```

> Tokens: 2.1k sent, 120 received. Cost: $0.01 message, $0.01 session.
> Model: claude-x with whole edit format

#### /ask why?

Because.
"""


def load(path: Path, text: str) -> tuple[list[Conversation], Problems]:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    assert isinstance(detect(path), Aider)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """They are one error with its line."""
    path = tmp_path / "a.md"
    path.write_bytes(CHAT.encode() + b"#### \xff\n")
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    [error] = problems.errors
    assert (error.place.line, error.what) == (29, "not UTF-8 (invalid start byte)")


@given(st.lists(st.sampled_from([*CHAT.splitlines(), "#### ", ">", "> ", "#### /x", "# aider chat started at "])))
def test_any_lines(lines: list[str]) -> None:
    """Whatever the order of lines, only sound conversations come out, each with an answer."""
    with TemporaryDirectory() as folder:
        told, problems = load(Path(folder) / "a.md", "\n".join(["# aider chat started at x", *lines]))
        assert not problems.errors or not told
        for one in told:
            check(one, Place("a.md"))
            assert any(message.role == "assistant" for message in one.messages)
