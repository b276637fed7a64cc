"""What strategies are made of: units of a history, passages, summaries, facts, memories."""
