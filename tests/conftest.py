"""What all tests share: where the sample recordings are, and that hypothesis has no clock (in CI, no chance either)."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import PROFILES

for name, number in PROFILES.items():
    settings.register_profile(name, deadline=None, derandomize="CI" in os.environ, max_examples=number)
settings.load_profile("quick")


def pytest_collection_finish() -> None:
    """Set aside what imports have made: garbage collection need not look through a million objects after each test."""
    gc.freeze()


RECORDINGS = Path(os.environ.get("CTXBENCH_RECORDINGS", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache and a state of the tests' own: none reads what this machine has. Weights, which are large, are linked."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxbench"
    folder = tmp_path_factory.mktemp("cache")
    (folder / "ctxbench").mkdir()
    for weights in usual.glob("*.gguf"):
        (folder / "ctxbench" / weights.name).symlink_to(weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder))
        patch.setenv("CTXBENCH_CACHE", "off")  # what a test changes is measured
        yield


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of sample recordings; the test is skipped where it is absent."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"no sample recordings at {RECORDINGS} (set CTXBENCH_RECORDINGS)")
    return RECORDINGS


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of three conversations, so that small runs have many parts."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 3)
