"""Record replies of the local model to dumped prompts: PROMPTS.jsonl and the file of replies, REPLIES.jsonl.zst.

`make record` calls it. Prompts that have a reply are not asked again, and each new reply is written at once.
"""

import sys
from pathlib import Path

import msgspec
import zstandard

from ctxbench.harness.answers.replies import ReplyLine, read_replies
from ctxbench.harness.folder.files import placed
from ctxbench.harness.models.local import NAME, Local, local_name
from ctxbench.harness.models.recorded import ModelRequest
from ctxbench.scenarios.errors import SetupError
from ctxbench.strategies.base import ModelError

TOKENS = 64  # of a reply, at most


class PromptLine(msgspec.Struct):
    """A line of `ctxbench lab answer --dump`."""

    digest: str
    text: str


def main(prompts: Path, replies: Path) -> None:
    """Ask the model what has no reply yet."""
    name, weights = local_name("")
    if name != NAME:
        raise SetupError(f"the weights of `local` are {name}, not {NAME}: get those with `make local-model`")
    model, lines = Local(weights), dict(read_replies(replies, NAME).lines) if replies.exists() else {}
    for number, line in enumerate(prompts.read_bytes().splitlines(), 1):
        prompt = msgspec.json.decode(line, type=PromptLine)
        if prompt.digest in lines:
            continue
        try:
            answer = model.chat(ModelRequest(name, prompt.text, 0.0, TOKENS))
            tokens = answer.usage.input if answer.usage else 0
            lines[prompt.digest] = ReplyLine(prompt.digest, answer.text, tokens=tokens)
        except ModelError as error:
            lines[prompt.digest] = ReplyLine(prompt.digest, missing=str(error))
        text = b"".join(msgspec.json.encode(lines[key]) + b"\n" for key in sorted(lines))
        with placed(replies) as draft:
            draft.write_bytes(zstandard.compress(text, 19))
        print(f"{number:,}: {prompt.digest[:12]}", file=sys.stderr)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
