"""Finders of what should not be shared: secrets, e-mail addresses, phone numbers, home folders and names.

    secret   by the patterns of `scenarios/secrets.py`, by the values of this machine's keys, and by detect-secrets
    email    addresses, but for logins such as git@github.com
    phone    numbers that libphonenumber knows: with a country code, or as they are written in the given regions
    home     the folder of a user: /home/NAME, /Users/NAME, C:\\Users\\NAME
    name     names that were given, and those that the recordings themselves tell (`Names`)

No model guesses at names: a name that no path, commit, e-mail header or speaker tells has to be given.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from msgspec.structs import replace

from ctxbench.scenarios.errors import MissingExtra, RunError
from ctxbench.scenarios.model import Call, Conversation, Message, Tool
from ctxbench.scenarios.secrets import known_values, secrets_in

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin, RegexBasedDetector


Kind = Literal["secret", "home", "email", "phone", "name"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they come first where two of them overlap."""
REGIONS = ("US", "CN")
"""Regions whose phone numbers are found without a country code, by default."""


class TextSpan(NamedTuple):
    """A part of a text that is to be replaced."""

    start: int
    end: int
    kind: Kind


_END = TextSpan(sys.maxsize, sys.maxsize, "secret")


class Finder:
    """Finds all kinds in a text. Raises MissingExtra without the extra `redact`, RunError for an unknown region."""

    def __init__(self, names: Names, regions: Sequence[str] = REGIONS) -> None:
        self._phones = _phones(regions)
        self._detectors = _detectors()
        self._known = known_values()
        self._names = names

    def spans(self, text: str) -> list[TextSpan]:
        """Return what is found in a text, in order and without overlaps."""
        found = [_without_escape(text, span) for span in {span for view in _views(text) for span in self._found(view)}]
        # By kind, then the longest, then the first: what is chosen is never given up for what comes later.
        found.sort(key=lambda span: (KINDS.index(span.kind), span.start - span.end, span.start))
        chosen: list[TextSpan] = []
        for span in found:
            # `chosen` is in order and without overlaps, so only the neighbours of a span can overlap it.
            at = bisect(chosen, span)
            is_free = (at == 0 or chosen[at - 1].end <= span.start) and span.end <= (
                chosen[at] if at < len(chosen) else _END
            ).start
            if is_free and span.start < span.end:
                chosen.insert(at, span)
        return chosen

    def _found(self, text: str) -> Iterator[TextSpan]:
        yield from _joined(self._secrets(text))
        yield from _homes(text)
        yield from _emails(text)
        yield from self._phones(text)
        yield from self._names.spans(text)

    def _secrets(self, text: str) -> Iterator[TextSpan]:
        yield from (TextSpan(start, end, "secret") for start, end in (*secrets_in(text), *self._known.spans(text)))
        for detector in self._detectors:
            for secret in set(detector.analyze_string(text)):
                # A place for a password, `<pass>`, has no digit; the words before a private key are no key.
                if any(map(str.isdigit, secret)) and " PRIVATE KEY" not in secret:
                    yield from (TextSpan(*match.span(), "secret") for match in re.finditer(re.escape(secret), text))


def _joined(secrets: Iterable[TextSpan]) -> Iterator[TextSpan]:
    """Yield spans of secrets, those that overlap as one: else the end of one of them would be left."""
    whole: TextSpan | None = None
    for span in sorted(secrets):
        if whole is not None and span.start < whole.end:
            whole = whole._replace(end=max(whole.end, span.end))
            continue
        if whole is not None:
            yield whole
        whole = span
    if whole is not None:
        yield whole


_ESCAPE = re.compile(r"\\\\|\\(?:[nrt]|u[0-9a-fA-F]{4})")


def _views(text: str) -> Iterator[str]:
    """Yield a text, and the same with white space for the escapes of JSON: in `\\nJane` the n is of no name."""
    yield text
    if "\\" in text and (unescaped := _ESCAPE.sub(_white_space, text)) != text:
        yield unescaped


def _white_space(escape: re.Match[str]) -> str:
    # As long as the escape itself: a span of this view is one of the text. An escaped backslash stays, since what
    # follows it is no escape.
    return escape[0] if escape[0] == "\\\\" else " " * (len(escape[0]) - 1) + "\n"


def _without_escape(text: str, span: TextSpan) -> TextSpan:
    """Return a span without the half of an escape at its ends: what is left of a text in JSON must be JSON."""
    start, end = span.start, span.end
    # An odd number of backslashes ends in one that belongs to
    # what follows: the span begins within \n, or within \u00e9.
    if _ends_in_half(text[max(0, start - 8) : start]):
        start += 5 if text[start] == "u" else 1
    if _ends_in_half(text[start:end]):
        end -= 1
    return span._replace(start=start, end=end)


def _ends_in_half(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


# They take words in capitals, addresses of machines, or what stands behind `cl` or `cos` for secrets.
_UNUSED = (
    *("ArtifactoryDetector", "CloudantDetector", "IPPublicDetector", "IbmCloudIamDetector", "IbmCosHmacDetector"),
    "SoftlayerDetector",
)


@cache
def _detectors() -> tuple[RegexBasedDetector, ...]:
    """Return the detectors of detect-secrets that know a form, and do not guess by entropy or by a word before it."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.plugins.base import RegexBasedDetector
    except ModuleNotFoundError:
        raise MissingExtra("detect-secrets", "redact") from None
    kinds: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return tuple(
        kind()
        for _, kind in sorted(kinds.items())
        if issubclass(kind, RegexBasedDetector) and kind.__name__ not in _UNUSED
    )


_LETTER = r"A-Za-z0-9_\u00c0-\u024f"  # no Chinese, which has no space before a path
_USER = rf"(?P<user>[{_LETTER}](?:[{_LETTER}.-]{{0,62}}[{_LETTER}])?)"
_HOME = re.compile(
    r"(?:(?<![A-Za-z0-9_.~-])/(?:var/|export/|mnt/[a-z]/)?(?:home|Users)/|(?<![A-Za-z0-9])[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/))"
    + _USER
)


def _homes(text: str) -> Iterator[TextSpan]:
    for match in _HOME.finditer(text):
        if match["user"].lower() not in _words("users"):
            yield TextSpan(*match.span(), "home")


_EMAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{0,63}\w@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?\.){1,6}(?P<top>[A-Za-z]{2,24})(?![\w@])",
    re.ASCII,
)
_LOGINS = ("git", "hg", "ssh", "root")
_FILES = (
    *("bin", "cpp", "css", "fixture", "gif", "go", "html", "jpeg", "jpg", "js", "json", "jsx", "mark", "md", "mjs"),
    *("png", "py", "rs", "svg", "ts", "tsx", "txt", "webp"),
)


def _emails(text: str) -> Iterator[TextSpan]:
    if "@" in text:
        for match in _EMAIL.finditer(text):
            if match["top"].lower() not in _FILES and match[0].partition("@")[0] not in _LOGINS:
                yield TextSpan(*match.span(), "email")


# Digits in groups, and what may stand before a number that is written without any.
_NUMBER = re.compile(
    r"(?:(?<=\\u[0-9a-fA-F]{4})|(?<![\w.,:/=#+-]))"
    r"(?:\+|\(|(?=\d))[\d(][\d ().\-/\u2010-\u2013]{5,22}\d(?![\w/]|[.,:-]\d)",
    re.ASCII,
)
_TOLD = re.compile(
    r"(?:phone|mobile|cell|\btel|fax|call|whatsapp|dial|电话|手机|号码|联系)"
    r"(?:[是为：:]*\W{0,6}|\W{1,3}\w{1,9}\W{1,3}|\W{1,3}\w{1,9} \w{1,9}\W{1,3})$",
    re.IGNORECASE,
)


_LETTER_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def _letter(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def _phones(regions: Sequence[str]) -> Callable[[str], Iterator[TextSpan]]:
    """Return the finder of phone numbers of some regions."""
    try:
        import phonenumbers
    except ModuleNotFoundError:
        raise MissingExtra("phonenumbers", "redact") from None
    for region in regions:
        if region not in phonenumbers.SUPPORTED_REGIONS:
            raise RunError(f"--redact-region {region}: is no region: give a code such as US, CN or DE")

    def is_phone(number: str, told: bool) -> bool:
        if re.fullmatch(r"\d{1,3}[.-]\d+|1?[ -]?\(?\d{3}\)?[ -]\d{3}", number):  # no more than a fraction, or a part
            return False
        if number.startswith("+"):
            return _is_valid(number, None, possible=told or re.search(r"[ ()\-.]", number) is not None)
        grouped = re.search(r"\d[ ().\-\u2010-\u2013]+\d", number) is not None
        return (grouped or told) and any(_is_valid(number, region, possible=told) for region in regions)

    def _is_valid(number: str, region: str | None, possible: bool) -> bool:
        leniency = phonenumbers.Leniency.POSSIBLE if possible else phonenumbers.Leniency.EXACT_GROUPING
        matches = list(phonenumbers.PhoneNumberMatcher(number, region, leniency))
        # The whole of it must be the number; one character, as a bracket at its start, may be left out.
        return len(matches) == 1 and len(matches[0].raw_string) >= len(number) - 1

    def find(text: str) -> Iterator[TextSpan]:
        for match in _NUMBER.finditer(text):
            # E.164 allows 15 digits at most.
            if 7 <= sum(char.isdigit() for char in match[0]) <= 15:
                before = _LETTER_ESCAPE.sub(_letter, text[max(0, match.start() - 60) : match.start()])
                if is_phone(match[0], told=_TOLD.search(before) is not None):
                    yield TextSpan(*match.span(), "phone")

    return find


_PERSON = r"(?P<name>[^\W\d_a-z][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,3}|[\u4e00-\u9fff]{2,4})"
_BESIDE_EMAIL = re.compile(r"(?:<|\\u003[cC]|&lt;)[\w.+-]+@[\w-]+\.")  # "Jane Doe" <jane@…>
_BEFORE_EMAIL = re.compile(_PERSON + r"\\?[\"']?\s?$")
_LONGEST_PERSON = 80
_TOLD_NAMES = (
    (
        "user.name",
        re.compile(r"user\.name[ =]\s*\\?[\"']?" + _PERSON + r"(?=\\?[\"']|\s*$|\s*\\?n|\s*&&)", re.MULTILINE),
    ),
    ("_NAME=", re.compile(r"GIT_(?:AUTHOR|COMMITTER)_NAME=\\?[\"']?" + _PERSON)),
    ("Author: ", re.compile(r"Author:\s+" + _PERSON + r"\s*$", re.MULTILINE)),
    ("From: ", re.compile(r"^From:\s+" + _PERSON + r"\s*$", re.MULTILINE)),
)
_SHORTEST_USER, _SHORTEST_PART = 4, 3


class Names:
    """Names to be replaced: those given, and those that the recordings tell.

    Told are users of home folders, authors of commits and of e-mails, and speakers of a conversation. A user's name
    of four letters or more, and a part of a person's name of three or more, count alone too, but for words.
    """

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._forms: dict[str, tuple[str, re.Pattern[str]]] = {}
        """By its text: the word that a text must have, in small letters, and what finds it."""
        for name in given:
            self._add(name, re.IGNORECASE)

    def learn(self, conversation: Conversation) -> None:
        """Take the names that a conversation tells."""
        for message in conversation.messages:
            if message.role in ("user", "assistant") and re.fullmatch(_PERSON, message.name):
                self._add_person(message.name)
        for text in (view for whole in texts_of(conversation) for view in _views(whole)):
            for match in _BESIDE_EMAIL.finditer(text) if "@" in text else ():
                if person := _BEFORE_EMAIL.search(text, max(0, match.start() - _LONGEST_PERSON), match.start()):
                    self._add_person(person["name"])
            for needle, told in _TOLD_NAMES:
                for match in told.finditer(text) if needle in text else ():
                    self._add_person(match["name"])
            for match in _HOME.finditer(text):
                if match["user"].lower() not in _words("users") and text[match.end() : match.end() + 1] in ("/", "\\"):
                    self._add_user(match["user"])

    def spans(self, text: str) -> Iterator[TextSpan]:
        """Yield where a name stands in a text."""
        lower = text.lower()
        for needle, form in self._forms.values():
            if needle in lower:
                yield from (TextSpan(*match.span(), "name") for match in form.finditer(text))

    def _add_user(self, user: str) -> None:
        if len(user) >= _SHORTEST_USER and user.lower() not in _words("words"):
            self._add(user)
        else:  # only in the folder of a project, as Claude Code writes it
            form = re.compile(rf"(?:(?<=-Users-)|(?<=-home-)){re.escape(user)}(?=-)")
            self._forms.setdefault(form.pattern, (f"-{user.lower()}-", form))

    def _add_person(self, name: str) -> None:
        name = name.strip(" .-'’")
        parts = name.split()
        if not parts or _words("others").intersection(re.split(r"[\W_]+", name.lower())):
            return
        for part in parts if len(parts) > 1 else ():
            if len(part) >= _SHORTEST_PART and part[0].isupper() and part.lower() not in _words("words"):
                self._add(part)
        if len(parts) > 1 or (len(name) >= 2 and name.lower() not in _words("words")):
            self._add(name)

    def _add(self, name: str, flags: int = 0) -> None:
        """Take a name as it is, and as JSON may escape it."""
        if not (name := " ".join(name.split())):
            return
        before = "" if _is_han(name[0]) else r"(?<![^\W_])"
        after = "" if _is_han(name[-1]) else r"(?![^\W_])"
        for form in (name, json.dumps(name)[1:-1]):
            words = form.split()
            expression = re.compile(before + r"\s+".join(map(re.escape, words)) + after, flags)
            self._forms.setdefault(form, (words[0].lower(), expression))


def _is_han(char: str) -> bool:
    return "\u4e00" <= char <= "\u9fff"


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(
        tomllib.loads((resources.files(__package__) / "data" / "words.toml").read_text("utf-8"))[kind].split()
    )


def texts_of(conversation: Conversation) -> Iterator[str]:
    """Yield every text of a conversation that `rewritten` would rewrite."""
    texts: list[str] = []

    def take(text: str) -> str:
        texts.append(text)
        return text

    rewritten(conversation, take)
    yield from texts


def rewritten(conversation: Conversation, rewrite: Callable[[str], str]) -> Conversation:
    """Return a conversation with every text rewritten.

    Texts are what people, models and tools wrote, and where it comes from: also arguments of calls and schemas, which
    are JSON. Roles, ids of messages and calls, names of tools, models, times and counts stay.
    """
    tools: dict[Tool, Tool] = {}

    def call_of(call: Call | None) -> Call | None:
        if call is None:
            return None
        offered = None if call.tools is None else tuple(map(tool_of, call.tools))
        return replace(call, tools=offered, error=rewrite(call.error))

    def tool_of(tool: Tool) -> Tool:
        if tool not in tools:  # the same at every call
            tools[tool] = replace(tool, description=rewrite(tool.description), parameters=rewrite(tool.parameters))
        return tools[tool]

    def message_of(message: Message) -> Message:
        return replace(
            message,
            text=rewrite(message.text),
            thinking=rewrite(message.thinking),
            name=message.name if message.role == "tool" else rewrite(message.name),
            calls=tuple(replace(call, arguments=rewrite(call.arguments)) for call in message.calls),
            call=call_of(message.call),
        )

    def all_of(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(rewrite, texts))

    return replace(
        conversation,
        id=rewrite(conversation.id),
        source=rewrite(conversation.source),
        messages=tuple(map(message_of, conversation.messages)),
        tools=tuple(map(tool_of, conversation.tools)),
        probes=tuple(
            replace(
                probe,
                question=rewrite(probe.question),
                answers=all_of(probe.answers),
                passages=all_of(probe.passages),
                rubric=all_of(probe.rubric),
            )
            for probe in conversation.probes
        ),
        facts=tuple(replace(fact, text=rewrite(fact.text)) for fact in conversation.facts),
        compactions=tuple(
            replace(compaction, summary=rewrite(compaction.summary), call=call_of(compaction.call))
            for compaction in conversation.compactions
        ),
        meta={name: rewrite(value) if isinstance(value, str) else value for name, value in conversation.meta.items()},
    )
