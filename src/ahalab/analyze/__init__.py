"""From answers to verdicts: paired comparisons, ablation, changed responses, claims."""
