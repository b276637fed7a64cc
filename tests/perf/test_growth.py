"""`make perf`: what grows with the length of a conversation and should not: a call of `lab validate`, a step of ours.

Processor seconds at 500, 1,500 and 6,000 messages, as ratios to those at 500 in the same run: 1.0 is flat.
"""

from collections.abc import Callable
from time import process_time

import numpy as np
import pytest

from ctxbench.metrics.prices import Prices
from ctxbench.metrics.validation.comparison import Counters
from ctxbench.metrics.validation.validation import validation
from ctxbench.scenarios.model import Call, Conversation, Message, Usage
from tests.perf.peers import CLOCK, REPLYING, conversation, ours

pytestmark = pytest.mark.perf
SIZES = (500, 1500, 6000)
MODELS = ("claude-sonnet-5", "gpt-4o", "gpt-5.6")
NEAR = 100
"""Messages before each size whose calls are timed."""
ROUNDS = 3
STRATEGIES = ("none", "window(max_tokens=8000)", "focus", "facts", "retrieval", "layered")


def answered(messages: int, model: str) -> Conversation:
    """A conversation with usage: each call reads the prompt before it, and every seventh 64 tokens less."""
    made, prompt, read = list[Message](), 800, 0
    for at in range(messages // 2):
        prompt, started = prompt + 30, 1.76e9 + 10 * at
        usage = Usage(prompt, 20, read if at % 7 else max(0, read - 64), prompt - read if "claude" in model else None)
        made.append(Message(f"u{at}", "user", f"question {at} of some kind, please answer", time=started))
        call = Call(model=model, usage=usage, started=started)
        made.append(Message(f"a{at}", "assistant", f"answer {at} is this", time=started + 2, call=call))
        read, prompt = prompt, prompt + 20
    return Conversation("talk", tuple(made))


def validated(model: str) -> dict[int, float]:
    """Microseconds for each call of a conversation, the least of some rounds."""
    counters, prices = Counters(), Prices()
    validation([answered(20, model)], counters, prices)  # tables and encodings are loaded
    taken = {}
    for size in SIZES:
        talk, rounds = answered(size, model), list[float]()
        for _ in range(ROUNDS):
            began = process_time()
            validation([talk], counters, prices)
            rounds.append(process_time() - began)
        taken[size] = min(rounds) / (size // 2) * 1e6
    return taken


def stepped(spec: str) -> dict[int, float]:
    """Median microseconds of a step of a strategy close to each size."""
    talk = conversation("assistant", SIZES[-1])
    step, times = ours(spec, talk, REPLYING), list[tuple[int, float]]()
    for at in talk.calls():
        began = CLOCK()
        step(at)
        times.append((at, CLOCK() - began))
    return {size: float(np.median([took for at, took in times if size - NEAR < at <= size])) * 1e6 for size in SIZES}


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        *((f"validate, a call of {model}", lambda model=model: validated(model)) for model in MODELS),
        *((f"{spec}, a step", lambda spec=spec: stepped(spec)) for spec in STRATEGIES),
    ],
)
def test_growth(name: str, measure: Callable[[], dict[int, float]], capsys: pytest.CaptureFixture[str]) -> None:
    """Print microseconds at each size, and how many times those at the first."""
    taken = measure()
    with capsys.disabled():
        cells = (f"{size:,}: {took:,.0f} µs ({took / taken[SIZES[0]]:.1f}×)" for size, took in taken.items())
        print(f"\n| {name} | {' | '.join(cells)} |", end="")
