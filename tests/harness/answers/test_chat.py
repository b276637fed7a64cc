"""Models as answerers: what they are sent, the tool loop, and every way in which no answer comes of it."""

from collections.abc import Callable

import pytest

from ctxbench.harness.answers.answer import Answer, Question
from ctxbench.harness.answers.chat import NOT_AVAILABLE, TEXT_PROMPT, TEXT_TOOL_PROMPT, ByModel
from ctxbench.harness.models import Models, Reply, Settings, Unusable
from ctxbench.harness.models.recorded import ModelRequest
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.events import Event, Loaded

COUNTER = TokenCounter()
LOAD = Tool("load_tool_history", "Load one.", '{"type": "object", "properties": {"uuid": {"type": "string"}}}')
BASH = Tool("bash", "Run it.")
SAID = (Message("m1", "user", "The port is 9680."), Message("m2", "assistant", "Noted."))


class Scripted(Models):
    """A model that gives these replies, one a request, and keeps what it was sent."""

    def __init__(self, *replies: Reply | ModelError, concurrency: int = 1) -> None:
        super().__init__(Settings(answerer=f"openai/m(parallel={concurrency})"))
        self.replies, self.sent = list(replies), list[ModelRequest]()

    def chat(self, request: ModelRequest, counter: TokenCounter) -> Reply:
        self.sent.append(request)
        found = self.replies.pop(0)
        if isinstance(found, ModelError):
            raise found
        return found


class Strategy:
    """A strategy that is there, with one tool."""

    def __init__(self, answer: Callable[[str], str] = lambda arguments: f"content of {arguments}") -> None:
        self.tools = {"load_tool_history": answer}

    def events(self) -> tuple[Event, ...]:
        return (Loaded("u1", "model", 12),)


def text(words: str) -> Reply:
    return Reply(words, "openai/m", 100, 5, 0.01)


def calls(*named: tuple[str, str]) -> Reply:
    made = tuple(ToolCall(f"c{at}", name, arguments) for at, (name, arguments) in enumerate(named))
    return Reply("", "openai/m", 100, 20, 0.02, made)


def ask(models: Models, **more: object) -> Answer:
    question = Question("c", "Which port?", SAID, **more)  # type: ignore[arg-type]
    return ByModel(models, COUNTER).answers([question])[0]


def test_the_context_comes_first_and_the_question_last() -> None:
    """What stands before the question is the same for every question, so a prompt cache can hold it."""
    models = Scripted(text(" 9680\n"))
    assert ask(models) == Answer("9680", "", 1, 100, 5, 0.01)
    (request,) = models.sent
    assert [(each.role, each.text) for each in request.asked[:2]] == [(each.role, each.text) for each in SAID]  # type: ignore[union-attr]
    last = request.asked[-1]
    assert isinstance(last, Message)
    assert last.role == "user"
    assert "Question: Which port?" in last.text
    assert request.temperature == 0


@pytest.mark.parametrize("reply", ["UNKNOWN", "unknown.", "**Unknown**", "未知。", "Answer: UNKNOWN"])
def test_unknown_is_known_however_it_is_written(reply: str) -> None:
    """A model that does not find it says so in its own typography."""
    assert ask(Scripted(text(reply))).text == "UNKNOWN"


def test_a_tool_of_the_strategy_is_answered_and_every_round_is_charged() -> None:
    """The model loads what was archived, is given it, and answers: two rounds, both charged, the strategy's event."""
    models = Scripted(calls(("load_tool_history", '{"uuid":"u1"}')), text("9680"))
    found = ask(models, tools=(LOAD,), live=Strategy)
    assert found == Answer("9680", "", 2, 200, 25, 0.03, ("load_tool_history",), (Loaded("u1", "model", 12),))
    call, result = models.sent[1].asked[-2:]
    assert isinstance(call, Message)
    assert isinstance(result, Message)
    assert (result.role, result.answers, result.text) == ("tool", call.calls[0].id, 'content of {"uuid":"u1"}')
    assert not models.sent[1].silent


def test_a_tool_of_the_recorded_agent_is_not_available_and_ends_the_loop() -> None:
    """It cannot be run again: the model is told, and is sent the tools once more with none to be called."""
    models = Scripted(calls(("bash", '{"cmd":"ls"}')), text("UNKNOWN"))
    found = ask(models, tools=(BASH, LOAD), live=Strategy)
    assert (found.text, found.called, found.rounds) == ("UNKNOWN", ("bash",), 2)
    result = models.sent[1].asked[-1]
    assert isinstance(result, Message)
    assert result.text == NOT_AVAILABLE
    assert models.sent[1].silent
    assert models.sent[1].tools == (BASH, LOAD)


def test_a_model_that_never_stops_calling_has_no_answer() -> None:
    """After so many rounds it may call none; that it does all the same is missing, and charged."""
    again = [calls(("load_tool_history", "{}")) for _ in range(9)]
    found = ask(Scripted(*again), tools=(LOAD,), live=Strategy)
    assert found.text == Missing("unusable", "openai/m: called a tool where it had to answer")
    assert (found.rounds, found.cost) == (5, pytest.approx(0.1))


def test_what_goes_wrong_in_a_strategy_is_why_there_is_no_answer() -> None:
    """It cannot be started again, or its tool raises: missing, with the reason."""

    def broken(*_: str) -> Strategy:
        raise ValueError("boom")

    def one() -> Scripted:
        return Scripted(calls(("load_tool_history", "{}")))

    for live, words in ((broken, "could not be started"), (lambda: Strategy(broken), "tool load_tool_history failed")):  # type: ignore[arg-type, return-value]
        found = ask(one(), tools=(LOAD,), live=live).text
        assert isinstance(found, Missing)
        assert words in found.detail
        assert "ValueError: boom" in found.detail


def test_no_reply_is_missing_and_an_empty_one_is_charged() -> None:
    """A time-out costs nothing, an empty reply was paid for; neither is a wrong answer."""
    found = ask(Scripted(ModelError("openai/m: no answer within 60 s")))
    assert found == Answer(Missing("failed", "openai/m: no answer within 60 s"), "", 0, 0, 0, 0)
    found = ask(Scripted(Unusable("openai/m: answered with an empty text", text(""))))
    assert (found.text, found.cost) == (Missing("unusable", "openai/m: answered with an empty text"), 0.01)


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    """Part of a cost is no cost."""
    models = Scripted(calls(("load_tool_history", "{}")), Reply("9680", "openai/m", 1, 1, None))
    assert ask(models, tools=(LOAD,), live=Strategy).cost is None


def test_what_does_not_fit_is_missing_and_not_sent() -> None:
    """A window that is known is looked at before anything is paid for."""
    models = Scripted()
    models.settings = Settings(answerer="gpt-4")
    found = ByModel(models, COUNTER).answers([Question("c", "?", (Message("m", "user", "word " * 9000),))])[0].text
    assert isinstance(found, Missing)
    assert "do not fit its window, 8,192" in found.detail
    assert not models.sent


def test_a_context_that_a_server_cut_is_missing() -> None:
    """Some servers drop the start of a long prompt without a word; the tokens that they report tell."""
    question = Question("c", "?", (Message("m", "user", "word " * 9000),))
    found = ByModel(Scripted(text("9680")), COUNTER).answers([question])[0]
    assert isinstance(found.text, Missing)
    assert "the context was cut" in found.text.detail
    assert found.cost == 0.01


def test_answers_come_in_the_order_of_the_questions() -> None:
    """Several are asked at once."""

    class Echo(Scripted):
        def chat(self, request: ModelRequest, counter: TokenCounter) -> Reply:
            last = request.asked[-1]
            assert isinstance(last, Message)
            return text(last.text.partition("Question: ")[2].partition("\n")[0])

    numbers = [f"n{at}" for at in range(40)]
    found = ByModel(Echo(concurrency=8), COUNTER).answers([Question("c", each, ()) for each in numbers])
    assert [each.text for each in found] == numbers


def local(*replies: Reply) -> Scripted:
    models = Scripted(*replies)
    models.settings = Settings(answerer="local:m@1")
    return models


def test_a_local_model_is_sent_plain_text() -> None:
    """It has a small window and no tools: one text, the context between the instruction and the question."""
    models = local(text("9680"))
    ask(models, tools=(BASH,))
    asked = models.sent[0].asked
    assert isinstance(asked, str)
    assert asked.startswith("Answer the question at the end")
    assert (
        "\n\nuser: The port is 9680.\n\nassistant: Noted.\n\nQuestion about the conversation above: Which port?"
        in asked
    )
    assert (models.sent[0].tools, models.sent[0].prompt) == ((), TEXT_PROMPT)


OFFERED = {"tools": (BASH, LOAD), "own_tools": (LOAD,), "live": Strategy}


@pytest.mark.parametrize(
    "written",
    [
        'load_tool_history(uuid="u1")',
        "load_tool_history('u1')",
        'I call load_tool_history(uuid: "u1").',
        "load_tool_history(u1)",
    ],
)
def test_a_local_model_calls_a_tool_in_words(written: str) -> None:
    """Its result is put behind the conversation, and the model is asked again; both rounds are charged."""
    models = local(text(written), text("9680"))
    found = ask(models, **OFFERED)
    first, second = (str(request.asked) for request in models.sent)
    assert 'write load_tool_history(uuid="...") with its uuid.' in first
    assert "bash" not in first, "the recorded agent's own tools cannot be run"
    assert '\n\ntool load_tool_history: content of {"uuid":"u1"}\n\nQuestion about' in second
    assert (found.text, found.called, found.rounds, found.input_tokens) == ("9680", ("load_tool_history",), 2, 200)
    assert {request.prompt for request in models.sent} == {TEXT_TOOL_PROMPT}


def test_a_local_model_that_repeats_a_call_has_to_answer() -> None:
    """The tool is offered no more; a call that is written all the same is its answer, which is then a wrong one."""
    call = text('load_tool_history(uuid="u1")')
    models = local(call, call, call)
    found = ask(models, **OFFERED)
    assert found.text == 'load_tool_history(uuid="u1")'
    assert ["write load_tool_history" in str(request.asked) for request in models.sent] == [True, True, False]
