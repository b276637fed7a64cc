"""A model behind the cassette and the purse: replays, records, charges, stops at the limit; what a cassette keeps."""

import multiprocessing
import os
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from ctxbench.harness.folder.schema import Spending
from ctxbench.harness.models import ModelAccess, Models, Reply, Settings, Unusable
from ctxbench.harness.models.cassette import Cassette, CassetteEntry, Charge, Purse, canonical, key_of
from ctxbench.harness.models.recorded import ModelAnswer, ModelRequest, Recorded
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.prices import TokenUsage
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import SetupError
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, ModelError, Prompt
from ctxbench.strategies.events import Called, Failed
from ctxbench.strategies.summary import Summary
from tests.builders import talk
from tests.harness.models.server import UNCLOSED, Server

COUNTER = TokenCounter()
pytestmark = UNCLOSED
ASK = Prompt("Summarise:\n{conversation}", ("user: hello", "assistant: hi"), 50)


class Scripted:
    """A chat model that answers from a list, and counts."""

    def __init__(self, *answers: ModelAnswer | ModelError) -> None:
        self.answers, self.asked = list(answers), list[ModelRequest]()

    def chat(self, request: ModelRequest, charge: Charge) -> ModelAnswer:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        return answer


def recorded(cassette: Cassette, model: Scripted, limit: float | None = None) -> Recorded:
    return Recorded("openai/gpt-4o-mini", model, cassette, Purse(cassette, "run", limit))


def ask(model: Recorded, prompt: Prompt = ASK) -> Reply:
    """Ask as a strategy does."""
    return model.chat(ModelRequest(model.name, prompt.text(), prompt.temperature, prompt.max_tokens), COUNTER)


@pytest.fixture
def cassette(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Cassette(tmp_path / "c") as found:
        yield found


def test_auto_asks_once(cassette: Cassette) -> None:
    """First the model is called, with the whole prompt; the second time its reply is replayed, cost and all."""
    model = Scripted(ModelAnswer("short", TokenUsage(1000, 100, cached=400)))
    first = ask(recorded(cassette, model))
    again = ask(recorded(cassette, model))
    assert model.asked == [ModelRequest("openai/gpt-4o-mini", "Summarise:\nuser: hello\nassistant: hi", 0.3, 50)]
    assert (
        first
        == again
        == Reply("short", "openai/gpt-4o-mini", 1000, 100, pytest.approx(600 * 1.5e-7 + 400 * 7.5e-8 + 100 * 6e-7))
    )


def test_other_parameters_are_other_requests(cassette: Cassette) -> None:
    """Temperature, length, text and model are in the key; what the reply stands for is not."""
    model = Scripted(*(ModelAnswer(str(number), TokenUsage(1, 1)) for number in range(4)))
    with_all = recorded(cassette, model)
    for prompt in (ASK, Prompt(ASK.instruction, ASK.material, 51), Prompt(ASK.instruction, ASK.material, 50, (), 0.0)):
        ask(with_all, prompt)
    ask(with_all, Prompt(ASK.instruction, ASK.material, 50, talk(("user", "x")).messages))
    ask(with_all, Prompt("other {conversation}", ASK.material, 50))
    assert len(model.asked) == 4


def test_replay_never_calls(cassette: Cassette) -> None:
    """In replay a reply that was recorded comes back, and one that was not is an error that says how to record it."""
    model = Scripted(ModelAnswer("short", TokenUsage(10, 1)))
    ask(recorded(cassette, model))
    replaying = Recorded("openai/gpt-4o-mini", None, cassette, None)
    assert ask(replaying).text == "short"
    with pytest.raises(ModelError, match=r"^openai/gpt-4o-mini: c has no reply .*: record it once without --replay$"):
        ask(replaying, Prompt("new", (), 5))


def test_usage_that_is_not_reported_is_counted(cassette: Cassette) -> None:
    """Without usage, the tokens are ours: 3 to prime the reply, 3 and 1 for the message, and those of the texts."""
    reply = ask(recorded(cassette, Scripted(ModelAnswer("one two three"))), Prompt("one two", (), 5))
    assert (reply.input_tokens, reply.output_tokens) == (3 + 3 + 1 + 2, 3)
    assert reply.cost == pytest.approx(9 * 1.5e-7 + 3 * 6e-7)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ModelAnswer("", TokenUsage(10, 0), "stop"), "answered with an empty text"),
        (ModelAnswer(" \n", TokenUsage(10, 1), "stop"), "answered with an empty text"),
        (ModelAnswer("", TokenUsage(10, 50), "length"), "answered nothing within 50 tokens"),
        (ModelAnswer("", TokenUsage(10, 0), "content_filter"), "content filter"),
        (ModelAnswer("", TokenUsage(10, 9), "stop", "I will\nnot."), r"refused: I will not\."),
    ],
)
def test_an_empty_answer_is_paid_for(cassette: Cassette, answer: ModelAnswer, says: str) -> None:
    """An answer without text is a ModelError that says why, is charged, and is replayed as the same."""
    model = Scripted(answer)
    for _ in range(2):
        with pytest.raises(Unusable, match=says) as caught:
            ask(recorded(cassette, model))
        assert caught.value.reply.input_tokens == 10
    assert len(model.asked) == 1
    assert cassette.spent("run").calls == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ModelAnswer("They decided on", TokenUsage(10, 50), "length"), "its answer was cut at 500 tokens"),
        (ModelAnswer("They decided on", TokenUsage(10, 50), "max_tokens"), "its answer was cut at 500 tokens"),
        (ModelAnswer("They", TokenUsage(10, 1), "content_filter"), "content filter"),
        (ModelAnswer("No.", TokenUsage(10, 1), "stop", "I will\nnot."), r"refused: I will not\."),
        (ModelAnswer("I'm sorry, but I can't assist with {that}."), "refused: I'm sorry"),
        (ModelAnswer("抱歉，我无法总结这段对话。"), "refused: 抱歉"),
    ],
)
def test_no_strategy_is_given_a_broken_answer(cassette: Cassette, answer: ModelAnswer, says: str) -> None:
    """A cut answer or a refusal would stand for messages that are lost: it fails, is charged, nothing is replaced."""
    models = Models(Settings(summariser="openai/gpt-4o-mini"))
    models._chats["openai/gpt-4o-mini"] = recorded(cassette, Scripted(answer))
    services = RecordedContext(ConversationIndex(talk(*[("user", f"text {n}") for n in range(4)]), COUNTER), models)
    view, history = Summary(threshold=2).start(services), Messages.of(services.index.conversation.messages)
    assert view(Context(history)).messages == history
    called, failed = services.drain()[0]
    assert isinstance(called, Called)
    assert isinstance(failed, Failed)
    assert re.search(says, failed.why)
    assert (failed.what, failed.instead) == ("summary", "what it would have replaced is kept, while it fits")


@pytest.mark.parametrize(
    "text", ["The user is sorry that he cannot come.", "I can help with Redis, he said.", "用户不能吃花生。"]
)
def test_a_summary_of_a_refusal_is_none(cassette: Cassette, text: str) -> None:
    """A summary that only reports a refusal is a summary, and no refusal."""
    model = recorded(cassette, Scripted(ModelAnswer(text)))
    request = ModelRequest(model.name, "Summarise", 0.3, 50)
    assert model.chat(request, COUNTER, whole=True).text == text


def test_the_limit_by_hand(cassette: Cassette) -> None:
    """A call may cost 18 in and 50 out at most, $0.0000327; it really costs $0.00003. So $0.0001 is enough for three:
    before the fourth $0.00009 are spent."""
    model = Scripted(*[ModelAnswer("short", TokenUsage(0, 50))] * 9)
    within = recorded(cassette, model, limit=0.0001)
    prompts = [Prompt(f"number {number} of some that all have as many tokens", (), 50) for number in range(5)]
    assert {3 + COUNTER.message(Message("", "user", prompt.text())) for prompt in prompts} == {18}
    for prompt in prompts[:3]:
        ask(within, prompt)
    for prompt in prompts[3:]:
        with pytest.raises(ModelError, match=r"^openai/gpt-4o-mini: the spend limit of \$0.0001 is reached$"):
            ask(within, prompt)
    assert len(model.asked) == 3
    spent = cassette.spent("run")
    assert (spent.calls, spent.refused, spent.dollars) == (3, 2, pytest.approx(0.00009))
    assert ask(within, prompts[0]).text == "short"  # what is recorded is free


def test_a_price_that_is_not_known(cassette: Cassette) -> None:
    """Without a limit the cost is None and the call is counted as unpriced; with one the call is not made."""
    model = Scripted(*[ModelAnswer("short", TokenUsage(10, 1))] * 2)
    free = Recorded("openai/mine", model, cassette, Purse(cassette, "run"))
    assert ask(free).cost is None
    assert cassette.spent("run") == Spending(calls=1, unpriced=1)
    limited = Recorded("openai/mine", model, cassette, Purse(cassette, "run", 1.0))
    with pytest.raises(ModelError, match="openai/mine: its price is not known, so the spend limit cannot be kept"):
        ask(limited, Prompt("new", (), 5))


def test_the_desk_charges_the_strategy(server: Server, tmp_path: Path) -> None:
    """A reply and an empty one are both events with their tokens and cost; only the reply stands for messages."""
    said = talk(("user", "hello there"), ("assistant", "hi"))
    settings = Settings("openai/gpt-4o-mini", cassette=str(tmp_path / "c"), usual=ModelAccess(server.url))
    services = RecordedContext(ConversationIndex(said, COUNTER), Models(settings))
    assert services.complete(Prompt("{conversation}", ("user: hello there",), 50, said.messages)) == "a summary"
    server.text = ""
    with pytest.raises(ModelError, match="empty text"):
        services.complete(Prompt("again {conversation}", ("hello",), 50, said.messages))
    cost = pytest.approx(1000 * 1.5e-7 + 100 * 6e-7)
    (reply, empty), _ = services.drain()
    assert reply == Called("summariser", "openai/gpt-4o-mini", 1000, 100, cost, about=3, shown=2)
    assert empty == Called("summariser", "openai/gpt-4o-mini", 1000, 100, cost)


def test_a_full_disk(tmp_path: Path) -> None:
    """A cassette that cannot take a reply is a ModelError, not a lost cell; and no other call is paid for in vain."""
    settings = Settings("ollama/x", cassette=str(tmp_path / "c"))
    models = Models(settings)
    with models.cassette.transaction() as database:
        database.execute("PRAGMA max_page_count=1")
    model = Scripted(ModelAnswer("y" * 100_000))
    models._chats["ollama/x"] = Recorded("ollama/x", model, models.cassette, models.purse)
    for number in range(3):
        with pytest.raises(ModelError, match="full: move it away"):
            models.complete(Prompt(f"{number}", (), 5), COUNTER)
    assert len(model.asked) == 1
    models.cassette.close()


def entry(number: int, reply: bytes = b'{"text":"yes"}') -> CassetteEntry:
    """A chat entry."""
    request = canonical({"kind": "chat", "model": "m", "number": number})
    return CassetteEntry(key_of(request), "chat", "m", reply, request)


def test_a_key_is_the_request_and_nothing_else() -> None:
    """The order of fields does not change a key, any value does; a key is the same in every process."""
    one = canonical({"model": "m", "temperature": 0.3, "messages": [{"role": "user", "content": "你好"}]})
    other = canonical({"messages": [{"content": "你好", "role": "user"}], "temperature": 0.3, "model": "m"})
    assert one == other == '{"messages":[{"content":"你好","role":"user"}],"model":"m","temperature":0.3}'
    assert key_of(one) == "354a9b56858bb7a0236ec064fe1034bde1c900d28f19de4c0c9c9b6731084d8b"
    assert key_of(one) != key_of(canonical({"model": "m", "temperature": 0.4, "messages": []}))


def test_what_is_put_is_got(tmp_path: Path) -> None:
    """Replies and vectors come back as the same bytes, also after closing; what was never put is None."""
    vector = np.arange(4, dtype=np.float32).tobytes()
    with Cassette(tmp_path / "new folder" / "c.sqlite") as cassette:
        cassette.put(entry(1))
        cassette.put(CassetteEntry("k", "embedding", "e", vector))
        assert cassette.get("nothing") is None
    with Cassette(tmp_path / "new folder" / "c.sqlite", read_only=True) as cassette:
        assert cassette.get(entry(1).key) == b'{"text":"yes"}'
        assert cassette.get_many(["k", "nothing", entry(1).key]) == {"k": vector, entry(1).key: b'{"text":"yes"}'}
        cassette.check()
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["c.sqlite"]


def _record(path: str, who: int, replies: int) -> None:
    with Cassette(Path(path)) as cassette:
        for number in range(replies):
            mine = f"{who}".encode()
            kept = cassette.put(entry(number, mine))
            assert kept == cassette.get(entry(number).key)


def test_several_processes_at_once(tmp_path: Path) -> None:
    """Four processes that make one cassette and record the same requests lose none, and agree on the replies."""
    path = tmp_path / "c.sqlite"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_record, args=(str(path), who, 200)) for who in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    with Cassette(path, read_only=True) as cassette:
        cassette.check()
        assert cassette._open.execute("SELECT COUNT(*) FROM replies").fetchone() == (200,)


def test_a_file_that_is_no_cassette(tmp_path: Path) -> None:
    """A text, another database, a folder, a cassette of a later version are refused by name, and left as they are."""
    (tmp_path / "text").write_text("not a database, but long enough to look for a header " * 9)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine (a)")
    other.close()
    with Cassette(tmp_path / "later") as cassette, cassette.transaction() as database:
        database.execute("PRAGMA user_version=9")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name, says in [("text", "not a database"), ("other", "no cassette"), ("later", "a cassette of version 9")]:
        for read_only in (True, False):
            with pytest.raises(SetupError, match=f"{name}: .*{says}"):
                Cassette(tmp_path / name, read_only=read_only)
    (tmp_path / "folder").mkdir()
    with pytest.raises(SetupError, match="folder: "):
        Cassette(tmp_path / "folder")
    assert {path: path.read_bytes() for path in before} == before


def test_a_damaged_cassette(tmp_path: Path) -> None:
    """Damage in the middle of the file is found by `check`, and said in one line with what to do."""
    path = tmp_path / "c"
    with Cassette(path) as cassette:
        cassette.put_many([entry(number, b"x" * 500) for number in range(500)])
    data = bytearray(path.read_bytes())
    data[60000:80000] = b"\0" * 20000
    path.write_bytes(data)
    with pytest.raises(SetupError, match=r"c: .*: move it away, or name another") as caught, Cassette(path) as cassette:
        cassette.check()
    assert "\n" not in str(caught.value)


def test_a_locked_cassette(tmp_path: Path) -> None:
    """A cassette that another program holds is said to be so, after a while."""
    with Cassette(tmp_path / "c"):
        pass
    other = sqlite3.connect(tmp_path / "c", isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
        with Cassette(tmp_path / "c", read_only=True, busy=0.05) as reader:
            assert reader.get("k") is None
        with pytest.raises(SetupError, match="locked: end the program that holds the cassette"):
            Cassette(tmp_path / "c", busy=0.05)
    finally:
        other.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A cassette is replayed where nothing may be written (a checkout in CI), as a user that is not root."""
    folder = tmp_path / "ro"
    with Cassette(folder / "c") as cassette:
        cassette.put(entry(1))
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            with Cassette(folder / "c", read_only=True) as cassette:
                known = cassette.get(entry(1).key)
            with pytest.raises(SetupError, match="add --replay if it has all replies"):
                Cassette(folder / "c")
            os._exit(0 if known else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    folder.chmod(0o755)
