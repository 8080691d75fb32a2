"""How every stage reads and writes a study: layout, rows with a journal, manifest, fingerprints."""
