"""Games a little different: each wrapper is a function from a game to a game, and they compose.

>>> from games import make
>>> from games.wrappers import flickering, stacked
>>> game = stacked(flickering(make("t_maze"), p=0.5), frames=4)
>>> game.observation_spaces[0].shape
(16,)
"""

from collections.abc import Callable

from games.game import Game
from games.wrappers.chance import flickering, sticky_actions
from games.wrappers.limits import time_limit
from games.wrappers.measured import Moments, moments
from games.wrappers.observations import agent_indicator, normalised, stacked
from games.wrappers.rewards import mixed_reward

__all__ = [
    "WRAPPERS",
    "Moments",
    "agent_indicator",
    "flickering",
    "mixed_reward",
    "moments",
    "normalised",
    "stacked",
    "sticky_actions",
    "time_limit",
]

WRAPPERS: dict[str, Callable[..., Game]] = {
    wrapper.__name__: wrapper
    for wrapper in (agent_indicator, flickering, mixed_reward, normalised, stacked, sticky_actions, time_limit)
}
"""Every wrapper by name; each takes a game first."""
