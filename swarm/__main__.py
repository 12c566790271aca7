"""``python -m swarm``."""

from __future__ import annotations

import sys

from swarm.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
