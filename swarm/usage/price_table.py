"""The price table: the user's own prices first, then the shipped ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.project.config.prices import parse
from swarm.usage.spending.prices import Prices

if TYPE_CHECKING:
    from swarm.project.config.settings import Settings

_FILE = Path(__file__).parents[1] / "data" / "prices.json"


def load(settings: Settings) -> Prices:
    """Return the prices that count in a repository."""
    table = json.loads(_FILE.read_text(encoding="utf-8"))
    return Prices(table, dict(parse(line) for line in settings.usage.prices))
