"""The stages in order, each skipped when its outputs are complete and current, as make would."""
