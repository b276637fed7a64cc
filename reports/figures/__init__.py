"""Figures, drawn by matplotlib from what the tables show. `style.py` is what they have in common."""
