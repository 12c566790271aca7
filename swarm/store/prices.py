"""The table of prices that swarm ships, with the user's own before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.domain.prices import parse
from swarm.pane.spending.prices import Prices

if TYPE_CHECKING:
    from swarm.domain.settings import Settings

_FILE = Path(__file__).parents[1] / "data" / "prices.json"


def load(settings: Settings) -> Prices:
    """Return the prices that count in a repository."""
    table = json.loads(_FILE.read_text(encoding="utf-8"))
    return Prices(table, dict(parse(line) for line in settings.usage.prices))
