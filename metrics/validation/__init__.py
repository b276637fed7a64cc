"""Validation of the cache models: predictions for recorded calls, compared with the usage that providers reported.

requests      recorded calls, with their prompts as numbered prefixes
calibration   our token counts in place of the provider's
comparison    each call predicted, once with the provider's token counts, once with ours; and why the two disagree
validation    agreement by model and rule, recorded costs against usage and prices, and all of it together
"""
