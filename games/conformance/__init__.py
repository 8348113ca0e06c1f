"""Conformance of PettingZoo environments, anyone's, and of the kernels behind ours; rule by rule, and by whole episodes."""

from games.conformance.rules import ConformanceError, Report
from games.conformance.suite import RULES, check, check_faces

__all__ = ["RULES", "ConformanceError", "Report", "check", "check_faces"]
