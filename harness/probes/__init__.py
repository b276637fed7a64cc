"""Probes: questions with a known answer, put to a strategy at their place in a conversation."""
