"""Who earns what."""

from dataclasses import dataclass

from games.game import Array, Game
from games.numbers import real
from games.wrappers.wrapped import Params, State, Wrapped


def mixed_reward(game: Game, share: float = 1.0) -> Game:
    """Everyone earns (1 - share) times its own reward, and `share` times the sum of everyone's: 1 makes a team.

    Raises ValueError for a share out of [0, 1].
    """
    return MixedReward(game, real("share", share, 0, 1))


@dataclass(frozen=True)
class MixedReward(Wrapped):
    """See `mixed_reward`."""

    share: float

    def rewards(self, params: Params, state: State) -> Array:
        own = super().rewards(params, state)
        team = own[:, 0]
        for seat in range(1, own.shape[1]):  # in one order, whatever the arrays
            team = team + own[:, seat]
        return own * (1 - self.share) + team[:, None] * self.share
