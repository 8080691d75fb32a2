"""Training one arm under one seed with TRL and LoRA, every completion recorded."""
