"""Base and adapters answer the same questions under one fixed protocol."""
