"""Counterplay: multi-agent game theory on PettingZoo."""

__version__ = "0.1.0"
