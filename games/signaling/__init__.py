"""Signalling games: the rules, exact values, and scripted pairs of speakers and listeners."""

from games.signaling.rules import Signaling, State

__all__ = ["Signaling", "State"]
