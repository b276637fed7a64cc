"""A grader beside human labels, and what is kept of it.

labelled sets ──part, sample──▶ items ──grader──▶ grades ──beside the labels──▶ profile ──▶ store ──▶ reports
                                    └─attacks───▶ grades ──▶ verdicts that were turned
"""

from __future__ import annotations
