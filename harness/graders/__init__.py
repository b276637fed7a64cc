"""Graders of answers that ask a model, and their calibration against labelled answers."""
