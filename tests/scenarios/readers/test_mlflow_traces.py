"""MLflow's traces, as its library writes them and in each of their forms."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Usage
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, shown, usages

WRITE = """
import json, sys, mlflow
from mlflow.entities import SpanType
prompts, path = json.load(sys.stdin), sys.argv[1]
with mlflow.start_span("cats", span_type=SpanType.AGENT):
    mlflow.update_current_trace(metadata={"mlflow.trace.session": "s1"})
    for messages, answer in prompts:
        with mlflow.start_span("chat", span_type=SpanType.CHAT_MODEL) as span:
            span.set_inputs({"messages": messages, "model": "asked"})
            span.set_outputs({"model": "m", "choices": [{"message": answer, "finish_reason": "stop"}]})
            span.set_attribute("mlflow.chat.tokenUsage", {"input_tokens": 100, "output_tokens": 5,
                "total_tokens": 105, "cache_read_input_tokens": 60})
open(path, "w").write(mlflow.get_trace(mlflow.get_last_active_trace_id()).to_json())
"""


@pytest.mark.slow
def test_what_the_library_writes(tmp_path: Path) -> None:
    """A trace that MLflow's own library wrote gives the same conversation."""
    pytest.importorskip("mlflow")
    settings = {
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'mlflow.db'}",
        "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
        "DO_NOT_TRACK": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    }
    path = tmp_path / "trace.json"
    text = json.dumps([[PROMPT, CALLED], [LATER, SAID]])
    command = [sys.executable, "-c", WRITE, str(path)]
    subprocess.run(command, input=text, text=True, cwd=tmp_path, env={**os.environ, **settings}, check=True)
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert (chat.id, chat.meta, shown(chat)) == ("s1", {"agent": "cats"}, SHOWN)
    assert usages(chat) == [Usage(100, 5, 60)] * 2
