"""The four tiers of design document 004: Focus, Working, Archive, RAG. Each is a component usable alone."""
