"""Measure context strategies from Python.

    import ctxbench

    run = ctxbench.run("recordings", strategies=["none", "retrieval", "archive"])
    print(run.verdict())              # which strategy to ship, as `ctxbench report` prints it
    run.summary()                     # a data frame with a row per strategy
    run.plot("frontier")              # a matplotlib figure
    run = ctxbench.load("runs/mine")  # a run that was made before

Imports happen on first use (PEP 562): `import ctxbench` comes with every command, and must cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers take it; `typing` is not imported, since Ctrl-C meanwhile would print a trace
if TYPE_CHECKING:
    from ctxbench.api.runs import BenchmarkRun, compare_live, load, run
    from ctxbench.api.verdict import BenchmarkGate, BenchmarkLive, BenchmarkVerdict
    from ctxbench.metrics.figures import metric
    from ctxbench.scenarios.errors import UserError

__all__ = [
    "BenchmarkGate",
    "BenchmarkLive",
    "BenchmarkRun",
    "BenchmarkVerdict",
    "UserError",
    "__version__",
    "compare_live",
    "load",
    "metric",
    "run",
]

_MODULES = {
    "BenchmarkGate": "ctxbench.api.verdict",
    "BenchmarkLive": "ctxbench.api.verdict",
    "BenchmarkRun": "ctxbench.api.runs",
    "BenchmarkVerdict": "ctxbench.api.verdict",
    "UserError": "ctxbench.scenarios.errors",
    "compare_live": "ctxbench.api.runs",
    "load": "ctxbench.api.runs",
    "metric": "ctxbench.metrics.figures",
    "run": "ctxbench.api.runs",
}

__version__: str


def __getattr__(name: str) -> object:
    """Import what the package offers when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("ctxbench")
    elif name in _MODULES:
        from importlib import import_module

        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
