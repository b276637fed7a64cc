"""What an answer asserts: an accepted answer that is past, doubted, denied or taken back there is not right."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.grading.rules import RulesGrader
from tests.metrics.grading.wrong_answers import OTHERS, SEEN, accepted, doubted, from_locomo


def grade(question: str, gold: str, candidate: str, exact_dates: bool = False) -> Grade:
    [grade] = RulesGrader().grade([GradedItem("x", question, (gold,), candidate, exact_dates=exact_dates)])
    return grade if isinstance(grade, Grade) else Grade(False, 0.0, f"ungraded: {grade.detail}")


GOLDS = (
    ("Who repaired the bell?", "Mette Holm", "Lars Berg"),
    ("When did the ferry open?", "8 May 2023", "14 June 2021"),
    ("How many boats are there?", "42", "17"),
    ("What does she play?", "the grand piano", "a small drum"),
    ("Which ticket is it?", "RF-110902", "QX-554321"),
    ("谁负责采购？", "王芳", "李强"),
    ("会议在哪一天？", "3月5日", "7月9日"),
)
"""Questions of several forms, each with its answer and another one."""


@pytest.mark.parametrize(("question", "gold", "other"), GOLDS, ids=[gold for _, gold, _ in GOLDS])
@pytest.mark.parametrize("wording", [wording for _, wording in SEEN])
def test_a_gold_that_is_not_asserted_is_wrong(question: str, gold: str, other: str, wording: str) -> None:
    """Every attack of the list, in both languages, on names, dates, numbers, phrases and codes."""
    assert not grade(question, gold, wording.format(gold=gold, other=other)).correct


TURNED = (
    "Formerly {other}, now {gold}.",
    "I used to think {other}. Now I know it is {gold}.",
    "Not sure, maybe {other}. Final answer: {gold}",
    "{other}. No, wait: {gold}.",
    "Not {other} but {gold}.",
    "{gold} ({other} is wrong)",
    "{gold} instead of {other}.",
    "It is {gold}, I think.",
    "Probably {gold}.",
    "以前是{other}，现在是{gold}。",
    "不是{other}，而是{gold}。",
    "{other}。不对，应该是{gold}。",
    "{gold}，不是{other}。",
)


@pytest.mark.parametrize(("question", "gold", "other"), GOLDS, ids=[gold for _, gold, _ in GOLDS])
@pytest.mark.parametrize("wording", TURNED)
def test_the_answer_that_is_kept_is_right(question: str, gold: str, other: str, wording: str) -> None:
    """The same sentences with the accepted answer where it is asserted: now, in the end, after all."""
    assert grade(question, gold, wording.format(gold=gold, other=other)).correct


@pytest.mark.parametrize(
    ("question", "gold", "candidate"),
    [
        ("Where did she live before the move?", "Oslo", "Formerly Oslo, now Bergen."),
        ("What was the ship originally called?", "Vega", "It was originally called Vega and was later renamed Nord."),
        ("What is the ground floor for?", "a bakery", "The rooms there are known as a bakery or bread shop."),
        ("Which fee rose?", "the harbour fee", "Not only the harbour fee, as many had feared."),
        ("Whose sister came?", "Ann", "Ann's sister came."),
        ("Who wrote the play?", "Ibsen", "It is known as Ibsen's best play."),
        ("When did it close?", "1995", "It was open from 1990 until it closed in 1995."),
        ("Which town has no station?", "Moss", "Moss has no station."),
        ("What did he say he won't do?", "quit", "He said that he won't quit."),
        ("Who is Jill?", "Most likely John's partner", "Jill is John's partner."),
        ("Who was the former mayor?", "Ann", "Ann was the mayor at first, and now Bo is."),
        ("原来的负责人是谁？", "王芳", "原来是王芳，后来换成了李强。"),
        ("她最喜欢什么？", "弹钢琴", "她不仅喜欢弹钢琴，还喜欢画画。"),
    ],
)
def test_words_that_only_look_like_doubt(question: str, gold: str, candidate: str) -> None:
    """The past that is asked for, a second name of one thing, "not only", "used to" with a purpose, "or more"."""
    assert grade(question, gold, candidate).correct


@pytest.mark.parametrize(
    ("question", "gold", "candidate"),
    [
        (
            "When did Virgin Australia (formerly Virgin Blue) begin?",
            "November 1999",
            "Formerly November 1999, now May 2001.",
        ),
        (
            "When did he visit with a former friend?",
            "October 24, 2023",
            "Previously October 24, 2023. Currently May 2, 2024.",
        ),
        ("Who sings Don't Let Me Down?", "The Chainsmokers", "Not The Chainsmokers but Coldplay."),
        ("Who plays Frankie's sister?", "Talia Shire", "Most likely Talia Shire's sister"),
        ("秦川出售哪种自制的东西？", "无花果酱", "不是无花果酱，而是蜂蜜。"),
    ],
)
def test_words_of_the_question_that_ask_for_nothing(question: str, gold: str, candidate: str) -> None:
    """A past in brackets, a former friend, "don't" in a title, a sister in the question and 无花果 excuse nothing."""
    assert not grade(question, gold, candidate).correct


WORDS = "Oslo the harbour opened in 2021 and Bergen not or then 42 Mette now was"


@given(st.sampled_from(GOLDS), st.lists(st.sampled_from(WORDS.split()), max_size=8), st.sampled_from(range(4)))
def test_a_denial_turns_no_wrong_answer_right(gold: tuple[str, str, str], words: list[str], form: int) -> None:
    """Whatever was answered: to deny the accepted answer besides does not make it right."""
    question, accepted_answer, _ = gold
    candidate = " ".join(words)
    if any(map(str.isalnum, candidate)) and not grade(question, accepted_answer, candidate).correct:
        denial = (
            f"It is not {accepted_answer}.",
            f"{accepted_answer} is wrong.",
            f"Anything but {accepted_answer}.",
            f"不是{accepted_answer}。",
        )[form]
        assert not grade(question, accepted_answer, f"{candidate}. {denial}").correct


def test_wrong_answers_in_other_wordings_are_seldom_accepted(recordings: Path) -> None:
    """At most 2 % in English and in Chinese in wordings beside those of the attacks; of the attacks at most 1 %.

    What stays offers only words of the accepted answer, or what cannot be an answer to the question.
    """
    sizes, taken, _ = accepted([*doubted(recordings, OTHERS, "others"), *doubted(recordings, SEEN, "seen")])
    for kind in {kind for kind, _ in sizes}:
        of_kind = sum(taken[kind, at] for at in (0, 1)) / sum(sizes[kind, at] for at in (0, 1))
        assert of_kind <= (0.02 if kind.startswith("others") else 0.01), (kind, of_kind)


def test_other_days_and_vague_ones_are_seldom_accepted(recordings: Path) -> None:
    """Of LoCoMo's probes: other answers of the same conversation at most 4 %, days nearby and vague dates none."""
    sizes, taken, _ = accepted(from_locomo(recordings))
    specific = [kind for kind, _ in sizes if kind.startswith("specific")]
    assert sum(taken[kind, at] for kind in set(specific) for at in (0, 1)) <= 0.04 * sum(
        sizes[kind, at] for kind in set(specific) for at in (0, 1)
    )
    assert not any(taken[kind, at] for kind in ("vague", "day nearby") for at in (0, 1))
