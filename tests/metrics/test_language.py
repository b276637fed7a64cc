"""Sentences and words of English, Chinese and mixed text."""

import tomllib
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.language import language_of, sentences, terms, unread, words, written_in
from ctxbench.metrics.tfidf import TfIdf, best
from ctxbench.strategies.tiers.rag.postings import Bm25


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. We left!  Why?", ["It rained.", "We left!", "Why?"]),
        ("Dr. Smith paid $3.50 to J. R. Doe. He left.", ["Dr. Smith paid $3.50 to J. R. Doe.", "He left."]),
        ("We met at 5 p.m. Then we ate, e.g. soup.", ["We met at 5 p.m.", "Then we ate, e.g. soup."]),
        ("So do I. You too.", ["So do I.", "You too."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("See version 1.2.3 of foo.py today.", ["See version 1.2.3 of foo.py today."]),
        ("我们用方案A。真的吗？！他说“好。”走了……", ["我们用方案A。", "真的吗？！", "他说“好。”", "走了……"]),
        ("价格是3.5元；数量是2。", ["价格是3.5元；", "数量是2。"]),
        ("1. First one.\n2. Second one.\n- a third", ["1. First one.", "2. Second one.", "- a third"]),
        (
            "Look:\n```python\nx = 1. + y  # so. Yes.\n```\nDone. Good.",
            ["Look:", "x = 1. + y  # so. Yes.", "Done.", "Good."],
        ),
        ("    return a. b\n{'a': 'B. C'}", ["return a. b", "{'a': 'B. C'}"]),
        ("", []),
        (" \n\t\n", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    """Sentences end where a reader would end them: not at abbreviations, initials, decimals, list numbers, in code."""
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't use user_id ABC-123!", ["don't", "use", "user_id", "abc", "123"]),
        ("45,000 at 12:30, 3.5%", ["45,000", "at", "12:30", "3.5"]),
        ("naïve Café", ["naïve", "café"]),
        ("我们决定把服务器部署在北京", ["我们", "决定", "把", "服务器", "部署", "在", "北京"]),
        ("用Python写API", ["用", "python", "写", "api"]),
        ("约翰・史密斯说好ー", ["约翰", "史密斯", "说好", "ー"]),
        ("用カメラ记录，数据库在北京", ["用カ", "カメ", "メラ", "ラ记", "记录", "数据库", "在", "北京"]),
        (
            "我们决定把新的カメラ部署在北京的机房",
            [*words("我们决定把新的"), "カメ", "メラ", *words("部署在北京的机房")],
        ),
        ("予約番号：八\nかさとかばん", ["予約", "約番", "番号", "八", "かさ", "さと", "とか", "かば", "ばん"]),
        ("。，…!?", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """Words are lower case and bare of punctuation; Chinese is segmented, also beside English or kana."""
    assert list(words(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do I write the tests, testing?", ["write", "test", "test"]),
        ("The bookings were booked by us", ["book", "book"]),
        ("And what about the other one?", ["one"]),
        ("Order ABC-123 of 45,000 at naïve Cafés", ["order", "abc", "123", "45,000", "naïve", "cafés"]),
        ("请问我们什么时候出发去北京", ["请问", "时候", "出发", "去", "北京"]),
        ("用Python写tests的API", ["用", "python", "写", "test", "api"]),
        ("", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    """Terms are stems of words, in order and with repetitions; stop words of both languages are none."""
    assert list(terms(text)) == expected


@given(st.text("ab_Z09.,:'’ \n-é€·–ß٣²かア한", max_size=20))
def test_words_of_other_languages_are_the_same_beside_chinese(text: str) -> None:
    """Text without Chinese goes another way than mixed text, and has the same words."""
    assert [*words(text), "世界"] == list(words(f"{text} 世界"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "en"),
        ("", "en"),
        ("naïve – 12", "en"),
        ("你好", "zh"),
        ("请运行 pytest tests/foo.py", "zh"),
        ("The word 你好 means hello there", "en"),
    ],
)
def test_language_of(text: str, expected: str) -> None:
    """A Chinese sentence with a command in it is Chinese, an English one that quotes a Chinese word English."""
    assert language_of(text) == expected


@given(st.text(alphabet="aB1.!?。；…“”() \n\t-*`你好3", max_size=80))
def test_sentences_lose_nothing(text: str) -> None:
    """All characters but white space and the fences of code are in the sentences, in order, and none is empty."""
    found = sentences(text)
    assert all(each == each.strip() != "" for each in found)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("```")]
    assert "".join("".join(found).split()) == "".join("".join(lines).split())


@pytest.mark.parametrize(
    "piece", ["a", "1.", "1,", "!", ". ", "A. ", "你", "。", "。”", "a.b ", "(", " ", "x'", "e.g. "]
)
def test_long_lines_take_linear_time(piece: str) -> None:
    """A megabyte of anything in one line is split in seconds."""
    text = piece * (1_000_000 // len(piece)) + "a"
    began = perf_counter()
    sentences(text)
    words(text)
    language_of(text)
    assert perf_counter() - began < 10


@pytest.mark.parametrize("language", ["ja", "ko", "zh"])
def test_search_finds_what_was_said(language: str) -> None:
    """Of all statements the first that is found is the one asked about, whatever the question."""
    cases = tomllib.loads(Path(__file__).with_name("search_cases.toml").read_text("utf-8"))
    said = [statement for statement, _ in cases[language]] + cases["others"][language]
    by_cosine, by_words = TfIdf(), Bm25()
    by_cosine.add(map(terms, said))
    for statement in said:
        by_words.add(statement)
    for number, (_, question) in enumerate(cases[language]):
        assert list(best(by_cosine.cosine(terms(question)), 1)) == [number]
        assert by_words.search(question, 1).numbers.tolist() == [number]


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["어디에 살아요?"], "ko"),
        (["どこに住んでいますか。", "OK", "はい"], "ja"),
        (["Wo ist der Schlüssel?", "Er ist in dem Büro."], "de"),
        (["Wo ist der Schlüssel?"], ""),
        (["Where is the key?", "Wo ist der Schlüssel?", "It is in the office."], ""),
        (["钥匙在哪里？", "ありがとう"], ""),
        (["约翰・史密斯是谁？", "好ー"], ""),
        (["OK", ""], ""),
    ],
)
def test_languages_that_rules_do_not_read(texts: list[str], code: str) -> None:
    """Scripts tell at once, words of grammar in two texts; English, Chinese, and what has no language, may be read."""
    assert unread(map(written_in, texts)) == code
