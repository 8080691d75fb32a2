"""The report: one HTML file that a person reads, made from a study's files alone."""
