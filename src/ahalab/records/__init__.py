"""The schema of every artefact: strict, versioned msgspec structs, one file each."""
