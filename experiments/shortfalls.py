"""How far verification oracles are known to fall short: measured where gaps are exact (papers/verification)."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_suffix(".jsonl")
"""A line a game and meta-strategy, written by `python -m papers.verification.run`."""


def shortfalls(oracle: str) -> list[dict[str, Any]]:
    """What was measured of an oracle, by its name; nothing of most."""
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return [line for line in lines if line["oracle"] == oracle]
