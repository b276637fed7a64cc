"""A probe is asked without a trace: no other knows of it, whatever the strategy keeps."""

import json

import pytest
from msgspec.structs import replace

from ctxbench.harness.probes import ask_probes
from ctxbench.harness.replay import ContextLog, ConversationIndex
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Probe
from ctxbench.strategies.chain import parse
from tests.harness.probes.probe_strategies import COUNTER, STATEFUL, asking, found
from tests.strategies.scripted_models import Replying


@pytest.mark.parametrize("spec", STATEFUL)
def test_one_probe_does_not_know_of_another(spec: str) -> None:
    """What is sent for a probe is the same alone and among others, in any order."""
    for conversation in list(scenario("smoke"))[:3]:
        together = {row["number"]: row for row in found(conversation, spec)}
        for number, probe in list(enumerate(conversation.probes))[::2]:
            [alone] = found(replace(conversation, probes=(probe,)), spec)
            assert alone | {"number": number} == together[number]


def test_a_strategy_of_which_nothing_is_known(plugin: str) -> None:
    """One that says nothing is started anew for each probe: each finds it as after the calls before, and only those."""
    conversation = asking(*(Probe(f"p{at}", f"? {at}", after=f"m{at}") for at in (4, 4, 20)))
    texts = [json.loads(row["written"][0])["text"] for row in found(conversation, f"{plugin}:Counts")]
    assert texts == ["call 3", "call 3", "call 11"]


def test_nobody_is_paid_twice(plugin: str) -> None:
    """A replay for a probe has the replies of the first one: models are asked for the question alone."""
    conversation = asking(Probe("a", "what?", after="m4"), Probe("b", "and?"))
    models = Replying()
    probed = ask_probes(
        ConversationIndex(conversation, COUNTER), parse(f"{plugin}:Asks"), models, ContextLog(conversation.messages)
    )
    assert [prompt.material for prompt in models.prompts if "?" in prompt.material[0]] == [("what?",), ("and?",)]
    assert len(models.prompts) == 10 + 2
    assert [[json.loads(event)["model"] for event in row["events"]] for row in probed] == [["replying"]] * 2
