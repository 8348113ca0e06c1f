"""Lanes that see another lanes' game a little differently."""

from typing import Any

from array_api_compat import array_namespace

from games.game import Array, Lanes, Outcome
from games.lanes import close
from games.numbers import real


class TeamReward:
    """Every seat earns (1 - share) times its own reward, and `share` times the sum over all seats' (default: it alone).

    Implements `games.game.Lanes`. Wrap the game's own lanes, inside `games.versus.Versus`: a learner's lanes no longer
    show the others' rewards. It is for learners that shall play for a team, while the game and what is measured in it
    stay as they are, and takes whatever is played in lanes. `games.wrappers.mixed_reward` makes another game, of ours
    alone, for everybody.
    Raises ValueError for a share out of [0, 1].
    """

    def __init__(self, lanes: Lanes, share: float = 1.0):
        self.share = real("share", share, 0, 1)
        self.lanes, self.num_lanes, self.agents = lanes, lanes.num_lanes, lanes.agents
        self.observation_spaces, self.action_spaces = lanes.observation_spaces, lanes.action_spaces

    def reset(self, seed: int, *units: str) -> None:
        self.lanes.reset(seed, *units)

    def noise(self, purpose: int, columns: int) -> Array:
        return self.lanes.noise(purpose, columns)

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        outcome = self.lanes.step(actions)
        xp, rewards = array_namespace(outcome.rewards), outcome.rewards
        team = xp.broadcast_to(xp.sum(rewards, axis=1, keepdims=True), rewards.shape)
        return outcome._replace(rewards=team if self.share == 1 else rewards * (1 - self.share) + team * self.share)

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


class Rotated:
    """Lanes whose seats are taken in turn: in the j-th of N equal blocks of lanes, seat s is the game's s + j mod N.

    So a learner of one seat learns to play them all. Implements `games.game.Lanes`.

    Raises ValueError for seats of unlike spaces, and lanes that are not N equal blocks.
    """

    def __init__(self, lanes: Lanes):
        self.lanes, self.num_lanes, self.agents = lanes, lanes.num_lanes, lanes.agents
        self.observation_spaces, self.action_spaces = lanes.observation_spaces, lanes.action_spaces
        self._seats = len(self.agents)
        for spaces in (self.observation_spaces, self.action_spaces):
            for agent, space in zip(self.agents, spaces, strict=True):
                if space != spaces[0]:
                    unlike = f"{spaces[0]} of {self.agents[0]} is not {space} of {agent}"
                    raise ValueError(f"seats that are taken in turn need equal spaces: {unlike}")
        if self.num_lanes % self._seats:
            raise ValueError(
                f"{self._seats} seats are taken in turn in as many blocks of lanes: got {self.num_lanes} lanes, take "
                f"a multiple of {self._seats}"
            )
        each = self.num_lanes // self._seats
        self._blocks = [slice(j * each, (j + 1) * each) for j in range(self._seats)]
        self._columns = [[(seat + j) % self._seats for seat in range(self._seats)] for j in range(self._seats)]
        self._seen: dict[int, Array] = {}

    def reset(self, seed: int, *units: str) -> None:
        self._seen = {}
        self.lanes.reset(seed, *units)

    def noise(self, purpose: int, columns: int) -> Array:
        return self.lanes.noise(purpose, columns)

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        self._seen = {}
        outcome = self.lanes.step(tuple(self._by_block(actions, seat, -1) for seat in range(self._seats)))
        rewards, terminated, truncated, done = outcome
        return Outcome(self._turned(rewards), self._turned(terminated), self._turned(truncated), done)

    def observe(self, seat: int) -> Array:
        self._seen = self._seen or {inner: self.lanes.observe(inner) for inner in range(self._seats)}
        return self._by_block(self._seen, seat)

    def legal(self, seat: int) -> tuple[Array, ...] | None:
        masks = [self.lanes.legal(inner) for inner in range(self._seats)]
        if masks[0] is None:
            return None
        return tuple(self._by_block(factor, seat) for factor in zip(*masks, strict=True))

    @property
    def acting(self) -> Array:
        return self._turned(self.lanes.acting)

    @property
    def alive(self) -> Array:
        return self._turned(self.lanes.alive)

    def final_observations(self, seat: int) -> Array:
        return self._by_block([self.lanes.final_observations(inner) for inner in range(self._seats)], seat)

    def state_dict(self) -> dict:
        return self.lanes.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._seen = {}
        self.lanes.load_state_dict(state)

    def close(self) -> None:
        close(self.lanes)

    def _by_block(self, parts: Any, seat: int, turn: int = 1) -> Array:
        """[B, ...] one seat's rows, of those of every seat on the other side; a turn of -1 goes the way back."""
        rows = [parts[(seat + turn * j) % self._seats][block] for j, block in enumerate(self._blocks)]
        return array_namespace(*rows).concat(rows)

    def _turned(self, columns: Array) -> Array:
        """[B, N] in the order of the seats here."""
        return array_namespace(columns).concat(
            [columns[block][:, order] for block, order in zip(self._blocks, self._columns, strict=True)]
        )
