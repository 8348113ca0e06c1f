"""Lanes that see another lanes' game a little differently."""

from array_api_compat import array_namespace

from games.game import Array, Lanes, Outcome
from games.lanes import close


class TeamReward:
    """Every seat earns the sum over all seats; implements `games.game.Lanes`.

    Wrap the game's own lanes, inside `games.versus.Versus`: a learner's lanes no longer show the others' rewards. It is
    for learners that shall play for a team, while the game and what is measured in it stay as they are, and takes
    whatever is played in lanes. `games.wrappers.mixed_reward` makes another game, of ours alone, for everybody.
    """

    def __init__(self, lanes: Lanes):
        self.lanes, self.num_lanes, self.agents = lanes, lanes.num_lanes, lanes.agents
        self.observation_spaces, self.action_spaces = lanes.observation_spaces, lanes.action_spaces

    def reset(self, seed: int, *units: str) -> None:
        self.lanes.reset(seed, *units)

    def noise(self, purpose: int, columns: int) -> Array:
        return self.lanes.noise(purpose, columns)

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        outcome = self.lanes.step(actions)
        xp, rewards = array_namespace(outcome.rewards), outcome.rewards
        return outcome._replace(rewards=xp.broadcast_to(xp.sum(rewards, axis=1, keepdims=True), rewards.shape))

    def observe(self, seat: int) -> Array:
        return self.lanes.observe(seat)

    def legal(self, seat: int) -> tuple[Array, ...] | None:
        return self.lanes.legal(seat)

    @property
    def acting(self) -> Array:
        return self.lanes.acting

    @property
    def alive(self) -> Array:
        return self.lanes.alive

    def final_observations(self, seat: int) -> Array:
        return self.lanes.final_observations(seat)

    def state_dict(self) -> dict:
        return self.lanes.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self.lanes.load_state_dict(state)

    def close(self) -> None:
        close(self.lanes)
