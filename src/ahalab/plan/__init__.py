"""The study plan: YAML in, one strict and resolved `records.plan.Plan` out."""
