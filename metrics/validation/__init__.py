"""Recorded calls put through the cache models of their provider and date, beside the usage that the provider reported.

asked        recorded calls, and what they were asked with (`contexts.py`: as numbered prefixes)
recorded     each call predicted, once with the provider's token counts, once with ours (`calibration.py`)
agreement    how far predictions agree, by model and rule; `reasons.py` says why they do not
pricing      recorded costs against usage and prices
faults       calls that cannot be compared, and why
validation   all of it
"""
