"""A rule-based player of Pong, as good as it is attentive."""

from dataclasses import dataclass

from array_api_compat import array_namespace

from games.game import Array, Legal
from games.numbers import keep, real
from games.policies import draw
from games.pong.rules import DOWN, STAY, UP, Pong


@dataclass(frozen=True)
class Follow:
    """Moves to where the ball will land, bounces included, and back to the middle while it flies away.

    It attends to the game with probability `skill` in every step, and else does any of the three at random: at 0 it
    plays uniformly, at 1 it errs in nothing. It aims at returning the ball, not at the opponent. Reads features.
    Raises ValueError for a skill outside [0, 1].
    """

    skill: float = 0.5
    steepest: float = Pong.steepest
    paddle_speed: float = Pong.paddle_speed
    """The game's own, as the policy should know them."""
    noise_size = 1

    def __post_init__(self) -> None:
        keep(self, skill=real("skill", self.skill, 0, 1))

    @classmethod
    def of(cls, game: Pong, skill: float = skill) -> "Follow":
        """For a game of any dynamics. Raises ValueError for one that shows pictures."""
        if game.pixels:
            raise ValueError("Follow reads features: make the game with pixels=False")
        return cls(skill, game.steepest, game.paddle_speed)

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        return draw(self.probabilities(observation, legal)[0], noise[:, 0]), None

    def probabilities(self, observation: Array, legal: Legal) -> tuple[Array]:
        """One [B, 3]: this game has one factor, and everything is legal."""
        xp = array_namespace(observation)
        away = self.target(observation) - observation[:, 0]
        near = 0.5 * self.paddle_speed
        wanted = {STAY: abs(away) <= near, UP: away > near, DOWN: away < -near}
        columns = [xp.astype(wanted[action], xp.float32) for action in sorted(wanted)]
        return (xp.stack(columns, axis=1) * self.skill + (1 - self.skill) / 3,)

    def target(self, observation: Array) -> Array:
        """[B] where the ball will be when it comes to the left edge; 0 where it does not."""
        xp = array_namespace(observation)
        x, y, dx, dy = (observation[:, column] for column in range(2, 6))
        comes = dx < 0
        slope = dy * self.steepest / xp.where(comes, dx, -1.0)
        straight = y - slope * (x + 1)
        # Bounces fold the line back at -1 and 1: a zigzag of period 4.
        phase = (straight + 1) * 0.25
        landing = 1 - abs((phase - xp.floor(phase)) * 4 - 2)
        return xp.where(comes, landing, 0.0)
