"""The viewer: a local page over studies, also while they run; reads them and writes nothing."""
