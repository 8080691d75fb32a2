"""Where prompts come from: drawn by seed, checked for overlap, rendered to token ids."""
