"""Pong: two paddles, one ball [Alcorn, Atari 1972]."""

from games.pong.rules import Pong

__all__ = ["Pong"]
