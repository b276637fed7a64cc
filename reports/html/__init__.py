"""The report of a run that people read: one HTML file that needs nothing else, and the same as Markdown and CSV.

page         the page, and what a section of it is: words, tables, figures, exact frames
verdict      the first screen: measure of quality, frontier, what dominates the others, what breaks
sections     the other sections; a section without data in the run is left out
inspector    the conversations of the inspector, packed
folder       the files: report.html, report.md, figures/, tables/
templates/   the page's HTML, style, scripts and words
"""
