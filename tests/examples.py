"""Number of examples that hypothesis tries in a test: all that it asks for, or a share in quick runs."""

from collections.abc import Collection

from hypothesis import HealthCheck, settings

PROFILES = {"quick": 30, "thorough": 100}
"""Examples in a hundred, by the name that `--hypothesis-profile` takes."""
FEWEST = 5


def examples(number: int, *, steps: int = 50, ignored: Collection[HealthCheck] = ()) -> settings:
    """Return settings that try this number of examples under the profile `thorough`, and its share under another.

    `steps` are those of a state machine, at most; `ignored` are health checks that say nothing of this test.
    """
    share = number * settings().max_examples // PROFILES["thorough"]
    fewest = min(number, FEWEST)
    return settings(max_examples=max(fewest, share), stateful_step_count=steps, suppress_health_check=tuple(ignored))
