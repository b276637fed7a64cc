"""Probing: what each strategy would send for the questions that a recording has answers to.

A probe is asked at its place: the history up to there, the question as the newest user message. What is sent is kept
in the run folder (table `probes`), as steps are, and measured without any model (`metrics.probing`); `load.Run.asked`
gives it back to whoever has models answer. Decision 22 says how a question is kept from leaving a trace.
"""

FLOOR, CEILING = "last_turn", "evidence_only"
"""What bounds every strategy. Every run asks them its probes."""
