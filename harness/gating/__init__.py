"""Runs compared with one another, and the gate: what is measured by conversation, baselines, policies, verdicts."""
