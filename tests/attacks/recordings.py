"""Damaged recordings: each is read as sound conversations and named problems, or the attack has found something."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from tests.attacks import Outcome, outcome
from tests.scenarios.readers.samples import SAMPLES
from tests.scenarios.readers.test_fuzz import come_out, mutated, spoilt
from tests.scenarios.test_packed import read_damaged


def values(seed: int, tries: int) -> Outcome:
    """Put other values, none, two, huge and deep ones into recordings of every format."""
    return _each_format(seed, tries, lambda data, name: data.draw(mutated(SAMPLES[name])))


def bytes_(seed: int, tries: int) -> Outcome:
    """Cut, delete, insert and flip bytes of recordings of every format."""
    return _each_format(seed, tries, lambda data, name: data.draw(spoilt(SAMPLES[name])))


def archives(seed: int, tries: int) -> Outcome:
    """Damage zip and tar archives and compressed files."""
    return searched(seed, tries, read_damaged)


def _each_format(seed: int, tries: int, draw: Callable[[st.DataObject, str], bytes]) -> Outcome:
    def read_one(data: st.DataObject) -> str:
        name = data.draw(st.sampled_from(sorted(SAMPLES)))
        text = draw(data, name)
        try:
            come_out(name, SAMPLES[name], text, name)
            come_out(name, SAMPLES[name], text, None)
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}: {text!r}") from error
        return name

    return searched(seed, tries, read_one)


def searched(seed: int, tries: int, attempt: Callable[[st.DataObject], object]) -> Outcome:
    """Attempt what hypothesis draws; of what fails it finds the smallest example, which is what is reported."""
    tried = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=tries,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=True,
    )
    @hypothesis.given(data=st.data())
    def search(data: st.DataObject) -> None:
        nonlocal tried
        tried += 1
        attempt(data)

    try:
        search()
    except Exception as error:
        found = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        # Its notes are the smallest example, draw by draw.
        return outcome(tried, ["\n".join((repr(each), *getattr(each, "__notes__", ()))) for each in found])
    return outcome(tried, [])
