"""How many files this process has open."""

from __future__ import annotations

import gc
import os


def open_descriptors() -> int:
    """Return it without what earlier tests left to the garbage collector, which may come at any moment."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
