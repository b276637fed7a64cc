"""The report of a run that people look at: one HTML file that needs nothing else, and the same as Markdown and CSV.

section      what a section of it is: words, tables, figures, exact frames
sections/    one small file a section; a section without data in the run is left out
quality      which measure of quality the run has: the frontier stands on it
verdict      which strategies are on the frontier, what dominates the others, what breaks
inspected    the conversations that the inspector has, packed; cells makes one of them plain values
inline       a figure of matplotlib as a part of the page
page         the page; markdown the same as Markdown; folder writes it all
templates/   the page's HTML, style and scripts
"""
