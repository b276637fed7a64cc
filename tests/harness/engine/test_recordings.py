"""The sample recordings, every format of them, from files to figures."""

from pathlib import Path
from typing import NamedTuple

import pytest

from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.scenarios.source import Problems, files_below

WINDOW = "window(max_tokens=8000)"


class Held(NamedTuple):
    """What a folder of recordings holds. Calls are the steps of `none`; tokens are those of the whole histories."""

    conversations: int
    messages: int
    calls: int
    probes: int
    tokens: int


HELD = {
    "kdconv-zh": Held(450, 9737, 4868, 0, 209_164),
    "locomo": Held(10, 5882, 2925, 1986, 220_942),
    "memorybank": Held(30, 2264, 1132, 200, 90_917),
    "mini-swe-agent": Held(14, 2175, 1080, 0, 406_457),
    "mtrag": Held(666, 5862, 2931, 666, 341_268),
    "openhands": Held(8, 336, 164, 0, 153_326),
    "pi-sessions": Held(2, 1904, 910, 0, 543_263),
    "tau-bench": Held(200, 5308, 2454, 0, 726_348),
    "evouna": Held(0, 0, 0, 0, 0),
    "halluqa-zh": Held(0, 0, 0, 0, 0),
}


@pytest.mark.parametrize("name", HELD)
def test_sample_recordings(recordings: Path, tmp_path: Path, name: str) -> None:
    """Each folder replays without a problem, holds what it held before, and `window` sends nothing unsound of it."""
    folder = recordings / name
    plan = Plan(RunInputs((str(folder),)), ("none", WINDOW), probes=False, answers=False)
    manifest = execute(plan, tmp_path / "run")
    run = load(tmp_path / "run")
    conversations, steps = run.table("conversations"), run.table("steps")
    sent = steps[steps.strategy == "none"]
    assert manifest.problems == ()
    assert HELD[name] == Held(
        len(conversations),
        len(run.table("messages")),
        len(sent),
        conversations.probes.sum(),
        conversations.tokens.sum(),
    )
    assert set(run.table("results").status) <= {"ok"}
    assert (sent.tokens_sent == sent.tokens_full).all()
    windowed = steps[steps.strategy == WINDOW]
    assert len(windowed) == len(sent)
    for fault in ("orphan_results", "misordered", "dropped_system", "over_budget"):
        assert not windowed[fault].any(), fault
    if not len(conversations):
        assert manifest.ignored == tuple(str(path) for path in files_below(folder, Problems()))
