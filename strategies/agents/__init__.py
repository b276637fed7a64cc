"""Context management that coding agents do themselves, simulated from their documentation and source code."""
