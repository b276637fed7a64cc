"""Answering: what answerers make of the contexts that strategies would send for a probe, and how that is graded.

probes of a run ─▶ Question ─▶ answerer ─┬─ offline      an extractive reader, no model (metrics.reading)
                                         └─ chat         any model, with a tool loop (models)
                                    Answer ─▶ grader ─▶ parts `answers/`, `grades/` ─▶ figures

A run has the context of every probe. A model that calls a tool of the strategy needs the strategy itself: it is started
anew and shown what came before the question (`live.py`). Decision 24.
"""
