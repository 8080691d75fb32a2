"""Closed vocabularies shared by the records (DESIGN.md, "Words")."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["correct", "wrong", "unparsed", "truncated", "error"]
"""What a scorer says of one response."""

Finish = Literal["eos", "stop", "length"]
"""Why generation ended: the model's end token, a stop condition, or the token limit (cut)."""

Metric = Literal["strict", "lenient"]
"""Which reading of an answer counts: in the asked format, or wherever it is clearly stated."""

Side = Literal["base", "adapter"]
"""Which weights answered."""

Split = Literal["train", "eval", "validation"]
"""Which set a prompt belongs to; no question belongs to two."""
