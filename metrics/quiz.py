"""Questions made by rules from what users said and tools returned, so that any recording can be asked what it said.

A question asks for one thing that stands in one message (templates and patterns are in `data/quiz.toml`). It is asked
at least `AGE` messages later, and only while its answer, in any of its spellings, stands in no other message,
and nothing else in the history could answer it. The same recording always gives the same questions; docs/quality.md has
the rubric that samples of them were judged by.
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
from .probes import spellings
from .values import exact_values, finder, places

MADE = "made: "  # start of the category of a question that was made, before its kind
MOST, OF_KIND, OF_ONE = 12, 6, 3  # questions of a conversation, of one kind, and about one message, at most
AGES = (6, 20, 60)  # messages since the answer, at least: of all questions, of older and of old ones
GAP = "____"
CALL, TYPED, SENTENCE = 160, 1_500, 220  # characters of a quoted call, a typed message and a quoted sentence, at most
LEAST, LAST = 6, 3  # words of a sentence with its gap, at least; lines that may follow the error that ended a command
READ = 1_000  # matches of a rule in one result, at most


class MadeQuestion(NamedTuple):
    """A question about one message, without its place."""

    kind: str
    at: int  # place of the message that has the answer
    question: str
    answer: str
    mark: str = ""  # text that might give another answer wherever else it stands


def age_of(messages: int) -> int:
    """Return which of AGES is the age of a question that comes so many messages after its answer."""
    return max(age for age in AGES if messages >= age)


def quiz(conversation: Conversation) -> tuple[Probe, ...]:
    """Return the questions to ask in a conversation, by place, balanced by kind and age."""
    messages = conversation.messages
    # A question neither says its answer nor asks for a secret.
    fair = [draft for draft in _drafts(conversation) if draft.answer.casefold() not in draft.question.casefold()]
    if has_secret("\n".join(f"{draft.question}{draft.answer}" for draft in fair)):
        fair = [draft for draft in fair if not has_secret(draft.question + draft.answer)]
    # By digest, so that chance decides among equals: always the same chance.
    drafts = sorted(fair, key=lambda draft: blake2b(repr(draft).encode()).digest())
    if not drafts:
        return ()
    wanted = [spellings([text]) for draft in drafts for text in (draft.answer, draft.mark)]
    standing = defaultdict[int, list[int]](list)
    for number, at in zip(*places(finder(wanted), [said(message).casefold() for message in messages]), strict=True):
        standing[int(number)].append(int(at))
    answers = Counter(question for question, _ in {(draft.question, draft.answer) for draft in drafts})
    stops, pool = _stops(messages), []
    for number, draft in enumerate(drafts):
        own, marks = standing[2 * number], standing[2 * number + 1] or [draft.at]
        if own[:1] == marks[:1] == [draft.at] and answers[draft.question] == 1:
            until = min([*own[1:2], *marks[1:2], len(messages)])
            pool += [(stop, draft) for stop in stops if draft.at + AGES[0] <= stop <= until]
    probes: list[Probe] = []
    for stop, draft in sorted(_balanced(pool)):
        name, evidence, after = f"made{len(probes) + 1}", messages[draft.at].id, messages[stop - 1].id
        probes.append(Probe(name, draft.question, (draft.answer,), (evidence,), MADE + draft.kind, after))
    return tuple(probes)


def _stops(messages: Sequence[Message]) -> list[int]:
    """Return where questions are asked: about each eighth of the messages, where no call is without its result."""
    ends, waiting = [], set[str]()
    for at, message in enumerate(messages, 1):
        waiting |= {call.id for call in message.calls}
        waiting.discard(message.answers or "")
        if not waiting and message.role in ("assistant", "tool"):
            ends.append(at)
    eighths = [len(messages) * number / 8 for number in range(1, 8 + 1)] if ends else []
    return sorted({min(ends, key=lambda end: abs(end - eighth)) for eighth in eighths})


def _balanced(pool: list[tuple[int, MadeQuestion]]) -> Iterator[tuple[int, MadeQuestion]]:
    """Yield questions with their places: each time one of the kind, message, age and place that there are fewest of."""
    taken: Counter[object] = Counter()

    def traits(stop: int, draft: MadeQuestion) -> tuple[object, ...]:
        return draft.kind, draft.at, f"age {age_of(stop - draft.at)}", f"place {stop}"

    for _ in range(MOST):
        pool = [(stop, of) for stop, of in pool if not taken[of] and taken[of.kind] < OF_KIND and taken[of.at] < OF_ONE]
        if pool:
            stop, draft = min(pool, key=lambda pair: [taken[trait] for trait in traits(*pair)])
            yield stop, draft
            taken.update((draft, *traits(stop, draft)))


@cache
def _data() -> dict[str, Any]:
    data = word_lists(__package__, "quiz")
    # One line end before all: with one in each the pattern takes ten times as long.
    data["frames"] = re.compile(rf"\n(?:{'|'.join(data['frames'])})", re.MULTILINE)
    data["dull_keys"] = re.compile(data["dull_keys"])
    for rule in data["rules"]:
        rule["pattern"] = re.compile(rule["pattern"], re.MULTILINE)
    return data


def _drafts(conversation: Conversation) -> Iterator[MadeQuestion]:
    short = (message.text if len(message.text) <= TYPED else "" for message in conversation.messages)
    typed = [text if message.role == "user" else "" for message, text in zip(conversation.messages, short, strict=True)]
    language = conversation.language or language_of("\n".join(typed))
    templates = _data()["questions"]["zh" if language == "zh" else "en"]
    quoted = [None if call is None else _quoted(call) for call in _answered(conversation.messages)]
    times = Counter(quoted)
    for at, (message, call, text) in enumerate(zip(conversation.messages, quoted, typed, strict=True)):
        # A call that was made again may have had another result.
        if call is not None and (call[0] == "file" or times[call] == 1):
            source = templates[call[0]].format(call=call[1])
            for kind, key, answer, mark in _told(*call, message.text):
                yield MadeQuestion(kind, at, templates[kind].format(key=key, call=call[1], source=source), answer, mark)
        for sentence in sentences(text) if call is None else ():
            for kind, start, stop in _stated(sentence):
                key = f"{sentence[:start]}{GAP}{sentence[stop:]}"
                if len(words(key)) >= LEAST and not re.search(_data()["no_gap"], key):
                    yield MadeQuestion(kind, at, templates["said"].format(key=key, gap=GAP), sentence[start:stop])
                    break  # two gaps in one sentence would ask for the same


def _answered(messages: Sequence[Message]) -> Iterator[ToolCall | None]:
    """Yield the call that each message is the result of. Agents without calls may act by a command that ends a text."""
    spoken = [message.text for message in messages if message.role == "assistant"]
    actions = sum(bool(re.search(_data()["action"], text)) for text in spoken)
    acts, action = not any(message.calls for message in messages) and 2 * actions > len(spoken), None
    calls = dict[str, ToolCall]()
    for message in messages:
        calls.update((call.id, call) for call in message.calls)
        yield action if action and message.role == "user" else calls.get(message.answers or "")
        found = re.search(_data()["action"], message.text) if acts and message.role == "assistant" else None
        action = found and ToolCall("", "", msgspec.json.encode({"command": found[1]}).decode())


def _quoted(call: ToolCall) -> tuple[str, str] | None:
    """Return how a question quotes a call: a command, the file that is shown, or the tool with its arguments."""
    names = _data()["arguments"]
    # A program that calls tools: that of a single command is the command, where its string is one of JSON too.
    scripts = re.findall(_data()["script"], call.arguments)
    for text in (call.arguments, *(f'{{"command": {script}}}' for script in scripts if len(scripts) == 1)):
        with suppress(msgspec.DecodeError, ValueError, RecursionError):
            arguments = msgspec.json.decode(text, type=dict[str, Any])
            break
    else:
        return None
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
    body = _data()["frames"].sub("\n", "\n" + text.replace("\r", "").removeprefix(call))
    body = "\n" + re.sub(_data()["frame_end"], "", body, flags=re.MULTILINE).strip()
    if body[1:2] == "{":
        with suppress(msgspec.DecodeError, ValueError, RecursionError):
            yield from _values(msgspec.json.decode(body))
            return
    plain = re.sub(_data()["numbering"], "\n", body)
    for rule in _data()["rules"]:
        only = rule.get("only")
        source = body if only or rule.get("numbered") else plain
        if kind not in rule["of"] or not re.search(rule.get("call", ""), call) or (only == "line" and "\n" in body[1:]):
            continue
        # To look for a word takes a hundredth of the time that the pattern does.
        if not any(map(source.__contains__, rule.get("has", [""]))):
            continue
        matches = list(rule["pattern"].finditer(source))
        keys = Counter(match["key"] for match in matches)
        for match in matches[-1:] if only else matches[:READ]:
            is_one = body[match.end() :].strip().count("\n") < LAST if only else keys[match["key"]] == 1
            if is_one and source.count(match["mark"] or match["answer"]) <= 1:
                yield rule["kind"], match["key"], match["answer"].strip(), match["mark"]
        if only and matches:  # an error is no other output
            return


def _values(value: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield the values of a JSON object that a key, or a path of keys, names alone."""
    for key, inner in value.items():
        name, dull = f"{path}{key}", _data()["dull_keys"]
        if isinstance(inner, dict):
            yield from _values(inner, f"{name}.")
        elif type(inner) in (str, int, float) and re.fullmatch(".{2,60}", str(inner)) and not dull.search(name):
            yield "value", name, str(inner), ""


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
