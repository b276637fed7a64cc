"""Statistics of comparison. The conversation is the unit: neither its steps nor its probes are independent."""
