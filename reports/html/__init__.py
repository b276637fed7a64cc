"""The report of a run that people read: one HTML file that needs nothing else, and the same as Markdown and CSV.

page         the page, its tabs, and what a section of it is: words, tables, charts as parts of the page, exact frames
sections     the first screen and the other sections; one without data in the run is left out
inspector    the conversations of the inspector, packed
folder       the files: report.html, report.md, tables/, and if asked figures/
view         what `ctxbench view` serves: the list of runs, reports, comparisons
templates/   the page's HTML, style, scripts and words
"""
