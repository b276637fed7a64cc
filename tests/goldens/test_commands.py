"""Each command prints what its golden file says; `python -m tests.goldens.write commands` writes them anew."""

import json
from itertools import zip_longest
from typing import Any

import pytest

from tests.goldens.commands import COMMANDS, GOLDENS, SLOW, Workplace, path_of


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(tmp_path_factory.mktemp("commands"))


@pytest.mark.parametrize("name", [*COMMANDS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_a_command_prints_what_its_golden_file_says(name: str, place: Workplace) -> None:
    golden = json.loads(path_of(name).read_text("utf-8"))
    different = differences(golden, json.loads(json.dumps(place.golden(name))))
    assert not different, f"{name}: {len(different)} values differ\n" + "\n".join(different[:10])


def test_each_file_is_of_a_command() -> None:
    assert set(GOLDENS.iterdir()) == {path_of(name) for name in (*COMMANDS, *SLOW)}


def differences(golden: Any, now: Any, place: str = "") -> list[str]:
    """Return a line for each value that is another: where it is, what it was and what it is now."""
    if isinstance(golden, dict) and isinstance(now, dict):
        keys = dict.fromkeys((*golden, *now))
        pairs = [(f"{place}.{key}", golden.get(key, "(nothing)"), now.get(key, "(nothing)")) for key in keys]
    elif isinstance(golden, list) and isinstance(now, list):
        both = enumerate(zip_longest(golden, now, fillvalue="(nothing)"))
        pairs = [(f"{place}[{number}]", before, after) for number, (before, after) in both]
    else:
        return [] if golden == now else [f"  {place}: {golden!r} → {now!r}"]
    return [line for where, before, after in pairs for line in differences(before, after, where)]
