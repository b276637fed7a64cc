"""The extractive reader: small contexts with the answer worked out by hand."""

from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.reading import UNKNOWN, ExtractiveReader, ReaderAnswer
from ctxbench.scenarios.model import Message, Role

MAY_8 = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
_ids = count()


def said(text: str, role: Role = "user", name: str = "", time: float | None = None) -> Message:
    return Message(f"m{next(_ids)}", role, text, name=name, time=time)


def ask(question: str, *messages: Message) -> ReaderAnswer:
    return ExtractiveReader().answer(messages, question)


NOISE = (
    said("What is on for lunch today? I was thinking of the noodle place."),
    said("The noodle place is open until nine.", "assistant"),
    said("Good. Let us talk about the printer later."),
)


@pytest.mark.parametrize(
    ("question", "says", "answer"),
    [
        ("When is the staging deploy?", "The staging deploy is on 14 March 2026.", "14 March 2026"),
        ("Who owns the staging deploy?", "The staging deploy is owned by Carol Meyer from now on.", "Carol Meyer"),
        ("How many tests passed after the fix?", "After the fix 209 tests passed in 36.6s.", "209"),
        ("What does the licence cost?", "The licence will cost €45,000 a year.", "€45,000"),
        ("Which error code has a lost lease?", "A lost lease has the error code LKG-1318.", "LKG-1318"),
        ("What is the phone number of the harbour branch?", "The harbour branch: 0561 374 2538.", "0561 374 2538"),
        ("Why was the batch size cut?", "The batch size was cut because the gate fails.", "the gate fails"),
        ("Is the cache enabled?", "The cache is not enabled.", "No"),
        ("服务器部署在哪里？", "服务器部署在北京机房。", "北京机房"),
        ("验光定在哪一天？", "验光定在 2025 年 7 月 14 日。", "2025 年 7 月 14 日"),
        ("合同的负责人是谁？", "合同的负责人是唐以墨。", "唐以墨"),
        ("`page_limit` 的默认值是多少？", "`page_limit` 的默认值是 120 条。", "120 条"),
        ("退款什么时候到账？", "退款9月17日到账。", "9月17日"),
    ],
)  # fmt: skip
def test_a_span_of_the_kind_that_is_asked_for_answers(question: str, says: str, answer: str) -> None:
    """A date for when, a name for who, a number for how many; and the message that it stands in."""
    right = said(says)
    found = ask(question, *NOISE, right, *NOISE)
    assert (found.text.strip(" 的"), found.support) == (answer, right.id)


def test_a_value_lines_below_the_name_is_found() -> None:
    """In a tool's JSON what a value belongs to stands above it, among the same fields of other things."""
    order = '{\n  "order": "AL-%s",\n  "carrier": "Swiftpost",\n  "tracking": "%s"\n}'
    shown = [said(order % pair, "tool") for pair in (("101", "KQ111"), ("102", "KQ222"), ("103", "KQ333"))]
    assert ask("What is the tracking number of order AL-102?", *shown).text == "KQ222"


def test_the_newest_statement_counts_unless_the_first_is_asked_for() -> None:
    """Of something that changed, the later value now, the earlier one at first; what was replaced is not the answer."""
    history = (
        said("The restore drill at Dunleigh takes place on 11 October 2025."),
        *NOISE,
        said("Change of plan: the restore drill at Dunleigh is on 21 October 2025 instead of 11 October 2025."),
    )
    assert ask("On which date is the restore drill at Dunleigh now?", *history).text == "21 October 2025"
    assert ask("On which date was the restore drill at Dunleigh at first?", *history).text == "11 October 2025"


def test_a_relative_time_is_counted_from_its_message() -> None:
    """What was said on 8 May to have been yesterday was on the 7th, whenever it is asked."""
    found = ask(
        "When did Ana go to the support group?", said("I went to a support group yesterday.", name="Ana", time=MAY_8)
    )
    assert found.text == "7 May 2023"


def test_an_event_without_a_time_happened_when_it_was_told() -> None:
    """The day of the message is the best guess where no time is in it."""
    assert (
        ask("When did Ana paint a sunrise?", said("Look, I painted a sunrise!", name="Ana", time=MAY_8)).text
        == "8 May 2023"
    )


def test_the_speaker_who_is_asked_about_goes_before_another() -> None:
    """Two people say the same kind of thing: the question names whose it is."""
    talk = (
        said("For the charity race I ran 10 miles.", name="Ana"),
        said("For the charity race I ran 4 miles.", "assistant", name="Bo"),
    )
    assert ask("How many miles did Ana run for the charity race?", *talk).text == "10 miles"
    assert ask("How many miles did Bo run for the charity race?", *talk).text == "4 miles"


@pytest.mark.parametrize(
    "question",
    [
        "Which colour does the company logo have?",
        "What is the default of `sso.session.restore_hours`?",
        "谁批准了新的停车场？",
        "When will the elevator inspection happen?",
    ],
)
def test_what_nobody_said_is_unknown(question: str) -> None:
    """Words in passing do not make an answer, nor does a default of another setting."""
    history = (*NOISE, said("The default of `imports.batch_size` is 1000 records.", "assistant"))
    found = ask(question, *history)
    assert (found.text, found.support) == (UNKNOWN, "")


def test_a_question_in_another_language_finds_what_it_names() -> None:
    """An identifier is the same in every language; without one nothing is found."""
    history = (said("`page_limit` is 120 rows since May."), *NOISE)
    assert "120" in ask("`page_limit` 是多少？", *history).text
    assert ask("打印机什么时候修好？", *history).text == UNKNOWN


def test_the_same_context_has_the_same_answer_whatever_was_read_before() -> None:
    """A reader remembers texts, and never lets one context weigh in another."""
    fresh = ExtractiveReader().answer(NOISE, "Until when is the noodle place open?")
    reader = ExtractiveReader()
    for each in (NOISE[:1], [said("The noodle place is closed on 1 May 2024.")], NOISE[::-1]):
        reader.answer(each, "Until when is the noodle place open?")
    assert reader.answer(NOISE, "Until when is the noodle place open?") == fresh


@given(st.lists(st.text(max_size=80), max_size=6), st.text(max_size=40))
def test_any_text_is_read(texts: list[str], question: str) -> None:
    """No text breaks it; an answer stands in the message that it names, or is worked out from its time."""
    messages = [Message(f"m{at}", "user", text) for at, text in enumerate(texts)]
    found = ExtractiveReader().answer(messages, question)
    by = {message.id: message.text for message in messages}
    assert found.text == UNKNOWN or found.text in by[found.support] or found.text in ("Yes", "No", "是", "否")


def test_a_quote_is_read_as_its_speakers_on_its_day() -> None:
    """A memory that says who said it and when answers like the message itself: by speaker, and for relative times."""
    memories = said(
        "[Relevant memories]\n"
        "- [2023-05-08 13:56] Caroline: I adopted a dog called Rex yesterday.\n"
        "- [fact] [2023-06-09 10:00] Melanie: I adopted a dog called Bo yesterday.\nIt sleeps a lot.",
        "system",
    )
    assert ask("When did Caroline adopt a dog?", memories).text == "7 May 2023"
    assert ask("When did Melanie adopt a dog?", memories).text == "8 June 2023"
    assert ask("When did Melanie adopt a dog?", memories).support == memories.id
