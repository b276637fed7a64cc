"""Questions made by rules from what users said and tools returned, so that any recording can be asked what it said.

A question asks for one thing that stands in one message: a value of a JSON result, a setting or signature in a file, an
error, a count of tests, what a command printed, a value, preference or decision that the user stated. It is asked
at least `AGE` messages later, and only while its answer, matched as `SentText.says` does, stands in no other message,
and nothing else in the history could answer it. Templates and patterns are in `data/quiz.toml`. The same recording
always gives the same questions; docs/quality.md has the rubric that samples of them were judged by.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.scenarios.secrets import has_secret

from .grounding import said
from .language import HAN, LANGUAGES, language_of, sentences, word_lists, words
from .values import exact_values, places

MADE = "made: "
"""Start of the category of a question that was made, before its kind."""
MOST = 12  # questions of a conversation
AGE = 6  # messages that a question lies behind its answer, at least
AGES = {"recent": AGE, "older": 20, "old": 60}
"""Least age of the questions that are called so, in messages."""
GAP = "____"
SAID = ("said", "preference", "decision")
"""Kinds of what a user said."""
CALL, TYPED = 160, 1_500  # characters of a call that is quoted, and of a message that a person types, at most
OF_KIND, OF_ONE = 4, 3  # questions of one kind, and about one tool result, at most
LEAST = 5  # words around the gap in what a user said, at least
LAST = 3  # lines that may follow the error that a command ended with


class QuotedCall(NamedTuple):
    """A tool call as a question quotes it."""

    kind: str  # file, command or call
    text: str


class Draft(NamedTuple):
    """A question about one message, without its place."""

    kind: str
    at: int  # place of the message that has the answer
    question: str
    answer: str
    mark: str = ""  # text that might give another answer wherever else it stands


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    of: tuple[str, ...]
    pattern: str
    only: str = ""
    call: str = ""


@cache
def _data() -> Mapping[str, Any]:
    data = word_lists(__package__, "quiz")
    rules = msgspec.convert(data["rules"], list[_Rule])
    data["rules"] = [(rule, re.compile(rule.pattern, re.MULTILINE), re.compile(rule.call)) for rule in rules]
    data["frames"] = re.compile("|".join(data["frames"]), re.MULTILINE)
    data["cues"] = {
        language: {kind: re.compile(cue) for kind, cue in data["cues"][language].items()} for language in LANGUAGES
    }
    return data


def quiz(conversation: Conversation) -> tuple[Probe, ...]:
    """Return the questions that a conversation is asked, in the order in which they are asked, balanced by kind and age."""
    messages = conversation.messages
    drafts = [draft for draft in _drafts(conversation) if _is_fair(draft)]
    if not drafts:
        return ()
    texts = [said(message).casefold() for message in messages]
    wanted = [(draft.answer.casefold(),) for draft in drafts] + [
        (draft.mark.casefold(),) if draft.mark else () for draft in drafts
    ]
    standing: list[list[int]] = [[] for _ in wanted]
    for number, at in zip(*places(wanted, texts), strict=True):
        standing[number].append(int(at))
    answers: dict[tuple[str, str], set[str]] = {}
    for draft in drafts:
        answers.setdefault((draft.kind, draft.question), set()).add(draft.answer)
    stops = _stops(messages)
    pool = []
    for draft, own, marks in zip(drafts, standing, standing[len(drafts) :], strict=False):
        is_first = own[:1] == [draft.at] and (not draft.mark or marks[:1] == [draft.at])
        if is_first and len(answers[draft.kind, draft.question]) == 1:
            until = min([*own[1:2], *marks[1:2], len(messages)])
            pool += [(draft, stop) for stop in stops if draft.at + AGE <= stop <= until]
    chosen = sorted(_balanced(pool), key=lambda pair: pair[::-1])
    return tuple(
        Probe(
            f"made{number}",
            draft.question,
            (draft.answer,),
            (messages[draft.at].id,),
            MADE + draft.kind,
            messages[stop - 1].id,
        )
        for number, (draft, stop) in enumerate(chosen, 1)
    )


def age_of(age: int) -> str:
    """Return what a question is called that lies so many messages behind its answer."""
    return [name for name, least in AGES.items() if age >= least or least == AGE][-1]


def _is_fair(draft: Draft) -> bool:
    """Return whether a question neither says its answer nor asks for a secret."""
    return draft.answer.casefold() not in draft.question.casefold() and not has_secret(draft.question + draft.answer)


def _stops(messages: tuple[Message, ...]) -> list[int]:
    """Return where questions are asked: after about a quarter, a half, three quarters and all of the messages.

    No call is without its result there.
    """
    ends, waiting = [], set[str]()
    for at, message in enumerate(messages):
        waiting |= {call.id for call in message.calls}
        waiting.discard(message.answers or "")
        if not waiting and message.role in ("assistant", "tool"):
            ends.append(at + 1)
    quarters = (len(messages) * quarter / 4 for quarter in (1, 2, 3, 4))
    return sorted({min(ends, key=lambda end: abs(end - quarter)) for quarter in quarters}) if ends else []


def _balanced(pool: list[tuple[Draft, int]]) -> Iterator[tuple[Draft, int]]:
    """Yield questions with their places: each time one of the kind, message, age and place that there are fewest of."""
    digests = {draft: blake2b((draft.question + draft.answer).encode(), digest_size=8).digest() for draft, _ in pool}
    taken: Counter[object] = Counter()
    for _ in range(MOST):
        if not pool:
            return
        pair = min(
            pool,
            key=lambda pair: (
                taken[pair[0].kind],
                taken[pair[0].at],
                taken[age_of(pair[1] - pair[0].at)],
                taken["asked", pair[1]],
                digests[pair[0]],
            ),
        )
        yield pair
        draft, stop = pair
        taken.update([draft.kind, draft.at, age_of(stop - draft.at), ("asked", stop)])
        pool = [
            (other, place)
            for other, place in pool
            if other.question != draft.question and other.answer != draft.answer
            if taken[other.kind] < OF_KIND and taken[other.at] < (1 if other.kind in SAID else OF_ONE)
        ]


def _drafts(conversation: Conversation) -> Iterator[Draft]:
    typed = [message.text for message in conversation.messages if message.role == "user" and _is_typed(message.text)]
    language = "zh" if conversation.language == "zh" else language_of("\n".join(typed))
    templates, calls = _data()["questions"][language], dict[str, ToolCall]()
    quoted: list[QuotedCall | None] = []
    written = None
    for message in conversation.messages:
        calls.update((call.id, call) for call in message.calls)
        call = calls.get(message.answers or "")
        command = _FENCED.search(message.text) if message.role == "assistant" and not message.calls else None
        quoted.append(_quoted(call) if call is not None else written if message.role == "user" else None)
        written = QuotedCall("command", command[1]) if command else None
    times = Counter(quoted)
    for at, (message, call) in enumerate(zip(conversation.messages, quoted, strict=True)):
        # A call that was made again may have had another result.
        if call is not None and (call.kind == "file" or times[call] == 1) and len(call.text) <= CALL:
            source = templates[call.kind].format(call=call.text)
            for kind, key, answer, mark in _told(call, message.text):
                yield Draft(kind, at, templates[kind].format(key=key, call=call.text, source=source), answer, mark)
        elif message.role == "user" and _is_typed(message.text):
            for sentence in sentences(message.text):
                for kind, start, stop in _stated(sentence, message.text):
                    key = f"{sentence[:start]}{GAP}{sentence[stop:]}"
                    yield Draft(kind, at, templates["said"].format(key=key, gap=GAP), sentence[start:stop])


_FENCED = re.compile(r"```\w*\n([^\n`]+)\n```\s*\Z")  # a command that an agent without tools ends its message with


def _is_typed(text: str) -> bool:
    """Return whether a person seems to have typed a user's message: no log, and no frame's text."""
    return len(text) <= TYPED and text.count("\n") <= 12 and text.lstrip()[:1] not in ("<", "[", "{")


def _quoted(call: ToolCall) -> QuotedCall | None:
    """Return a call as a question quotes it: a command, the file that is shown, or the tool with its arguments."""
    names = _data()["arguments"]
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    if re.search(_data()["dull_tools"], call.name):
        return None
    given = {name: value for name, value in arguments.items() if isinstance(value, str) and value.strip()}
    command = next((given[name] for name in names["command"] if name in given), "")
    path = next((given[name] for name in names["path"] if name in given), "")
    kind, text = "call", ""
    if path and (command == "view" or (not command and re.search(names["shows"], call.name.lower()))):
        kind, text = "file", path
    elif command and command not in names["edits"]:
        kind, text = "command", command.strip()
    elif not command:
        others = {name: value for name, value in arguments.items() if name not in names["dull"]}
        text = ", ".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in others.items())
        text = f"{call.name}({text})"
    return QuotedCall(kind, text) if text and "\n" not in text else None


def _told(call: QuotedCall, text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield what a result tells: the kind of question, what it asks about, the answer and the mark."""
    data = _data()
    body = data["frames"].sub("", text.replace("\r", "").removeprefix(call.text)).strip()
    if body[:1] == "{":
        try:
            yield from _values(msgspec.json.decode(body))
        except msgspec.DecodeError:
            pass
        else:
            return
    plain = re.sub(data["numbering"], "", body, flags=re.MULTILINE)
    for rule, pattern, of in data["rules"]:
        if call.kind not in rule.of or not of.search(call.text) or (rule.only == "line" and "\n" in body):
            continue
        matches = [
            match.groupdict("") | {"end": match.end()} for match in pattern.finditer(body if rule.only else plain)
        ]
        keys = Counter(match.get("key") for match in matches)
        for match in matches[-1:] if rule.only else matches:
            answer = match["answer"] or match.get("answer2") or match.get("answer3") or ""
            is_last = body[match["end"] :].strip().count("\n") < LAST if rule.only else keys[match.get("key")] == 1
            if answer.strip() and is_last and plain.count(match.get("mark", answer)) <= 1:
                yield rule.kind, match.get("key", ""), answer.strip(), match.get("mark", "")
        if matches and rule.only:  # an error is no other output
            return


def _values(value: Any, path: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield the values of a JSON object that a key, or a path of keys, names alone."""
    for key, inner in value.items():
        name = f"{path}.{key}" if path else key
        if isinstance(inner, dict):
            yield from _values(inner, name)
        elif isinstance(inner, str | int | float) and not isinstance(inner, bool):
            if 1 < len(str(inner)) <= 60 and "\n" not in str(inner) and not re.search(_data()["dull_keys"], name):
                yield "value", name, str(inner), ""


_LARGE = re.compile(rf"[$€£¥%]|\d\D*\d\D*\d|\d[{HAN}]")
_TITLE = re.compile(r"《([^》\s][^》\n]{1,39})》")
_NO_PROSE = re.compile(r"[{}<>|\\=\[\]*`#]")
_NO_EDGE = re.compile(r"[\w/·@-]", re.ASCII)
_PART = re.compile(rf"第{GAP}|·{GAP}|{GAP}[多余几来·]")


def _stated(sentence: str, message: str) -> Iterator[tuple[str, int, int]]:
    """Yield what a user states in a sentence: the kind of question, and where the answer stands."""
    is_whole = sentence[-1] in ".!?。！？" or sentence == message.strip()
    if len(sentence) > 220 or not sentence[0].isalpha() or not is_whole or _NO_PROSE.search(sentence):
        return
    cues = _data()["cues"][language_of(sentence)].items()
    spans = [(kind, *match.span("answer")) for kind, cue in cues for match in cue.finditer(sentence)]
    spans += [("said", *match.span(1)) for match in _TITLE.finditer(sentence)]
    for value in exact_values(sentence):
        if value.kind != "number" or _LARGE.search(value.text):
            start = sentence.find(value.text)
            spans.append(("said", start, start + len(value.text)))
    for kind, start, stop in spans:
        rest = f"{sentence[:start]}{GAP}{sentence[stop:]}"
        edges = sentence[max(start - 1, 0) : start] + sentence[stop : stop + 1]
        is_clear = not _NO_EDGE.search(edges) and not _PART.search(rest) and sentence.count(sentence[start:stop]) == 1
        if is_clear and len(words(rest)) > LEAST:
            yield kind, start, stop
