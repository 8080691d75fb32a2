"""Aha Lab: did my reward design really change the model, and can a stranger verify it?"""

__version__ = "0.1.0"
