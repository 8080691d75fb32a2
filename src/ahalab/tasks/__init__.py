"""Where prompts come from: questions of a task, drawn by seed, checked for overlap, rendered to token ids."""
