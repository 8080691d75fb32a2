"""Closed vocabularies shared by the records (DESIGN.md, "Words")."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["correct", "wrong", "unparsed", "truncated", "error"]
"""What a scorer says of one response."""

Finish = Literal["eos", "stop", "length", "content_filter", "tool_calls"]
"""Why generation ended: the model's end token, a stop condition, or the token limit (cut).

The last two are an endpoint's own doing (it filtered the text, or took it for a call of a tool):
such a text is no answer of the model, and its outcome is `error`.
"""

Metric = Literal["strict", "lenient"]
"""Which reading of an answer counts: in the asked format, or wherever it is clearly stated."""

METRICS: tuple[Metric, ...] = ("strict", "lenient")
"""Both readings, in the order in which they are told."""

Side = Literal["base", "adapter"]
"""Which weights answered."""

Split = Literal["train", "eval", "validation"]
"""Which set a prompt belongs to; no question belongs to two."""
