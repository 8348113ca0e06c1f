"""How far verification oracles are known to fall short: measured where gaps are exact (papers/verification)."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_suffix(".jsonl")
"""A line a game and meta-strategy, written by `python -m papers.verification.run`."""


def shortfalls(oracle: str) -> list[dict[str, Any]]:
    """What was measured of an oracle, by its name; nothing of most."""
    return [line for line in _lines() if line["oracle"] == oracle]


def measured_oracles() -> list[str]:
    """Names of those that anything was measured of."""
    return list(dict.fromkeys(line["oracle"] for line in _lines()))


def known_shortfall(oracle: str, settings: str) -> dict[str, Any] | None:
    """How an oracle was measured, and by game the shares of exact gaps that it found; None where it was not.

    `gained` are the shares that the deviations found gain in truth, `at_least` those that it could vouch for, each the
    least and the most of all meta-strategies; `missed` is the most that it left, in returns per episode.
    """
    lines = shortfalls(oracle)
    if not lines:
        return None
    first = lines[0]
    games = {line["game"]: [other for other in lines if other["game"] == line["game"]] for line in lines}
    return {
        "same_settings": first["settings"] == settings,
        **{name: first[name] for name in ("steps", "restarts", "episodes")},
        "games": {
            game: {
                "subjects": [line["subject"] for line in rows],
                **{name: _range([line[name] / line["exact"] for line in rows]) for name in ("gained", "at_least")},
                "missed": max(line["exact"] - line["gained"] for line in rows),
            }
            for game, rows in games.items()
        },
    }


def _lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def _range(shares: list[float]) -> list[float]:
    return [min(shares), max(shares)]
