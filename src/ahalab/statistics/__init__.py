"""Paired tests, intervals, seeds, power and multiplicity: pure functions of counts and arrays.

Differences are fractions (0.04 is four points), adapter minus base. What cannot be known is None,
never NaN. Randomness comes only from a seed or Generator that the caller passes.
"""
