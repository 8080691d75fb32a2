"""Scoring: the frozen training parser, the evaluation scorer, reward components and arms.

Pure: no input or output, no torch, no clock, no global random state. docs/scoring.md states the
rules, docs/arms.md the arms.
"""
