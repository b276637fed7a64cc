"""Smart compression: scores by hand, what stays, and that most calls do nothing."""

from dataclasses import replace

import pytest

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context
from ctxbench.strategies.events import Dropped, Failed, OverBudget, Summarised
from ctxbench.strategies.smart import MessageScores, Smart
from tests.builders import answering, calling, talk
from tests.strategies.scripted_models import COUNTER, Replying, refusing, sending, summarised

WORDS = "word " * 36


def chat(size: int, *special: Message, text: str = WORDS) -> Conversation:
    """m0, m1, … of user and assistant in turn, 40 tokens each; special messages in the place of those of their id."""
    at = {message.id: message for message in special}
    plain = [Message(f"m{n}", "assistant" if n % 2 else "user", text) for n in range(size)]
    return Conversation("chat", tuple(at.get(message.id, message) for message in plain))


SMALL = Smart(window=1100, system=100, memory=0, max_summary_tokens=50)
"""1000 tokens of history: 25 messages of `chat`. It compresses over 700 (at 18 messages), to 500."""


@pytest.mark.parametrize(
    ("message", "points"),
    [
        (Message("m", "assistant", "Fine."), 0),
        (Message("m", "user", "Fine."), 10),
        (calling("m", "x"), 20),
        (answering("r", "x", "42"), 0),
        (Message("m", "assistant", "我们最终选了北京"), 15),
        (Message("m", "assistant", "We DECIDED on Paris. That is final."), 15),
        (Message("m", "assistant", "It is indecision and finality"), 0),
        (Message("m", "assistant", "```\nx = 1\n```"), 12),
        (Message("m", "assistant", "Two:\n- a\n- b"), 8),
        (Message("m", "assistant", "  1. a"), 8),
        (Message("m", "assistant", "1、苹果"), 8),
        (Message("m", "assistant", "-1 is 3.5 less"), 0),
        (Message("m", "user", "确定：\n```\nx\n```\n* y"), 10 + 15 + 12 + 8),
    ],
)
def test_what_a_message_scores_by_itself(message: Message, points: int) -> None:
    """Role, tool call, keyword, code block, list: the document's points, each once."""
    scores = MessageScores(Smart(first=0))
    scores.read(Messages.of((message,)))
    assert scores.points == [points]


def test_the_first_turns() -> None:
    """A turn is what the user says and the first reply; a greeting is in the first; an agent's later calls in none."""
    said = talk(
        ("assistant", "Hello."),
        ("user", "u"),
        ("user", "u"),
        calling("c1", "x"),
        answering("r1", "x"),
        calling("c2", "y"),
        answering("r2", "y"),
        ("user", "u"),
        ("assistant", "a"),
        ("user", "u"),
        ("assistant", "a"),
    )
    scores = MessageScores(Smart(user=0, call=0))
    scores.read(Messages.of(said.messages))
    assert scores.points == [30, 30, 30, 30, 0, 0, 0, 0, 0, 0, 0]
    assert [at for at, opens in enumerate(scores.opening) if opens] == [0, 1, 2, 3, 7, 8]


def test_the_document_s_budget() -> None:
    """A window of 100 000 leaves 78 000 to the history, and compression starts over 70 % of that: 54 600."""
    assert Smart().history == 78_000
    size = COUNTER.message(Message("m", "user", WORDS))
    conversation = chat(54_600 // size + 2)
    below, above = sending(Smart(), conversation, None, 54_600 // size, 54_600 // size + 1)
    assert below.events == ()
    assert below.names == [f"m{at}" for at in range(below.at)]
    assert len(summarised([above])) == 1


def test_what_stays() -> None:
    """At 18 messages: the first 2 turns, the last 6 messages and what scores 35 or more stay, the summary between.

    Those take 4 + 6 + 1 messages; target 500 less the summary's reserve is 442 tokens, 11 messages of 40: none more.
    """
    decision = Message("m7", "assistant", "```\n最终\n```\n- " + "word " * 24)  # 15 + 12 + 8 = 35
    conversation = chat(18, decision)
    (sent,) = sending(SMALL, conversation, Replying(lambda _: "ok"), 18)
    assert sent.names == ["m0", "m1", "m2", "m3", "smart:m11", "m7", *(f"m{at}" for at in range(12, 18))]
    assert sent.messages[4].text == "[Summary of the conversation so far]\nok"
    assert sent.messages[4].role == "system"
    (event,) = summarised([sent])
    assert event.replaced == ("m4", "m5", "m6", "m8", "m9", "m10", "m11")


def test_the_best_of_the_rest_stay_while_they_fit() -> None:
    """With room for three more messages, the highest score is taken first, then the newest of equal ones."""
    strategy = Smart(window=1100, system=100, memory=0, max_summary_tokens=50, last_messages=4, target=0.52)
    conversation = chat(18, Message("m5", "assistant", "最终 " + "word " * 34))
    (sent,) = sending(strategy, conversation, None, 18)
    assert [name for name in sent.names[4:-4] if name.startswith("m")] == ["m5", "m10", "m12"]


def test_lower_levels_may_be_kept_too() -> None:
    """With keep='low' what the user says, 10 points, always stays."""
    strategy = Smart(window=1100, system=100, memory=0, max_summary_tokens=50, keep="low")
    (sent,) = sending(strategy, chat(20), None, 20)
    (event,) = summarised([sent])
    assert event.replaced == ("m5", "m7", "m9", "m11", "m13")


def test_the_prompt_is_the_document_s() -> None:
    """Decisions, preferences, figures, then the messages; later rounds show the earlier summary first."""
    model = Replying(lambda _: "ok")
    sending(replace(SMALL, language="zh"), chat(40), model)
    first, second = model.prompts[:2]
    assert first.text().startswith(
        "请简洁地总结以下对话的关键信息，保留：\n1. 重要的决策和结论\n2. 用户的偏好和要求\n3. 关键的数据或事实"
    )
    assert first.text().endswith(WORDS)
    assert second.material[0] == "[之前对话摘要]\nok"
    assert second.about[0].text == "[之前对话摘要]\nok"


def test_most_calls_do_nothing() -> None:
    """From 700 tokens to 500 and up again: a round at every fifth call or so, and between them only the tail grows."""
    sent = sending(SMALL, chat(120), Replying(lambda _: "ok"))
    rounds = [bool(summarised([step])) for step in sent]
    assert 8 <= sum(rounds) <= len(sent) / 4
    for before, now, again in zip(sent, sent[1:], rounds[1:], strict=False):
        if not again:
            assert now.names[: len(before.names)] == before.names
            assert len(now.names) == len(before.names) + 2


def test_too_little_to_summarise_is_left() -> None:
    """Over the threshold, but with little that need not stay, nothing is done before the budget is reached."""
    important = [Message(f"m{at}", "user", "```\n最终决定\n```\n" + "word " * 26) for at in range(4, 40, 2)]
    strategy = Smart(window=1100, system=100, memory=0, max_summary_tokens=50, target=0.1)
    sent = sending(strategy, chat(40, *important), Replying(lambda _: "ok"))
    first = next(step for step in sent if summarised([step]))
    assert first.at > 24


def test_calls_stay_with_their_results() -> None:
    """A call with its results is one piece, with the highest of their scores."""
    said = list(chat(20).messages)
    said[8:8] = [calling("c", "x", "y"), answering("r1", "x", "- " + WORDS), answering("r2", "y", "```最终``` \n- x")]
    (sent,) = sending(SMALL, Conversation("c", tuple(said)), None, 23)
    assert [name for name in sent.names if name in ("c", "r1", "r2")] == ["c", "r1", "r2"]
    said[10] = answering("r2", "y", "plain")
    (sent,) = sending(SMALL, Conversation("c", tuple(said)), None, 23)
    assert {"c", "r1", "r2"} <= set(summarised([sent])[0].replaced)


def test_a_late_result_of_a_summarised_call() -> None:
    """A result that comes when its call is summarised is not sent without it, once Dropped; the next round takes it."""
    said = list(chat(60).messages)
    said[6] = calling("c", "x", text=WORDS)
    said[20] = answering("late", "x", WORDS)
    sent = sending(SMALL, Conversation("c", tuple(said)))
    assert "c" in summarised(sent)[0].replaced
    assert all("late" not in step.names for step in sent)
    assert [step.at for step in sent for event in step.events if event == Dropped(("late",))] == [21]
    assert "late" in {name for event in summarised(sent) for name in event.replaced}


def test_an_agent_at_work_on_one_message() -> None:
    """Hundreds of calls for one user message are not all its first turn: they are compressed."""
    said: list[Message] = [Message("u", "user", WORDS)]
    for at in range(60):
        said += [calling(f"c{at}", f"x{at}"), answering(f"r{at}", f"x{at}", WORDS)]
    sent = sending(SMALL, Conversation("agent", tuple(said)))
    assert all(step.names[:3] == ["u", "c0", "r0"] for step in sent if step.at > 2)
    assert max(step.tokens for step in sent) <= 1100
    assert not [event for step in sent for event in step.events if isinstance(event, OverBudget)]


def test_more_than_fits_must_stay() -> None:
    """If what must stay is over the budget, the lowest scores are summarised too, the oldest of equal ones first."""
    important = [Message(f"m{at}", "assistant", "```\n最终\n```\n- " + "word " * 24) for at in range(5, 30, 2)]
    strategy = Smart(window=700, system=0, memory=0, max_summary_tokens=50)
    sent = sending(strategy, chat(30, *important), Replying(lambda _: "ok"), *range(1, 31))
    refused = [step for step in sent if any(isinstance(event, OverBudget) for event in step.events)]
    assert refused
    assert max(step.tokens for step in sent) <= 700
    (event,) = summarised(refused[:1])
    assert "m2" in event.replaced  # of the second turn: 10 points
    assert "m0" not in event.replaced  # of the first: 40
    assert all(step.names[-1] == f"m{step.at - 1}" for step in sent)


def test_one_enormous_message() -> None:
    """A last message over the budget is not sent at that call, and costs no other message its place."""
    conversation = chat(12, Message("m10", "user", "word " * 3000))
    before, there, after = sending(SMALL, conversation, Replying(lambda _: "ok"), 10, 11, 12)
    assert before.names == [f"m{at}" for at in range(10)]
    assert [type(event) for event in there.events if isinstance(event, OverBudget)] == [OverBudget]
    assert "m10" not in there.names
    assert len([name for name in there.names if name.startswith("m")]) >= 6
    assert after.names[-1] == "m11"
    assert "m10" in {name for event in summarised([after]) for name in event.replaced}


def test_system_messages_over_their_share() -> None:
    """They shrink the history's budget."""
    model = Replying(lambda _: "ok")
    conversation = Conversation("c", (Message("s", "system", "word " * 600), *chat(30).messages))
    (sent,) = sending(SMALL, conversation, model, 31)
    assert sent.names[0] == "s"
    assert len(model.prompts) == 1
    assert sent.tokens <= 1100


def test_a_model_that_fails() -> None:
    """Nothing is replaced while it does; over the budget the best that fit are sent; then it catches up."""
    replies = iter([refusing, refusing, lambda prompt: "ok"])
    model = Replying(lambda prompt: next(replies)(prompt))
    one, two, three = sending(SMALL, chat(30), model, 20, 28, 30)
    assert one.names == [f"m{at}" for at in range(20)]
    assert [type(event) for event in one.events] == [Failed]
    assert [type(event) for event in two.events] == [Failed]
    assert two.tokens <= 1000
    assert two.names[:4] + two.names[-6:] == [f"m{at}" for at in (*range(4), *range(22, 28))]
    assert "smart:m23" in three.names
    assert len(summarised([three])) == 1


def test_a_stage_before_that_injects_and_rewrites() -> None:
    """Other system messages and other wording at each call cost no round; what is summarised stays so."""
    conversation = chat(60)
    services = RecordedContext(ConversationIndex(conversation, COUNTER), Replying(lambda _: "ok"))
    view, plain = SMALL.start(services), sending(SMALL, conversation, Replying(lambda _: "ok"), *range(1, 61))
    for at in range(1, 61):
        facts = Message(f"facts:{at}", "system", f"{at}")
        copies = [Message(message.id, message.role, message.text) for message in conversation.messages[:at]]
        sent = view(Context(Messages.of((facts, *copies))))
        assert [message.id for message in sent.messages] == [facts.id, *plain[at - 1].names]
    assert len([event for event in services.drain()[0] if isinstance(event, Summarised)]) == len(summarised(plain))
    rest = Messages.of(conversation.messages)[44:]
    first, *others = view(Context(rest)).messages
    assert first.id.startswith("smart:")
    assert others == list(rest)[-len(others) :]
