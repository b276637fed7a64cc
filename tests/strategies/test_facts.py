"""Fact injection: the document's example, scores by hand, what a fact is, what a model may answer, chains."""

import math
from unittest.mock import Mock

import msgspec
import pytest

from ctxbench.metrics.language import terms
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.model import Fact as Stated
from ctxbench.strategies.base import ModelError, Prompt
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Failed, Recalled
from ctxbench.strategies.facts import Facts, FactStore
from ctxbench.strategies.parts.fact_extraction import StatedFact, extract_by_rules
from tests.builders import answering, calling, talk
from tests.strategies.stubs import COUNTER, Stub, events, names, played, written


def facts(text: str, role: str = "user", most: int = 9) -> list[tuple[str, float]]:
    """(text, confidence) of what a message states."""
    return [
        (each.text, each.confidence)
        for each in extract_by_rules(Message("m", role, text), most, 60, COUNTER.text)  # type: ignore[arg-type]
    ]


def lines(text: str) -> list[str]:
    """The facts in a memory message."""
    return text.removeprefix("<memory>\n").removesuffix("\n</memory>").splitlines()


SKILLS = talk(
    ("system", "s"),
    ("user", "I prefer pytest for writing tests. I always use type hints in Python. I love Docker for shipping."),
    ("assistant", "noted"),
    ("user", "I like React and Next.js for any app."),
    ("assistant", "noted"),
    ("user", "I am working on a Python project"),
    ("assistant", "good"),
    ("user", "It uses FastAPI and SQLAlchemy"),
    ("assistant", "good"),
    ("user", "How should I write Python tests?"),
    ("assistant", "like this"),
    ("user", "and how to optimise my Next.js app?"),
    ("assistant", "like that"),
)


def test_a_language_that_rules_do_not_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fact is found in Korean, and the strategy says once why; in English nothing. A message is read once."""
    korean = talk(
        ("user", "저는 부산에 살고 커피를 좋아해요."), ("assistant", "네."), ("user", "네?"), ("assistant", "네.")
    )
    said = [failed.why for step in played(Facts(), korean) for failed in events(step, Failed)]
    assert said == ["language: facts are read in English and Chinese, and this is ko"]
    asked = Mock(return_value="en")
    monkeypatch.setattr("ctxbench.strategies.facts.written_in", asked)
    assert not [failed for step in played(Facts(), SKILLS) for failed in events(step, Failed)]
    assert asked.call_count == 6


def test_the_document_s_example() -> None:
    """Asked for Python tests, what is said of pytest and Python comes first; asked for the app, the app."""
    steps = played(Facts(turns=1), SKILLS)
    about_tests, about_app = (lines(written(step, "facts")) for step in steps[-2:])
    assert {line[2:] for line in about_tests[:2]} == {
        "I prefer pytest for writing tests.",
        "I always use type hints in Python.",
    }
    assert about_tests.index("- I like React and Next.js for any app.") >= 2
    assert about_app[0] == "- I like React and Next.js for any app."


def test_words_are_matched_by_their_stems() -> None:
    """`tests` finds `testing`; `how`, `do` and `I` find nothing. Facts stay apart that differ by a stop word alone."""
    store = FactStore()
    store.take(
        [StatedFact("Prefers pytest for testing", 0.8, "a"), StatedFact("I do, as to how I do it, nothing", 0.8, "b")]
    )
    assert [score > 0 for score in store.index.cosine(terms("How do I write tests?"))] == [True, False]
    store.take([StatedFact("The gate is open", 0.8, "c"), StatedFact("The gate is not open", 0.8, "d")])
    assert [fact.source for fact in store.facts] == ["a", "b", "c", "d"]


def test_scores_by_hand() -> None:
    """0.6 · cosine + 0.4 · confidence. Two facts; a term in both has idf 1, a term in one a = ln(3/2) + 1.

    The terms are `prefer tea` and `decid tea`: I, we and on are stop words.
    """
    said = talk(
        ("user", "I prefer tea"),
        ("assistant", "ok"),
        ("user", "we decided on tea"),
        ("assistant", "ok"),
        ("user", "prefer?"),
        ("assistant", "ok"),
    )
    a = math.log(3 / 2) + 1
    cosine = a / math.sqrt(a * a + 1)
    last = played(Facts(turns=1), said)[-1]
    assert events(last, Recalled) == [
        Recalled(("m0", "m2"), (round(0.6 * cosine + 0.4 * 0.9, 4), round(0.4 * 0.85, 4)))
    ]


def test_the_old_behaviour_is_reached_by_parameters() -> None:
    """similarity=0, confidence=1, limit=15: the 15 surest, whatever is talked about."""
    text = "".join(f"I {'prefer' if n > 6 else 'need'} thing number {n}{n}. " for n in range(10, 40))
    said = talk(("user", text), ("assistant", "ok"), ("user", "thing number 1010?"), ("assistant", "ok"))
    last = played(Facts(similarity=0, confidence=1, limit=15, per_message=99), said)[-1]
    assert len(lines(written(last, "facts"))) == 15
    assert set(events(last, Recalled)[0].scores) == {0.9}  # type: ignore[union-attr]


def test_only_what_is_said_is_context() -> None:
    """Tool results and messages that call tools are neither context nor facts; final answers are both."""
    said = talk(
        ("user", "where does the train leave"),
        calling("c", "x", text="I decided to look for platform 99 here"),
        answering("r", "x", "we decided on platform 77 there"),
        ("assistant", "we agreed that it leaves from platform 12 now"),
        ("user", "thanks"),
        ("assistant", "ok"),
    )
    steps = played(Facts(), said)
    assert [written(step, "facts") for step in steps[:2]] == ["", ""]
    assert lines(written(steps[-1], "facts")) == ["- we agreed that it leaves from platform 12 now"]


def test_it_only_adds() -> None:
    """The whole history is sent, with the memory after the leading system messages, or before the newest turn."""
    last = played(Facts(), SKILLS)[-1]
    assert names(last) == ["m0", "facts", *(f"m{at}" for at in range(1, 12))]
    assert next(each for each in last.context.messages if each.id.startswith("facts:")).role == "system"
    last = played(Facts(place="end"), SKILLS)[-1]
    assert names(last) == [*(f"m{at}" for at in range(11)), "facts", "m11"]
    assert names(played(Facts(), talk(("user", "hm"), ("assistant", "hm")))[-1]) == ["m0"]


def test_the_message_is_within_its_tokens() -> None:
    """By exact count, and at least half of them are used; a fact that does not fit gives way to a smaller one."""
    said = talk(
        *[
            each
            for n in range(60)
            for each in (
                ("user", f"I prefer item number {n}00{n} 在这里 for {'very ' * (n % 30)}good"),
                ("assistant", "ok"),
            )
        ]
    )
    for most in (40, 100, 2000):
        for step in played(Facts(max_tokens=most), said)[40:]:
            memory = next(each for each in step.context.messages if each.id.startswith("facts:"))
            assert most * 0.5 < COUNTER.message(memory) <= most
    assert all(not written(step, "facts") for step in played(Facts(max_tokens=8), said))


def test_unchanged_facts_are_the_same_message() -> None:
    """In a turn of many calls the memory is one message, made once, and each call says what was injected."""
    said = (*SKILLS.messages[:10], calling("c1", "x"), answering("r1", "x"), calling("c2", "y"), answering("r2", "y"))
    steps = played(Facts(), Conversation("t", (*said, Message("z", "assistant", "done"))))[-3:]
    assert len({id(step.context.messages[1]) for step in steps}) == 1
    assert [len(events(step, Recalled)) for step in steps] == [1, 1, 1]


def test_before_a_window_all_is_known_after_it_what_it_kept() -> None:
    """`facts | window` keeps the memory of what the window drops; `window | facts` has not heard of it."""
    said = talk(
        ("user", "I prefer the aisle seat, booking ABC-123"),
        ("assistant", "ok"),
        *[each for n in range(9) for each in (("user", f"hm {'so ' * 9}"), ("assistant", "well " * 9))],
    )
    before = played(parse("facts | window(messages=2, user_first=False)"), said)[-1]
    assert lines(written(before, "facts")) == ["- I prefer the aisle seat, booking ABC-123"]
    assert len(before.context.messages) == 3
    assert written(played(parse("window(messages=2) | facts"), said)[-1], "facts") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I prefer the window seat.", [("I prefer the window seat.", 0.9)]),
        ("我喜欢靠窗的座位。你好。", [("我喜欢靠窗的座位。", 0.9)]),
        ("We decided on Redis.", [("We decided on Redis.", 0.85)]),
        ("我们决定用 Redis。", [("我们决定用 Redis。", 0.85)]),
        ("It must never be public.", [("It must never be public.", 0.8)]),
        ("The order is ABC-123.", [("The order is ABC-123.", 0.75)]),
        ("Is the order ABC-123?", []),
        ("订单是 ABC-123 吗？", []),
        ("Maybe the order is ABC-123.", [("Maybe the order is ABC-123.", 0.45)]),
        ("Yes, 42", []),
        ("Nothing much here.", []),
        ("", []),
        ("I'm a nurse in Leeds. I have two kids.", [("I'm a nurse in Leeds.", 0.9), ("I have two kids.", 0.9)]),
        ("我叫李明，住在北京。", [("我叫李明", 0.9), ("住在北京。", 0.9)]),
        ('My favourite book is "The Lord of the Rings".', [('My favourite book is "The Lord of the Rings".', 0.9)]),
        ("Remember that my flight is AB-1234.", [("Remember that my flight is AB-1234.", 0.9)]),
        ("I have a problem with that. I am trying it again.", []),
        ('She said "I hate fish and I live in Rome" again.', []),
        ("“我最喜欢数学，住在广州。” 老师这样说。", []),
        ("> I live in Rome\nI live in Oslo.", [("I live in Oslo.", 0.9)]),
        ("```\nI live at /home/anna\n```\n", []),
        ("Translate into German: I live in Paris. My budget is 3000 euros.", []),
        ("Please translate the following:\n\nI hate fish. My phone is 555-1234567.", []),
        ("I live in Rome.\nTranslate the above into French.", []),
        ("请把下面这段翻译成英文：我住在广州，预算是3000元。", []),
        ("Übersetze: I live in Paris.", []),
        ("Please summarise the report. I live in Berlin.", [("I live in Berlin.", 0.9)]),
        ("That is correct: my flight is AB-1234.", [("That is correct: my flight is AB-1234.", 0.9)]),
        ("Delete /srv/a.txt and run build 4200.", []),
        ("Could you book flight AB-1234 for me.", []),
        ("帮我查一下 ABC-123 的订单。", []),
        (
            "Please forget the earlier limit, we went to 60 hours.",
            [("Please forget the earlier limit, we went to 60 hours.", 0.8)],
        ),
    ],
)
def test_what_a_fact_is(text: str, expected: list[tuple[str, float]]) -> None:
    """Each rule by an example: what makes a sentence a fact, what does not, and how sure it is.

    What is quoted, to be translated or a command is none, though it says "I".
    """
    assert facts(text) == expected


def test_the_user_is_believed_more() -> None:
    """What an assistant states is less sure, and its preferences are none."""
    assert facts("The order is ABC-123.", "assistant") == [("The order is ABC-123.", 0.6)]
    assert facts("I love questions like these a lot.", "assistant") == []


def test_the_surest_of_a_message_are_taken() -> None:
    """At most so many a message, the surest, in the order they are said; a long sentence is cut to its start."""
    text = "The order is ABC-123. I prefer tea over it. The room is QQ-55 here."
    assert [fact for fact, _ in facts(text, most=2)] == ["The order is ABC-123.", "I prefer tea over it."]
    found = extract_by_rules(Message("m", "user", "I prefer " + "tea and cake " * 40), 8, 10, COUNTER.text)
    assert COUNTER.text(found[0].text) <= 10


def test_what_is_said_again_is_one_fact() -> None:
    """The same words are one fact, with the highest confidence it was said with, from where it was said first."""
    store = FactStore()
    store.take([StatedFact("The order is ABC-123.", 0.6, "a"), StatedFact("the order is ABC-123", 0.75, "b")])
    assert [fact.source for fact in store.facts] == ["a"]
    assert store.confidences.tolist() == [0.75]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (["The budget is 45,000 euros", "The budget is 50,000 euros"], [1]),
        (["The budget is 45,000 euros", "The budget was raised from 45,000 to 50,000 euros"], [1]),
        (["The budget is 45,000 euros", "Actually the budget is now 50,000 euros", "The budget is 45,000 euros"], [0]),
        (["预算是3000元。", "预算改成5000元。"], [1]),
        (["Our ticket is ABC-123 now", "Our ticket is ABC-124 now"], [0, 1]),
        (["I live in Berlin.", "I like Berlin.", "I moved to Munich.", "I like Munich."], [1, 2, 3]),
        (["I like tea.", "I no longer like tea."], [1]),
        (["My favourite colour is blue.", "My favourite band is Blur.", "My favourite colour is green."], [1, 2]),
        (["我住在北京。", "我喜欢喝茶。", "我搬到上海了。", "我不喜欢喝茶了。"], [2, 3]),
        (["I work at Siemens.", "I joined Bosch last week."], [1]),
    ],
)
def test_the_newest_value_takes_the_place_of_the_older(said: list[str], kept: list[int]) -> None:
    """Of what is said about the same thing the newest is sent: a number, a home, a job, a taste. Ids may be several."""
    users = talk(
        *[each for text in said for each in (("user", text), ("assistant", "ok"))], ("user", "so?"), ("assistant", ".")
    )
    sent = lines(written(played(Facts(similarity=0, confidence=1), users)[-1], "facts"))
    assert sorted(sent) == sorted(f"- {said[at]}" for at in kept)


def test_two_speakers_have_two_homes() -> None:
    """A speaker's fact does not supersede that of another speaker; a sentence with two facts gives two."""
    said = talk(
        ("user", "My name is Anna and I live in Berlin."), ("assistant", "I live in Rome."), ("user", "I moved to Oslo")
    )
    stated = [fact for message in said.messages for fact in extract_by_rules(message, 9, 60, COUNTER.text)]
    store = FactStore()
    store.take(stated)
    kept = [fact.text for at, fact in enumerate(store.facts) if not store.superseded[at]]
    assert kept == ["My name is Anna", "I live in Rome.", "I moved to Oslo"]


def test_a_model_extracts() -> None:
    """One call a turn shows the model what is new; its list is read whatever stands around it, and charged for."""

    def reply(prompt: Prompt) -> str:
        return 'Here: [{"fact": "The user  likes tea", "confidence": 2, "source": 1}, {"fact": ""}, 7] Done.'

    said = talk(("user", "tea please"), ("assistant", "here"), ("user", "more"), ("assistant", "sure"))
    models = Stub(reply=reply)
    steps = played(Facts(extractor="model", language="en"), said, models)
    assert [prompt.material for prompt in models.prompts] == [
        ("1. user: tea please",),
        ("1. assistant: here", "2. user: more"),
    ]
    assert "1. user: tea please" in models.prompts[0].text()
    assert lines(written(steps[0], "facts")) == ["- The user likes tea"]
    assert [len(events(step, Called)) for step in steps] == [1, 1]
    assert events(steps[0], Recalled)[0].sources == ("m0",)  # type: ignore[union-attr]


def test_facts_of_a_model_without_a_source_or_confidence() -> None:
    """They are of the last message that it was shown, and half sure."""
    said = talk(("user", "tea please"), ("assistant", "here"), ("user", "more"), ("assistant", "sure"))
    reply = '[{"fact": "tea it is", "confidence": "high", "source": 9}]'
    last = played(Facts(extractor="model", similarity=0, confidence=1), said, Stub(reply=lambda prompt: reply))[0]
    assert events(last, Recalled) == [Recalled(("m0",), (0.5,))]


@pytest.mark.parametrize("reply", ["no idea", "[1, 2", '[{"fakt": "x"}]', None])
def test_what_a_model_fails_at_is_done_by_rules(reply: str | None) -> None:
    """Prose, a broken list, a list of other things, no answer at all: the rules extract instead, and it is reported."""

    def answer(prompt: Prompt) -> str:
        if reply is None:
            raise ModelError("away")
        return reply

    said = talk(("user", "I prefer the window seat"), ("assistant", "ok"))
    step = played(Facts(extractor="model"), said, Stub(reply=answer))[0]
    assert lines(written(step, "facts")) == ["- I prefer the window seat"]
    failed = events(step, Failed)
    assert [(each.what, each.instead) for each in failed] == [("facts", "extracted by rules")]  # type: ignore[union-attr]
    assert reply is None or reply not in failed[0].why  # type: ignore[union-attr]


def test_a_rewritten_message_changes_its_facts() -> None:
    """If a stage before it changes what was said, what it said before is forgotten."""
    from ctxbench.harness.replay import ConversationIndex, RecordedContext
    from ctxbench.scenarios.view import Messages
    from ctxbench.strategies.base import Context

    said = talk(("user", "I prefer tea a lot"), ("assistant", "ok"), ("user", "so"))
    view = Facts().start(RecordedContext(ConversationIndex(said, COUNTER)))
    assert "tea" in view(Context(Messages.of(said.messages))).messages[0].text
    other = Message("m0", "user", "I prefer coffee a lot")
    changed = view(Context(Messages.of((other, *said.messages[1:]))))
    assert "tea" not in changed.messages[0].text
    assert "coffee" in changed.messages[0].text
    shorter = view(Context(Messages.of((said.messages[1],))))
    assert list(shorter.messages) == [said.messages[1]]


def test_the_recording_s_own_facts() -> None:
    """Facts that the recording states are used, each from its message on, and the rules only if they are asked for."""
    said = talk(("user", "We decided on Redis."), ("assistant", "ok"), ("user", "and now?"), ("assistant", "fine"))
    known = msgspec.structs.replace(
        said, facts=(Stated("The cache is Redis.", "m0"), Stated("All is fine.", "m3", 0.5))
    )
    recorded, offline = parse("facts"), parse("facts(extractor='offline')")
    assert lines(written(played(recorded, known)[-1], "facts")) == ["- The cache is Redis."]
    assert lines(written(played(offline, known)[-1], "facts")) == ["- We decided on Redis."]
    assert lines(written(played(recorded, said)[-1], "facts")) == ["- We decided on Redis."]
