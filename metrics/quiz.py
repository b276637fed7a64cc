"""Questions made by rules from what users said and tools returned, so that any recording can be asked what it said.

A question asks for one thing that stands in one message: a value of a JSON result, a setting or signature in a file, an
error, a count of tests, what a command printed, a value, preference or decision that the user stated. It is asked
at least `AGE` messages later, and only while its answer, matched as `SentText.says` does, stands in no other message,
and nothing else in the history could answer it. Templates and patterns are in `data/quiz.toml`. The same recording
always gives the same questions; docs/quality.md has the rubric that samples of them were judged by.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.scenarios.secrets import has_secret

from .grounding import said
from .language import language_of, sentences, word_lists, words
from .values import exact_values, places

MADE = "made: "
"""Start of the category of a question that was made, before its kind."""
MOST, OF_KIND, OF_ONE = 12, 4, 3  # questions of a conversation, of one kind, and about one message, at most
AGE = 6  # messages that a question lies behind its answer, at least
AGES = {"recent": AGE, "older": 20, "old": 60}
"""Least age of the questions that are called so, in messages."""
GAP = "____"
CALL, TYPED, SENTENCE = 160, 1_500, 220  # characters of a quoted call, a typed message and a quoted sentence, at most
LEAST = 6  # words of a sentence with its gap, at least
LAST = 3  # lines that may follow the error that a command ended with


class Draft(NamedTuple):
    """A question about one message, without its place."""

    kind: str
    at: int  # place of the message that has the answer
    question: str
    answer: str
    mark: str = ""  # text that might give another answer wherever else it stands


def age_of(messages: int) -> str:
    """Return what a question is called that lies so many messages behind its answer."""
    return [name for name, least in AGES.items() if messages >= least][-1]


def quiz(conversation: Conversation) -> tuple[Probe, ...]:
    """Return the questions that a conversation is asked, in the order of their places, balanced by kind and age."""
    messages = conversation.messages
    drafts = [
        draft
        for draft in _drafts(conversation)
        if draft.answer.casefold() not in draft.question.casefold() and not has_secret(draft.question + draft.answer)
    ]
    if not drafts:
        return ()
    wanted = [(text.casefold(),) if text else () for draft in drafts for text in (draft.answer, draft.mark)]
    standing = defaultdict[int, list[int]](list)
    for number, at in zip(*places(wanted, [said(message).casefold() for message in messages]), strict=True):
        standing[int(number)].append(int(at))
    answers = Counter(question for question, _ in {(draft.question, draft.answer) for draft in drafts})
    stops, pool = _stops(messages), []
    for number, draft in enumerate(drafts):
        own, marks = standing[2 * number], standing[2 * number + 1] or [draft.at]
        if own[:1] == marks[:1] == [draft.at] and answers[draft.question] == 1:
            until = min([*own[1:2], *marks[1:2], len(messages)])
            pool += [(stop, draft) for stop in stops if draft.at + AGE <= stop <= until]
    return tuple(
        Probe(
            f"made{number}",
            draft.question,
            (draft.answer,),
            (messages[draft.at].id,),
            MADE + draft.kind,
            messages[stop - 1].id,
        )
        for number, (stop, draft) in enumerate(sorted(_balanced(pool)), 1)
    )


def _stops(messages: Sequence[Message]) -> list[int]:
    """Return where questions are asked: about each quarter of the messages, where no call is without its result."""
    ends, waiting = [], set[str]()
    for at, message in enumerate(messages, 1):
        waiting |= {call.id for call in message.calls}
        waiting.discard(message.answers or "")
        if not waiting and message.role in ("assistant", "tool"):
            ends.append(at)
    quarters = [len(messages) * quarter / 4 for quarter in (1, 2, 3, 4)] if ends else []
    return sorted({min(ends, key=lambda end: abs(end - quarter)) for quarter in quarters})


def _balanced(pool: list[tuple[int, Draft]]) -> Iterator[tuple[int, Draft]]:
    """Yield questions with their places: each time one of the kind, message, age and place that there are fewest of."""
    taken: Counter[object] = Counter()

    def traits(pair: tuple[int, Draft]) -> tuple[object, ...]:
        stop, draft = pair
        return draft.kind, draft.at, age_of(stop - draft.at), f"place {stop}"

    # By digest, so that chance decides among equals: always the same chance.
    pool = sorted(pool, key=lambda pair: blake2b(f"{pair[1].question}{pair[1].answer}".encode()).digest())
    while pool and taken.total() < MOST * len(traits(pool[0])):
        stop, draft = min(pool, key=lambda pair: [taken[trait] for trait in traits(pair)])
        yield stop, draft
        taken.update(traits((stop, draft)))
        pool = [
            (place, other)
            for place, other in pool
            if other.question != draft.question
            and other.answer != draft.answer
            and taken[other.kind] < OF_KIND
            and taken[other.at] < OF_ONE
        ]


@cache
def _data() -> dict[str, Any]:
    data = word_lists(__package__, "quiz")
    for rule in data["rules"]:
        rule["pattern"] = re.compile(rule["pattern"], re.MULTILINE)
    return data


def _drafts(conversation: Conversation) -> Iterator[Draft]:
    typed = [
        message.text
        if message.role == "user" and len(message.text) <= TYPED and message.text.lstrip()[:1] not in ("<", "[", "{")
        else ""
        for message in conversation.messages
    ]
    language = conversation.language or language_of("\n".join(typed))
    templates = _data()["questions"]["zh" if language == "zh" else "en"]
    calls, quoted = dict[str, ToolCall](), list[tuple[str, str] | None]()
    for message in conversation.messages:
        calls.update((call.id, call) for call in message.calls)
        quoted.append(_quoted(calls[message.answers]) if message.answers in calls else None)
    times = Counter(quoted)
    for at, (message, call, text) in enumerate(zip(conversation.messages, quoted, typed, strict=True)):
        # A call that was made again may have had another result.
        if call is not None and (call[0] == "file" or times[call] == 1):
            source = templates[call[0]].format(call=call[1])
            for kind, key, answer, mark in _told(*call, message.text):
                yield Draft(kind, at, templates[kind].format(key=key, call=call[1], source=source), answer, mark)
        for sentence in sentences(text):
            for kind, start, stop in _stated(sentence):
                key = f"{sentence[:start]}{GAP}{sentence[stop:]}"
                if len(words(key)) >= LEAST and not re.search(_data()["no_gap"], key):
                    yield Draft(kind, at, templates["said"].format(key=key, gap=GAP), sentence[start:stop])
                    break  # two gaps in one sentence would ask for the same


def _quoted(call: ToolCall) -> tuple[str, str] | None:
    """Return how a question quotes a call: a command, the file that is shown, or the tool with its arguments."""
    names, arguments = _data()["arguments"], dict[str, Any]()
    with suppress(msgspec.DecodeError):
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    command, path = (
        next((arguments[name] for name in names[kind] if isinstance(arguments.get(name), str)), "").strip()
        for kind in ("command", "path")
    )
    shows = command == "view" or (not command and re.search(names["shows"], call.name.lower()))
    kind, text = ("file", path) if path and shows else ("command", command)
    if not text:
        others = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in arguments.items())
        kind, text = "call", f"{call.name}({', '.join(others)})"
    fits = len(text) <= CALL and "\n" not in text and text not in names["edits"]
    return (kind, text) if fits and not re.search(_data()["dull_tools"], call.name) else None


def _told(kind: str, call: str, text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield what a result tells: the kind of question, what it asks about, the answer and the mark."""
    body = re.sub(
        "|".join(_data()["frames"]), "", text.replace("\r", "").removeprefix(call), flags=re.MULTILINE
    ).strip()
    if body[:1] == "{":
        with suppress(msgspec.DecodeError):
            yield from _values(msgspec.json.decode(body))
            return
    plain = re.sub(_data()["numbering"], "", body, flags=re.MULTILINE)
    for rule in _data()["rules"]:
        only = rule.get("only")  # `line`: the result is nothing but this line; `last`: its last match alone counts
        if kind not in rule["of"] or not re.search(rule.get("call", ""), call) or (only == "line" and "\n" in body):
            continue
        matches = list(rule["pattern"].finditer(body if only else plain))
        groups = [match.groupdict("") for match in matches]
        keys = Counter(group.get("key") for group in groups)
        for match, group in list(zip(matches, groups, strict=True))[-1:] if only else zip(matches, groups, strict=True):
            answer = next(filter(None, (group.get(name, "").strip() for name in ("answer", "answer2", "answer3"))), "")
            is_last = body[match.end() :].strip().count("\n") < LAST
            is_one = is_last if only else keys[group.get("key")] == 1
            if answer and is_one and plain.count(group.get("mark", answer)) <= 1:
                yield rule["kind"], group.get("key", ""), answer, group.get("mark", "")
        if only and matches:  # an error is no other output
            return


def _values(value: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield the values of a JSON object that a key, or a path of keys, names alone."""
    for key, inner in value.items():
        name = f"{path}{key}"
        if isinstance(inner, dict):
            yield from _values(inner, f"{name}.")
        elif isinstance(inner, str | int | float) and not isinstance(inner, bool):
            text = str(inner)
            if 1 < len(text) <= SENTENCE // 4 and "\n" not in text and not re.search(_data()["dull_keys"], name):
                yield "value", name, text, ""


def _stated(sentence: str) -> Iterator[tuple[str, int, int]]:
    """Yield what a user states in a sentence: the kind of question, and where the answer stands."""
    data = _data()
    is_prose = sentence[0].isalpha() and sentence[-1] in ".!?。！？" and not re.search(data["no_prose"], sentence)
    if not is_prose or len(sentence) > SENTENCE:
        return
    for kind, cue in data["cues"][language_of(sentence)].items():
        yield from ((kind, *match.span("answer")) for match in re.finditer(cue, sentence))
    yield from (("said", *match.span(1)) for match in re.finditer(data["title"], sentence))
    for value in exact_values(sentence):
        if sentence.count(value.text) == 1 and (value.kind != "number" or re.search(data["large"], value.text)):
            yield "said", sentence.index(value.text), sentence.index(value.text) + len(value.text)
