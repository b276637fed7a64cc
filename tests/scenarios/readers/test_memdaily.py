"""MemDaily: messages with place and time, questions with the steps that they rest on; three forms of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.question_sets import MemDaily
from ctxbench.scenarios.source import Problems

MONDAY = 1_711_960_200  # 2024-04-01 08:30 UTC
SAID = {"mid": 0, "message": "我叫小明。", "time": "2024年04月01日 周一 08:30", "place": "上海"}
ASKED = {
    "qid": 0,
    "question": "我叫什么名字？",
    "answer": "小明",
    "target_step_id": [0],
    "choices": {"A": "小红", "B": "小明。"},
    "ground_truth": "B",
    "time": "2024年04月02日 周二 08:30",
}


def load(path: Path, recorded: Any) -> tuple[list[Conversation], Problems]:
    path.write_text(json.dumps(recorded, ensure_ascii=False), encoding="utf-8")
    assert isinstance(detect(path), MemDaily)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_a_set_of_trajectories(tmp_path: Path) -> None:
    """Place and time stand behind a message; the kind of question is in the file's name; failed ones are left out."""
    failed = {**ASKED, "question": "[ERRORQ]"}
    trajectory = {"tid": 3, "message_list": [SAID], "question_list": [ASKED, failed]}
    [told], problems = load(tmp_path / "05_post_processing_roles.json", [trajectory])
    assert not problems.errors
    assert (told.id, told.language) == ("05_post_processing_roles/3", "zh")
    [message] = told.messages
    assert (message.role, message.time) == ("user", MONDAY)
    assert message.text == "我叫小明。 (消息地点 上海, 消息时间 2024年04月01日 周一 08:30)"
    answers = ("小明", "小明。")
    assert told.probes == (Probe("q0", ASKED["question"], answers, ("m0",), "post_processing", time=MONDAY + 86_400),)


@pytest.mark.parametrize("messages", [[SAID, SAID], ["我叫小明。", "下雨了。"]])
def test_the_joined_file(tmp_path: Path, messages: list[Any]) -> None:
    """One object of kinds and scenarios, with messages as objects, or as texts where noise was put among them."""
    trajectory = {"tid": 0, "message_list": messages, "QA": ASKED}
    [told], problems = load(tmp_path / "memdaily.json", {"simple": {"roles": [trajectory], "items": None}})
    assert not problems.errors
    assert told.id == "memdaily/simple/roles/0"
    assert told.messages[0].text.startswith("我叫小明。")
    assert [probe.category for probe in told.probes] == ["simple"]


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        ({"tid": 1, "message_list": [{"message": 5}]}, "message_list[0].message", "expected str"),
        ({"tid": 1, "message_list": [{**SAID, "time": "noon"}]}, "message_list[0].time", "'noon' is no time"),
        ({"tid": 1, "message_list": [SAID], "question_list": [{**ASKED, "time": "x"}]}, "question_list[0].time", "'x'"),
    ],
)
def test_a_bad_trajectory_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by its field, and the others are read."""
    good = {"tid": 0, "message_list": [SAID], "question_list": [ASKED]}
    told, problems = load(tmp_path / "01_simple_roles.json", [good, bad])
    assert [one.id for one in told] == ["01_simple_roles/0"]
    [error] = problems.errors
    assert error.place.field == field
    assert what in error.what
