"""Parts that strategies share: units of a history, passages, summaries, facts, memories."""
