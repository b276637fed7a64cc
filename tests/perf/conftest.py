"""What the benchmarks run on: the sample recordings if they are there, else the embedded `standard` scenario."""

import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.source import Problems
from tests.conftest import RECORDINGS


def recorded() -> list[Conversation]:
    """The sample recordings if they are there, else the `standard` scenario."""
    if RECORDINGS.is_dir():
        return list(RunInputs((str(RECORDINGS),)).read(Problems()))
    return list(scenario("standard"))


@pytest.fixture(scope="session")
def corpus() -> list[Conversation]:
    """Conversations that are already in memory, so that reading files is not timed."""
    return recorded()
