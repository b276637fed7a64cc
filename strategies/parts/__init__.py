"""What strategies are made of: cutting, summarising, remembering. Each is used by several, or keeps one readable."""
