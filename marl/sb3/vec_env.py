"""One seat of a game, against whoever plays the others, as a vectorised environment of Stable-Baselines3."""

import time
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from games.game import Game, Lanes, Playable, factors
from games.lanes import close, lanes_of, put_like, to_numpy
from games.noise import Purpose
from games.policies import Uniform, draw_legal
from games.versus import Populations, Versus
from marl.collect import check_finite, check_legal


class VecEnvView(VecEnv):
    """Lanes that show one seat, as a `stable_baselines3.common.vec_env.VecEnv`: one environment a lane.

    Lanes step together, so every environment gives a transition in every step of the game, also where its seat waits
    for its turn, or is dead while the others play on. There, whatever is chosen is ignored, `action_masks` allow the
    first choice of every factor alone (so masked algorithms learn nothing from the choice), what the seat earns
    meanwhile is passed on, and discounts count the step.

    Where the seat acts, an algorithm that knows no masks may choose what is forbidden. One of the legal choices is then
    played, drawn uniformly from the lanes' own noise: forbidden choices are worth the mean of the legal ones, so that
    never does the best choice lie among them, nor does a maximum over all choices exceed that over the legal ones.

    Pictures [height, width] get an axis of one channel, and numbers one of one feature. `infos` hold
    "terminal_observation", "TimeLimit.truncated" and "episode" (return `r`, length `l`, seconds `t`) where an episode
    of the seat ended, as a `Monitor` would give them. The first `reset` after `seed(n)` plays the episodes of
    (n, `unit`); further ones those of (n, "`unit`/1"), (n, "`unit`/2"), ....

    Raises ValueError for lanes that show more than one seat, and spaces other than Box to observe and Box, Discrete or
    MultiDiscrete to act in; while stepping, where the seat has no legal action, and FloatingPointError where an
    observation or a reward is not finite, naming the lane and the step.
    """

    render_mode = None  # a VecEnv asks for it before it sets it

    def __init__(self, lanes: Lanes, seed: int = 0, unit: str = "train"):
        if len(lanes.agents) != 1:
            raise ValueError(
                f"the lanes of a VecEnvView show one seat, got {len(lanes.agents)}: let games.versus.Versus play the "
                "others, or make the environment with marl.sb3.vec_env.vec_env"
            )
        self.lanes, self.agent, self._unit = lanes, lanes.agents[0], unit
        self._acts_in = lanes.action_spaces[0]
        self._choices = None if isinstance(self._acts_in, Box) else factors(self._acts_in)
        # A copy, for Stable-Baselines3 seeds and draws from the space.
        super().__init__(lanes.num_lanes, _shown(lanes.observation_spaces[0]), deepcopy(self._acts_in))
        self._began = time.monotonic()
        self._start(seed)

    def _start(self, seed: int) -> None:
        self._seed, self._resets, self._steps = seed, 0, 0

    def seed(self, seed: int | None = None) -> Sequence[int]:
        """Choose the episodes that the next `reset` starts. Raises ValueError without a seed."""
        if seed is None:
            raise ValueError("a VecEnvView plays by its seed: give it a non-negative integer")
        self._start(seed)
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        self.lanes.reset(self._seed, f"{self._unit}/{self._resets}" if self._resets else self._unit)
        self._resets += 1
        self._steps = 0
        self._returns = np.zeros(self.num_envs)  # of the episodes under way
        self._lengths = np.zeros(self.num_envs, np.int64)
        self.last_returns = np.full(self.num_envs, np.nan)
        """[B] of each lane's last whole episode; nan before the first."""
        return self._observations()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        alive = to_numpy(self.lanes.alive)[:, 0].copy()
        outcome = self.lanes.step((put_like(self._playable(self._actions), self.lanes.acting),))
        self._steps += 1
        # Copies, for Stable-Baselines3 adds to the rewards, and lanes may write to their arrays.
        rewards = np.array(to_numpy(outcome.rewards)[:, 0], np.float32)
        terminated, cut = (to_numpy(part)[:, 0] for part in (outcome.terminated, outcome.truncated))
        done = to_numpy(outcome.done)
        if not np.isfinite(rewards).all():
            lane = int((~np.isfinite(rewards)).argmax())
            raise FloatingPointError(f"{self.agent} is paid {rewards[lane]} in lane {lane} at step {self._steps}")
        ended = alive & (terminated | cut | done)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._returns += rewards
        self._lengths += alive
        if ended.any():
            self._tell(infos, ended, cut & ~terminated)
        return self._observations(), rewards, ended | done, infos

    def _tell(self, infos: list[dict[str, Any]], ended: np.ndarray, cut: np.ndarray) -> None:
        """Write what there is to know of the episodes that ended, and begin to count the next ones."""
        final = self._seen(self.lanes.final_observations(0))
        seconds = round(time.monotonic() - self._began, 6)
        for lane in np.flatnonzero(ended).tolist():
            episode = {"r": float(self._returns[lane]), "l": int(self._lengths[lane]), "t": seconds}
            infos[lane] |= {
                "terminal_observation": final[lane],
                "TimeLimit.truncated": bool(cut[lane]),
                "episode": episode,
            }
        self.last_returns = np.where(ended, self._returns, self.last_returns)
        self._returns[ended] = 0.0
        self._lengths[ended] = 0

    def action_masks(self) -> np.ndarray:
        """[B, A_1 + ... + A_F] bool: which choices are legal, one factor after the other, as MaskablePPO asks for them.

        Raises ValueError for continuous actions, which have none, and where the seat acts without a legal choice.
        """
        return np.concatenate(self._masks(), axis=1)

    def _masks(self) -> list[np.ndarray]:
        if self._choices is None:
            raise ValueError(f"only choices have masks, and {self.agent} acts in {self._acts_in}")
        legal, acting = self.lanes.legal(0), to_numpy(self.lanes.acting)[:, 0]
        if legal is None:
            masks = [np.ones((self.num_envs, size), bool) for size in self._choices]
        else:
            masks = [np.array(to_numpy(mask)) for mask in legal]
        check_legal(self.agent, acting, tuple(masks), self._steps)
        for mask in masks:
            mask[~acting] = np.arange(mask.shape[1]) == 0
        return masks

    def _playable(self, actions: np.ndarray) -> np.ndarray:
        """Actions as lanes take them: of their dtype, within bounds, and legal."""
        if self._choices is None:
            assert isinstance(self._acts_in, Box)
            # Scaling to the bounds may round beyond them.
            return np.clip(actions, self._acts_in.low, self._acts_in.high).astype(self._acts_in.dtype)
        chosen = np.asarray(actions, np.int64).reshape(self.num_envs, len(self._choices))
        if self.lanes.legal(0) is not None:
            chosen = self._legalised(chosen)
        return chosen[:, 0] if isinstance(self._acts_in, Discrete) else chosen

    def _legalised(self, chosen: np.ndarray) -> np.ndarray:
        noise = to_numpy(self.lanes.noise(Purpose.SEAT, chosen.shape[1]))
        columns = [
            np.where(np.take_along_axis(mask, choice[:, None], 1)[:, 0], choice, draw_legal(mask, noise[:, factor]))
            for factor, (mask, choice) in enumerate(zip(self._masks(), chosen.T, strict=True))
        ]
        return np.stack(columns, axis=1)

    def _observations(self) -> np.ndarray:
        return self._seen(self.lanes.observe(0))

    def _seen(self, observations: Any) -> np.ndarray:
        """A copy, as the space shows them."""
        space = self.observation_space
        seen = np.array(to_numpy(observations), space.dtype)
        check_finite(self.agent, seen, self._steps)
        return seen.reshape(self.num_envs, *(space.shape or ()))

    def state_dict(self) -> dict[str, Any]:
        """Everything `load_state_dict` needs to go on from here, after `reset`; as far as the lanes give theirs."""
        counts = {name: getattr(self, name).copy() for name in ("_returns", "_lengths", "last_returns")}
        seeds = {"seed": self._seed, "resets": self._resets, "steps": self._steps}
        return {"lanes": self.lanes.state_dict()} | counts | seeds

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the `state_dict()` of a view of equal lanes."""
        self.lanes.load_state_dict(state["lanes"])
        self._seed, self._resets, self._steps = state["seed"], state["resets"], state["steps"]
        for name in ("_returns", "_lengths", "last_returns"):
            setattr(self, name, np.array(state[name]))

    def close(self) -> None:
        close(self.lanes)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The view's own attribute, once for every lane asked about; there are no environments behind it."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise ValueError(f"the lanes of a VecEnvView are one: set {attr_name} of the view itself")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **named: Any) -> list[Any]:
        """The view's answer for all lanes, of which each of those asked about gets its row."""
        answers = getattr(self, method_name)(*args, **named)
        return [answers[lane] for lane in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


def vec_env(
    game: Game | Playable,
    num_envs: int,
    seat: int = 0,
    populations: Populations | None = None,
    sigma: np.ndarray | None = None,
    seed: int = 0,
) -> VecEnvView:
    """`seat` of a game, whose other seats play one joint profile of `populations` an episode, drawn from `sigma`.

    Without populations, the others play uniformly at random; without sigma [k_1, ..., k_N], all profiles are as likely.

    >>> from games import make
    >>> from sb3_contrib import MaskablePPO
    >>> env = vec_env(make("openspiel:kuhn_poker"), num_envs=4, seat=1)
    >>> model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=64, seed=0).learn(64)
    """
    if populations is None:
        populations = [[Uniform.of(space)] for space in game.action_spaces]
    if sigma is None:
        sizes = tuple(len(population) for population in populations)
        sigma = np.full(sizes, 1 / np.prod(sizes))
    return VecEnvView(Versus(lanes_of(game, num_envs), populations, sigma, (seat,)), seed)


def _shown(space: Space) -> Box:
    """The observation space as it is shown: pictures of one channel have an axis of it."""
    if not isinstance(space, Box):
        raise ValueError(f"Stable-Baselines3 is shown Boxes, got {space}: flatten observations first")
    shape = (1, *space.shape) if len(space.shape) in (0, 2) else space.shape
    return Box(space.low.reshape(shape), space.high.reshape(shape), dtype=space.dtype.type)
