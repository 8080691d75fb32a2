"""Rechecks a study from its files alone: no torch, no network, no write access (EVIDENCE.md)."""
