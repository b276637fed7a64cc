"""Design document 002's memory injection as it is written there, with scikit-learn and tiktoken."""

from __future__ import annotations

from typing import Any

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Recalled
from tests.perf.langchain_peers import langchain
from tests.perf.peers import Count, Peer, Stage, Step


def document_facts(tokens: int = 2000, turns: int = 3) -> Peer:
    """Design document 002 as it is written: a new TfidfVectorizer at each call, tiktoken for each fact.

    Facts and confidences are those that ours has at that call. Where they come from is not timed: 002 does not say.
    """

    def start(conversation: Conversation, count: Count) -> Step:
        inject = injection(conversation, count, tokens, turns)
        made = langchain(conversation)
        return lambda at: inject(made[:at])

    return Peer("002's own way (scikit-learn, tiktoken)", start, grows=False)


def injection(conversation: Conversation, count: Count, tokens: int, turns: int) -> Stage:
    """002's MemoryMiddleware.before_model."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.metrics.pairwise import cosine_similarity  # type: ignore[import-untyped]

    known = facts_of(conversation)

    def recent(said: list[Any]) -> str:
        parts, heard = [], 0
        for message in reversed(said):
            if isinstance(message, HumanMessage):
                parts.append(str(message.content))
                heard += 1
                if heard >= turns:
                    break
            elif isinstance(message, AIMessage) and not message.tool_calls:
                parts.append(str(message.content))
        return " ".join(reversed(parts))

    def stage(said: list[Any]) -> list[Any]:
        facts = known[said[-1].id]
        context = recent(said)
        scores = [confidence for _, confidence in facts]
        if facts and context:
            matrix = TfidfVectorizer().fit_transform([*(text for text, _ in facts), context])
            similar = cosine_similarity(matrix[-1], matrix[:-1])[0]
            scores = [0.6 * near + 0.4 * sure for near, sure in zip(similar, scores, strict=True)]
        lines, left = [], tokens
        for at in sorted(range(len(facts)), key=lambda at: -scores[at]):
            line = f"- {facts[at][0]}"
            left -= count(line)
            if left < 0:
                break
            lines.append(line)
        text = "\n".join(lines)
        return [SystemMessage(f"<memory>\n{text}\n</memory>", name="memory_context"), *said]

    return stage


def facts_of(conversation: Conversation) -> dict[str, list[tuple[str, float]]]:
    """By the id of the message before each call: all facts that ours knows then, with their confidences."""
    services = RecordedContext(ConversationIndex(conversation, TokenCounter()))
    view = parse("facts(max_tokens=10000000, similarity=0, confidence=1)").start(services)
    known: dict[str, list[tuple[str, float]]] = {}
    for at in conversation.calls():
        sent = view(Context(Messages.prefix(conversation.messages, at))).messages
        scores = [score for event in services.drain()[0] if isinstance(event, Recalled) for score in event.scores]
        note = next((each.text for each in sent if each.id.startswith("facts:")), "")
        lines = [line.removeprefix("- ") for line in note.splitlines()[1:-1]]
        known[conversation.messages[at - 1].id] = list(zip(lines, scores, strict=True))
    return known
