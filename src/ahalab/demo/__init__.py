"""Saved answers, replayed in the terminal and scored live; no torch, no network."""
