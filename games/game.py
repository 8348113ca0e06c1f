"""The contracts of games and policies, and the meaning of every shape.

B lanes are played side by side; N seats; a seat's action has one or more factors. Per-seat things are tuples in seat
order and never stacked, so seats may differ. Arrays are NumPy's or torch's: kernels use whatever they are handed.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space

if TYPE_CHECKING:
    from games.channel import Placement

Array = Any
Params = Any  # a NamedTuple whose every array leaf is [1 or B, ...]
State = Any  # a nested tuple whose every leaf is [B, ...]
Memory = Any  # None, or a nested tuple whose every leaf is [B, ...]
Legal = tuple[Array, ...] | None  # one [B, A_f] boolean mask a factor, or None where everything is legal


@runtime_checkable
class Game(Protocol):
    """Rules as pure functions on a batch of lanes.

    Kernels are lane-wise and always see all B lanes; what they return on finished lanes is unspecified. Randomness is
    an argument: `noise` holds float32 uniforms in [0, 1). Nothing is written in place.
    """

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the N seats."""

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        """One a seat: features (D_seat,), or a picture (height, width) or (channels, height, width)."""

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        """One a seat; a Box is (D_seat,), bounded, of float32."""

    @property
    def noise_sizes(self) -> tuple[int, int]:
        """Uniforms a lane needs to start, and for a step."""

    def params(self, **overrides: Any) -> Params:
        """Tabulated parameters; every array leaf is [1 or B, ...], so that a sweep of cells runs as one batch."""

    def init(self, params: Params, noise: Array) -> State:
        """Starting states; noise [B, K0]."""

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        """Next states; noise [B, K]. One array of actions per seat: [B] or [B, factors] int64, or [B, D] float32."""

    def observe(self, params: Params, state: State, seat: int) -> Array:
        """[B, D_seat] float32, or [B, *shape] of a picture."""

    def legal(self, params: Params, state: State, seat: int) -> Legal:
        """One [B, A_f] boolean mask a factor, or None where everything is legal."""

    def acting(self, params: Params, state: State) -> Array:
        """[B, N] bool: all True when moves are simultaneous, one seat when turns alternate."""

    def rewards(self, params: Params, state: State) -> Array:
        """[B, N] of the step that led here; 0 at the start."""

    def terminated(self, params: Params, state: State) -> Array:
        """[B] bool: the rules ended the episode."""

    def truncated(self, params: Params, state: State) -> Array:
        """[B] bool: a limit outside the rules ended the episode."""

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        """One lane as readable text."""


@runtime_checkable
class Pictured(Protocol):
    """A game that can also be shown as pictures; optional. Its `render_fps`, if any, is a pace that one can follow."""

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """[height, width, 3] uint8 picture of one lane, of one size for all states, equal for equal states."""


@runtime_checkable
class Talking(Protocol):
    """A game whose agents talk, that tells which parts of actions and observations are messages; optional."""

    @property
    def channels(self) -> "tuple[Placement, ...]":
        """One for each of its channels; the faces' `metadata["channels"]` lists them."""


@runtime_checkable
class Policy(Protocol):
    """A way to play one seat, on all rows of a batch at once; scripted, tabular, neural and recurrent alike.

    For exact solutions it also tells its distribution, see `games.policies.joint_probabilities`.
    """

    @property
    def noise_size(self) -> int:
        """Uniforms a row needs per action: one column a factor where actions are drawn."""

    def start(self, lanes: int) -> Memory:
        """Memory of fresh episodes, every leaf [lanes, ...] of NumPy's arrays; None for a policy without memory.

        Whoever plays the policy moves it to where the lanes live (`games.lanes.put_like`) before the first `act`.
        """

    def act(self, observation: Array, legal: Legal, memory: Memory, noise: Array) -> tuple[Array, Memory]:
        """Actions, as `Game.step` takes them, for observation [B, D] and noise [B, noise_size], and the next memory."""


class Outcome(NamedTuple):
    """What a step of lanes brought; where `done`, the next observation already is of a fresh episode."""

    rewards: Array  # [B, N] float32
    terminated: Array  # [B, N] bool
    truncated: Array  # [B, N] bool
    done: Array  # [B] bool: the episode is over for everyone


class Lanes(Protocol):
    """B episodes of one game side by side, restarted as they end: all that learning code ever sees."""

    num_lanes: int
    agents: tuple[str, ...]

    @property
    def observation_spaces(self) -> tuple[Space, ...]:
        """One a seat."""

    @property
    def action_spaces(self) -> tuple[Space, ...]:
        """One a seat."""

    def reset(self, seed: int, *units: str) -> None:
        """Start every lane afresh, in equal blocks, one per unit of work; noise is keyed by (seed, unit)."""

    def noise(self, purpose: int, columns: int) -> Array:
        """[B, columns] uniforms keyed by (seed, unit, purpose, steps since reset)."""

    def step(self, actions: tuple[Array, ...]) -> Outcome:
        """Play one step; lanes whose episode ends start the next one at once."""

    def observe(self, seat: int) -> Array:
        """[B, D_seat] float32; dead seats observe zeros."""

    def legal(self, seat: int) -> Legal:
        """As `Game.legal`."""

    @property
    def acting(self) -> Array:
        """[B, N] bool, a subset of `alive`."""

    @property
    def alive(self) -> Array:
        """[B, N] bool."""

    def final_observations(self, seat: int) -> Array:
        """[B, D_seat] of the states the last step led to, before any restart; computed only when asked."""

    def state_dict(self) -> dict:
        """Everything `load_state_dict` needs to go on from here, in plain containers and arrays."""

    def load_state_dict(self, state: dict) -> None:
        """Go on from a `state_dict()` of equal lanes."""


@runtime_checkable
class Playable(Protocol):
    """Whatever is played in lanes without being a Game of pure functions: other people's environments.

    A value: equal to its pickled copy, which makes lanes that play the same.
    """

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the N seats."""

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        """As `Game.observation_spaces`."""

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete | Box, ...]:
        """As `Game.action_spaces`."""

    def lanes(self, num_lanes: int) -> Lanes:
        """That many episodes side by side, on NumPy, not reset."""


def factors(space: Space) -> tuple[int, ...]:
    """Numbers of choices per factor of an action space: (n,) for Discrete, nvec for MultiDiscrete.

    Raises ValueError for any other space.
    """
    if isinstance(space, Discrete):
        return (int(space.n),)
    if isinstance(space, MultiDiscrete) and space.nvec.ndim == 1:
        return tuple(int(n) for n in space.nvec)
    raise ValueError(f"actions must be Discrete or a flat MultiDiscrete, got {space}")


def feature_box(size: int) -> Box:
    """Observation space of `size` float32 features in [0, 1]."""
    return Box(0.0, 1.0, (size,), np.float32)
