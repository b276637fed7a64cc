"""The report of a run that people read: one HTML file that needs nothing else, and the same as Markdown and CSV."""
