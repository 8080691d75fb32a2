"""Ways to tamper with a sound study, each with the check of `ahalab verify` that must tell."""
