"""Conformance of anyone's PettingZoo environments, of our kernels, and of lanes: rule by rule, by whole episodes."""

from games.conformance.rules import ConformanceError, Report
from games.conformance.suite import GAME_RULES, LANES, RULES, check, check_faces, check_game, check_lanes

__all__ = [
    "GAME_RULES",
    "LANES",
    "RULES",
    "ConformanceError",
    "Report",
    "check",
    "check_faces",
    "check_game",
    "check_lanes",
]
