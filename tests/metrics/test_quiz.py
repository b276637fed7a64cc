"""Questions made of recordings: what is asked, when, and that people find the questions fair."""

import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.metrics.grounding import said
from ctxbench.metrics.probes import spellings
from ctxbench.metrics.quiz import AGES, MOST, quiz
from ctxbench.metrics.values import occurs
from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.scenarios.source import Problems
from tests.builders import conversations, talk
from tests.examples import examples

LABELS = tomllib.loads(Path(__file__).with_name("quiz_labels.toml").read_text("utf-8"))
LABELLED = (
    *("openhands", "mini-swe-agent", "claude-code", "codex", "tau-bench", "kdconv-zh", "oh-my-pi", "copilot-cli"),
    *("pi-sessions", "opencode", "gemini-cli", "swe-agent"),
)


def called(number: int, arguments: dict[str, object], result: str, tool: str = "bash") -> tuple[Message, Message]:
    """A tool call and its result."""
    call = ToolCall(f"c{number}", tool, msgspec.json.encode(arguments).decode())
    return Message(f"a{number}", "assistant", "", (call,)), Message(f"t{number}", "tool", result, answers=call.id)


def session(*results: tuple[dict[str, object], str], tool: str = "bash", language: str = "") -> Conversation:
    """A session with these calls and results, and eight turns about nothing."""
    calls = [message for at, each in enumerate(results) for message in called(at, *each, tool)]
    idle = [Message(f"x{at}", "user" if at % 2 else "assistant", "Go on.") for at in range(15)]
    opening = Message("u", "user", "修好它" if language else "Fix it.")
    return Conversation("s", (opening, *calls, *idle, Message("end", "assistant", "Done.")), language=language)


def asked(conversation: Conversation) -> dict[str, str]:
    """The answer to each question."""
    return {probe.question: probe.answers[0] for probe in quiz(conversation)}


@pytest.mark.parametrize(
    ("arguments", "result", "question", "answer"),
    [
        ({"command": "python x.py"}, "Traceback:\nValueError: no month 13", "Which error message", "no month 13"),
        ({"command": "pytest -q"}, "....\n3 failed, 41 passed in 2s", "How many tests passed", "41 passed"),
        ({"command": 'grep -n "def f" a.py'}, "1471:def f(", "On which line", "1471"),
        ({"command": "python --version"}, "Python 3.11.5", "What did", "Python 3.11.5"),
        ({"command": "find ."}, "./a.py[Jupyter: /a]\n[Command finished with 0]", "What did", "./a.py"),
        ({"command": "cat a.py"}, 'import os\nLIMIT = "12 MB"\n', "Which value does `LIMIT`", "12 MB"),
        ({"command": "cat a.py"}, "class A(base.Tree):\n", "Which class does `A` extend", "base.Tree"),
        ({"command": "cat a.py"}, "    7\tdef f1(self, colour, depth=3):\n", "Which parameters", "colour, depth=3"),
        ({"command": "cat -n a.py"}, "  1207\tdef parse():\n", "On which line did `def parse`", "1207"),
        ({"command": "cat a.py"}, "from base.tree import Leaf\n", "From which module", "base.tree"),
        ({"command": "cat a.ts"}, "import { Leaf } from './base/tree';\n", "From which module", "./base/tree"),
        ({"command": "cat a.json"}, '{\n  "typescript": "^5.2.0",\n', "Which value does `typescript`", "^5.2.0"),
        ({"command": "python -m unittest"}, "..\nRan 12 tests in 3s\n\nOK", "How many tests did", "12 tests"),
        ({"command": "curl x.org"}, "<title>All wares</title>", "What is the title", "All wares"),
        ({"command": "pip install six"}, "Collecting\nSuccessfully installed six-1.16.0", "Which version", "1.16.0"),
        ({"command": "git commit -m x"}, "[main 1f2e3d4] Mend it\n 1 file", "Which hash does the commit", "1f2e3d4"),
        ({"command": "open a.py"}, "[File: /a.py (372 lines total)]\n1:x", "How many lines does `/a.py`", "372 lines"),
        ({"command": "ls -l x"}, "Command: ls -l x\nOutput: -rw-r--r-- 1 me us 309 x\nError: (none)", "How", "309"),
        ({"id": 7}, '{"order": {"total": 523.5, "paid": true}}', "What was `order.total`", "523.5"),
    ],
)  # fmt: skip
def test_each_kind_of_result_is_asked_about(
    arguments: dict[str, object], result: str, question: str, answer: str
) -> None:
    """The question names the call, and its answer is what the call returned."""
    (made,) = {probe for probe in quiz(session((arguments, result))) if probe.question.startswith(question)}
    assert made.answers == (answer,)
    assert made.evidence == ("t0",)
    assert str(next(iter(arguments.values()))) in made.question


def test_commands_of_agents_without_json() -> None:
    """A program that makes one call, and replies that end with a command: what follows is its result."""
    program = session(({}, "Python 3.11.5"))
    call = ToolCall("c0", "exec", 'const r = await tools.exec_command({cmd:"python -V", n:1}); text(r);')
    messages = (program.messages[0], replace(program.messages[1], calls=(call,)), *program.messages[2:])
    assert asked(replace(program, messages=messages)) == {"What did `python -V` print?": "Python 3.11.5"}
    acts = [("assistant", f"Next.\n```\n{command}\n```") for command in ("python -V", *(f"do {n}" for n in range(9)))]
    texts = [("user", "Python 3.11.5\nbash-$")] + [("user", "It took 4 minutes and 12 seconds for it.")] * 9
    turns = [turn for pair in zip(acts, texts, strict=True) for turn in pair]
    assert asked(talk(("user", "Fix it."), *turns)) == {"What did `python -V` print?": "Python 3.11.5"}  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [r"it\'s", r"echo \$HOME", r"\x1b[0m", "a\tb", r"\u{41}", r"\ud800"])
def test_a_program_whose_string_is_not_json_is_not_quoted(command: str) -> None:
    """JavaScript has escapes that JSON has not."""
    program = session(({}, "Python 3.11.5"))
    call = ToolCall("c0", "exec", f'const r = await tools.exec_command({{cmd:"{command}"}}); text(r);')
    messages = (program.messages[0], replace(program.messages[1], calls=(call,)), *program.messages[2:])
    assert asked(replace(program, messages=messages)) == {}


def test_what_a_user_states_is_asked_for_in_his_words() -> None:
    """A value, a preference: the sentence with a gap. Questions of a Chinese recording are Chinese."""
    idle: list[tuple[str, str]] = [("assistant", "Fine."), ("user", "Go on.")] * 4
    train = "My train to Basel leaves on May 27 at noon. As for the seats, I'd prefer a window."
    english = talk(("user", train), *idle, ("assistant", "Yes."))  # type: ignore[arg-type]
    assert asked(english) == {
        "The user said: “My train to Basel leaves on ____ at noon.” What stands in the place of ____?": "May 27",
        "The user said: “As for the seats, I'd prefer ____.” What stands in the place of ____?": "a window",
    }
    chinese = talk(("user", "他出生于1962年08月28日，你知道吗？"), *idle, ("assistant", "好。"))  # type: ignore[arg-type]
    assert asked(chinese) == {"用户说过：“他出生于____，你知道吗？”____处是什么？": "1962年08月28日"}
    tool = session(({"command": "python --version"}, "Python 3.11.5"), language="zh")
    assert asked(tool) == {"`python --version`输出了什么？": "Python 3.11.5"}


@pytest.mark.parametrize(
    "conversation",
    [
        session(({"command": "python -V"}, "Python 3.11.5"), ({"command": "python -V"}, "Python 3.12.1")),
        session(({"command": "date"}, "Python 3.11.5"), ({"command": "python -V"}, "Python 3.11.5")),
        session(({"path": "a.py"}, 'LIMIT = "9 MB"'), ({"path": "a.py"}, 'LIMIT = "12 MB"'), tool="read"),
        session(({"command": "echo 3.11.5"}, "3.11.5")),
        session(({"command": "x"}, "OPENAI_API_KEY = 'sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z'")),
        session(({"id": 7}, '{"paid": true, "created_at": "2024-05-01T09:08:54", "n": [1234]}'), tool="order"),
    ],
    ids=["called again", "said before", "changed", "in the question", "secret", "dull"],
)
def test_what_has_no_one_answer_is_not_asked(conversation: Conversation) -> None:
    """Neither what could be answered in two ways, nor what the question itself tells, nor what nobody needs to know."""
    answers = set(asked(conversation).values())
    assert not answers & {"Python 3.11.5", "9 MB", "12 MB", "3.11.5", "True", "true"}
    assert not any("sk-" in answer or "2024" in answer for answer in answers)


def hold(conversation: Conversation, probes: tuple[Probe, ...]) -> None:
    """Check the laws of made questions."""
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    texts = [said(message).casefold() for message in conversation.messages]
    assert len(probes) <= MOST
    for probe in probes:
        evidence, stop = place[probe.evidence[0]], place[probe.after] + 1
        assert stop - evidence >= AGES[0]
        ways = spellings(probe.answers)
        assert [at for at in range(stop) if any(occurs(way, texts[at]) for way in ways)] == [evidence]
        assert probe.answers[0].casefold() not in probe.question.casefold()


@given(conversation=conversations())
@examples(60)
def test_any_conversation_can_be_asked_about(conversation: Conversation) -> None:
    """Any conversation can be read, and twice it gives the same questions."""
    hold(conversation, quiz(conversation))
    assert quiz(conversation) == quiz(conversation)


def test_hostile_results_cost_no_more_than_their_length() -> None:
    """Nested JSON, a line of a megabyte, half a surrogate: no error."""
    results = [
        "{" * 50_000,
        '{"a":' * 5_000,
        "x" * 1_000_000,
        "KEY: " + " " * 100_000,
        "def f(" + "a," * 50_000,
        "\ud800 = 1",
    ]
    made = asked(session(*(({"command": f"c{at}"}, text) for at, text in enumerate(results))))
    assert made == {"What did `c5` print?": "\ud800 = 1"}


def recorded(folder: Path, *names: str) -> Iterator[Conversation]:
    """The conversations of some sample recordings."""
    return (each for name in names for each in RunInputs((str(folder / name),)).read(Problems()))


@pytest.mark.slow
def test_people_find_the_questions_fair(recordings: Path) -> None:
    """Of ninety that were read by the rubric at least 90 % are fair, and at least 75 of them are still made."""
    still = set()
    for conversation in recorded(recordings, *LABELLED):
        probes = quiz(conversation)
        hold(conversation, probes)
        for probe in probes:
            text = "\n".join((conversation.id, probe.question, *probe.answers))
            still.add(sha256(text.encode()).hexdigest()[:16])
    labels = [fair for name, fair in LABELS.items() if name in still]
    assert len(LABELS) == 90
    assert len(labels) >= 75
    assert sum(labels) >= 0.9 * len(labels)
