"""Conformance of anyone's PettingZoo environments, and of our kernels: rule by rule, and by whole episodes."""

from games.conformance.rules import ConformanceError, Report
from games.conformance.suite import GAME_RULES, RULES, check, check_faces, check_game

__all__ = ["GAME_RULES", "RULES", "ConformanceError", "Report", "check", "check_faces", "check_game"]
