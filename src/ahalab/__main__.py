"""`python -m ahalab`: the same as the command `ahalab`."""

from ahalab.cli import main

raise SystemExit(main())
