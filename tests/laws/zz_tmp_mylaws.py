import pytest
from ctxbench.harness.laws import LAWS
from ctxbench.harness.laws.conversations import conversations
from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.chain import parse
from hypothesis import HealthCheck, given, settings
SPECS=("retrieval(recent=1)","retrieval(recent=1, slack=2, place='end')","retrieval(recent=2) | cache_marks","layered(recent=1, slack=1, max_tokens=150, place='end')","retrieval","retrieval(recent=1, place='end', limit=2)","retrieval(max_tokens=120, recent=2)","retrieval(max_tokens=200, recent=9, place='end')",
"layered(recent=1)","layered(recent=1, place='end', search='document')","layered(max_tokens=150, recent=2, ttl_hours=0)","layered(recent=1,promote_after=1)",
"facts","facts(place='end', turns=1, max_tokens=60)","facts(extractor='model')","facts | window(max_tokens=200)","window(messages=6) | facts","window(messages=6) | retrieval(recent=1)","facts | layered(recent=1, max_tokens=200)","smart | retrieval(recent=1)")
@pytest.mark.parametrize("spec",SPECS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(conversation=conversations())
def test_law(law, spec, conversation):
    law(parse(spec), conversation)
@pytest.mark.parametrize("spec",SPECS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_traps(law, spec):
    for c in scenario("traps"): law(parse(spec), c)
