"""The linear-quadratic regulator, and its game of several players: continuous actions with exact values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from games.canvas import DIM, GREEN, INK, WHITE, Canvas, Colour, mixed, seat_colour
from games.game import Array, Legal
from games.lanes import put_like
from games.numbers import keep, real, whole
from games.spelling import unknown


class Params(NamedTuple):
    """Nothing to tabulate here: numbers of the dataclass serve as they are."""


class State(NamedTuple):
    x: Array  # [B, d] float32
    controls: Array  # [B, N * m] float32 of the last step, player by player
    steps: Array  # [B] int64 played
    rewards: Array  # [B, N] float32


@dataclass(frozen=True, eq=False)
class LQR:
    """x' = A x + B_1 u_1 + ... + B_N u_N + w; a step costs player i x' Q_i x' + u_i R_i u_i, of the state it leads to.

    (Which is the textbook's cost with Q_i for the final state too, but without the start's.) States start uniformly in
    [-start, start]^d; every w is uniform in [-noise, noise]^d. Kernels multiply term by term, in one order, for matrix
    products differ in their last bits. All matrices are kept as read-only float64 arrays of float32 numbers.

    Raises ValueError for matrices of other shapes, that are not finite, or costs that are not symmetric, Q_i with a
    negative and R_i without a positive direction; for numbers out of range, and for states that outgrow float32.
    """

    A: Any
    """[d, d]"""
    B: Any
    """[N, d, m]"""
    Q: Any
    """[N, d, d]"""
    R: Any
    """[N, m, m]"""
    horizon: int = 20
    start: float = 1.0
    noise: float = 0.05
    limit: float = 1.0
    """Every control is within [-limit, limit]; exact values hold where the gains ask for no more."""

    def __post_init__(self) -> None:
        keep(self, horizon=whole("horizon", self.horizon))
        largest = float(np.finfo(np.float32).max)
        for name, least in (("start", 0.0), ("noise", 0.0), ("limit", float(np.finfo(np.float32).tiny))):
            keep(self, **{name: real(name, getattr(self, name), least, largest)})
        for name in "ABQR":
            matrix = np.array(getattr(self, name), np.float32).astype(np.float64)
            matrix.setflags(write=False)
            object.__setattr__(self, name, matrix)
        self._check_matrices()
        if not np.isfinite(self._reach).all():
            raise ValueError("states outgrow float32 within the horizon: shorten it, or make A smaller")

    def _check_matrices(self) -> None:
        shapes = {name: getattr(self, name).shape for name in "ABQR"}
        if self.B.ndim != 3 or 0 in self.B.shape:
            raise ValueError(f"B must be [N, d, m] for N players, got {shapes['B']}")
        players, d, m = self.B.shape
        wanted = {"A": (d, d), "B": (players, d, m), "Q": (players, d, d), "R": (players, m, m)}
        if shapes != wanted:
            raise ValueError(f"for B {shapes['B']} matrices must be {wanted}, got {shapes}")
        for name in "ABQR":
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} must be finite in float32")
        for name in "QR":
            costs = getattr(self, name)
            if (costs != costs.transpose(0, 2, 1)).any():
                raise ValueError(f"{name} must be symmetric, got {costs.tolist()}")
        least_q, least_r = np.linalg.eigvalsh(self.Q).min(), np.linalg.eigvalsh(self.R).min()
        if least_q < -1e-6 * np.abs(self.Q).max() or least_r <= 0:
            raise ValueError(f"Q must be positive semi-definite and R positive definite, got {least_q} and {least_r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple:
        matrices = tuple((matrix.shape, matrix.tobytes()) for matrix in (self.A, self.B, self.Q, self.R))
        return matrices, self.horizon, self.start, self.noise, self.limit

    def __repr__(self) -> str:
        matrices = ", ".join(f"{name}={getattr(self, name).round(6).tolist()}" for name in "ABQR")
        rest = ", ".join(f"{name}={getattr(self, name)}" for name in ("horizon", "start", "noise", "limit"))
        return f"LQR({matrices}, {rest})"

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"player_{seat}" for seat in range(len(self.B)))

    @cached_property
    def _reach(self) -> np.ndarray:
        """[d] how far from 0 any play at all can bring a state, in float32, with a little for its rounding."""
        x = reach = np.full(len(self.A), self.start)
        pushed = np.abs(self.B).sum(axis=(0, 2)) * self.limit + self.noise
        for _ in range(self.horizon):
            x = np.abs(self.A) @ x + pushed
            reach = np.maximum(reach, x)
        with np.errstate(over="ignore"):
            return (reach * (1 + 1e-4)).astype(np.float32)

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        """x, and the share of steps still to come."""
        low, high = np.append(-self._reach, np.float32(0)), np.append(self._reach, np.float32(1))
        return tuple(Box(low, high, dtype=np.float32) for _ in self.agents)

    @property
    def action_spaces(self) -> tuple[Box, ...]:
        return tuple(Box(-self.limit, self.limit, (self.B.shape[2],), np.float32) for _ in self.agents)

    @property
    def noise_sizes(self) -> tuple[int, int]:
        return len(self.A), len(self.A)

    def params(self, **overrides: Any) -> Params:
        for name in overrides:
            raise unknown("parameter of lanes of lqr", name, [])
        return Params()

    def init(self, params: Params, noise: Array) -> State:
        xp, (players, _, m) = array_namespace(noise), self.B.shape
        nothing = xp.zeros_like(noise[:, :1])
        rewards, controls = (xp.concat([nothing] * count, axis=1) for count in (players, players * m))
        return State((noise * 2 - 1) * self.start, controls, xp.astype(nothing[:, 0], xp.int64), rewards)

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        controls = [action[:, part] for action in actions for part in range(action.shape[1])]
        before = [state.x[:, i] for i in range(len(self.A))]
        pushes = self.B.transpose(1, 0, 2).reshape(len(self.A), -1)
        after = [
            _combined([*a, *b], [*before, *controls]) + (noise[:, i] * 2 - 1) * self.noise
            for i, (a, b) in enumerate(zip(self.A, pushes, strict=True))
        ]
        costs = [
            _quadratic(q, after) + _quadratic(r, [action[:, part] for part in range(action.shape[1])])
            for q, r, action in zip(self.Q, self.R, actions, strict=True)
        ]
        rewards = xp.stack([-cost for cost in costs], axis=1)
        return State(xp.stack(after, axis=1), xp.stack(controls, axis=1), state.steps + 1, rewards)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        xp = array_namespace(state.x)
        left = xp.astype(self.horizon - state.steps, xp.float32) / self.horizon
        return xp.concat([state.x, left[:, None]], axis=1)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.rewards == state.rewards

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.steps >= self.horizon

    def truncated(self, params: Params, state: State) -> Array:
        return state.steps < 0  # nothing outside the rules ends an episode

    @cached_property
    def gains(self) -> np.ndarray:
        """[N, horizon, m, d] float64: u_i = -K_i x is the optimum of one player, by the Riccati recursion backwards.

        Of several players it is the game's feedback equilibrium [Basar & Olsder 1999, corollary 6.1]: nobody gains by
        playing anything else. Raises ValueError where there is no unique one.
        """
        players, d, m = self.B.shape
        gains, ahead = np.zeros((players, self.horizon, m, d)), self.Q
        for step in reversed(range(self.horizon)):
            # What each player's best reply to the others' gains asks for, for all of them at once.
            pulls = self.B.transpose(0, 2, 1) @ ahead
            system = np.block([[pull @ b for b in self.B] for pull in pulls])
            for i in range(players):
                system[i * m : i * m + m, i * m : i * m + m] += self.R[i]
            try:
                solved = np.linalg.solve(system, (pulls @ self.A).reshape(players * m, d))
            except np.linalg.LinAlgError:
                raise ValueError(f"there is no unique equilibrium at step {step}") from None
            gains[:, step] = solved.reshape(players, m, d)
            ahead = self.Q + self._to_go(gains[:, step], ahead)
        return gains

    def _to_go(self, gains: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """[N, d, d]: what is to pay from x on, with gains [N, m, d] in a step that leads to costs `ahead`."""
        closed = self.A - (self.B @ gains).sum(axis=0)
        return gains.transpose(0, 2, 1) @ self.R @ gains + closed.T @ ahead @ closed

    def values(self, gains: ArrayLike) -> np.ndarray:
        """[N] expected returns of u_i = -K_i x with gains [N, horizon, m, d], as far as no control is clipped.

        Variances of a uniform in [-s, s] are s^2 / 3. Raises ValueError for gains of another shape.
        """
        table = np.asarray(gains, np.float64)
        if table.shape != self.gains.shape:
            raise ValueError(f"gains must be {self.gains.shape}, got {table.shape}")
        to_go, constant = np.zeros_like(self.Q), np.zeros(len(self.B))
        for step in reversed(range(self.horizon)):
            ahead = self.Q + to_go
            constant += np.trace(ahead, axis1=1, axis2=2) * self.noise**2 / 3
            to_go = self._to_go(table[:, step], ahead)
        return -(np.trace(to_go, axis1=1, axis2=2) * self.start**2 / 3 + constant)

    def policy(self, seat: int, gains: ArrayLike | None = None) -> "LinearPolicy":
        """u = -K x of one seat, by default with the `gains` of the optimum or equilibrium; else [horizon, m, d]."""
        return LinearPolicy(self.gains[seat] if gains is None else np.asarray(gains, np.float64), self.limit)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        x = " ".join(f"{float(part):+.3f}" for part in state.x[lane])
        lines = [f"step {int(state.steps[lane])} of {self.horizon}: x {x}"]
        if int(state.steps[lane]):
            m = self.B.shape[2]
            for seat, agent in enumerate(self.agents):
                u = " ".join(f"{float(part):+.3f}" for part in state.controls[lane, seat * m : seat * m + m])
                lines.append(f"  {agent} u {u}, reward {float(state.rewards[lane, seat]):+.3f}")
        return "\n".join(lines)

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [600, 960, 3]; every part of the state and of the controls on its own rail."""
        played, m = int(state.steps[lane]), self.B.shape[2]
        canvas = Canvas(960, 600)
        canvas.text(36, 44, "LINEAR-QUADRATIC REGULATOR", 15, DIM, "lm", bold=True)
        canvas.text(36, 86, f"Step {played} of {self.horizon}", 30, anchor="lm")
        rows: list[tuple[str, float, float, Colour]]
        rows = [(f"x{i}", float(x), 1.5 * self.start + 6 * self.noise, WHITE) for i, x in enumerate(state.x[lane])]
        for part, u in enumerate(state.controls[lane]):
            name = f"u{part}" if m == 1 else f"u{part // m}.{part % m}"
            rows.append((name, float(u), self.limit, seat_colour(part // m)))
        high = min(84.0, 410 / len(rows))
        for row, (name, value, scale, colour) in enumerate(rows):
            _rail(canvas, 150 + (row + 0.5) * high, high, name, value, scale, colour)
        paid = "   ".join(f"{agent} {float(r):+.3f}" for agent, r in zip(self.agents, state.rewards[lane], strict=True))
        canvas.text(36, 574, f"rewards:   {paid}" if played else "", 16, DIM, "lm")
        return canvas.pixels()


def _rail(canvas: Canvas, y: float, high: float, name: str, value: float, scale: float, colour: Colour) -> None:
    """A value on a rail from -scale to scale with 0 in its middle; beyond its ends a pointer stays there."""
    left, right, size = 110.0, 820.0, min(13.0, 0.4 * high)
    middle = (left + right) / 2
    x = middle + (right - left) / 2 * float(np.clip(value / scale, -1, 1))
    canvas.line([(left, y), (right, y)], mixed(DIM, INK, 0.6), 3)
    canvas.line([(middle, y - size), (middle, y + size)], GREEN, 3)
    canvas.line([(middle, y), (x, y)], colour, 6)
    canvas.disc(x, y, size, INK)
    canvas.disc(x, y, 0.8 * size, colour)
    if high >= 12:
        canvas.text(36, y, name, min(18.0, 0.8 * high), colour, "lm", bold=True)
        canvas.text(924, y, f"{value:+.3f}", min(18.0, 0.8 * high), colour, "rm")


def _combined(weights: Sequence[float] | np.ndarray, columns: list[Array]) -> Array:
    """[B] the weighted sum, term by term, of columns [B]; those of weight 0 are left out."""
    terms = [column * float(weight) for weight, column in zip(weights, columns, strict=True) if weight]
    if not terms:
        return columns[0] * 0.0
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _quadratic(matrix: np.ndarray, columns: list[Array]) -> Array:
    """[B] x' matrix x."""
    return _combined(matrix.ravel(), [a * b for a, b in product(columns, repeat=2)])


@dataclass(frozen=True, eq=False)
class LinearPolicy:
    """u = -K_t x, clipped to [-limit, limit]; gains K [horizon, m, d]. Observes x and the share of steps to come."""

    gains: np.ndarray
    limit: float

    noise_size = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp, (horizon, m, d) = array_namespace(observation), self.gains.shape
        step = horizon - xp.astype(xp.round(observation[:, d] * horizon), xp.int64)
        table = put_like(self.gains.astype(np.float32), observation)[step]
        ones = [1.0] * d
        controls = [-_combined(ones, [table[:, part, i] * observation[:, i] for i in range(d)]) for part in range(m)]
        return xp.stack(controls, axis=1).clip(-self.limit, self.limit), None


MOST_PLAYERS = 1000


def lqr(players: int = 1, horizon: int = 20, noise: float = 0.05, limit: float = 1.0) -> LQR:
    """A cart is to be brought to rest at 0 with little force: the linear-quadratic regulator.

    Players: `players`, who all push the same cart; each pays for where it is and for its own force alone.
    Observations: position and velocity, bounded by what any play can reach, and the share of steps to come.
    Actions: the force, in [-`limit`, `limit`] (1,); the optimum of the default asks for less.
    Rewards: -(position^2 + 0.1 velocity^2 + 5 force^2) after the step.
    Horizon: `horizon` steps.
    Chance: the start, uniform in [-1, 1]^2; uniform noise in [-`noise`, `noise`] added to position and velocity.
    Exact values: `LQR.gains`, the optimum of one player and the feedback equilibrium of several, and `LQR.values` of
    any linear play; `LQR.policy` plays it. `games.lqr.LQR` takes any matrices.
    References: Kalman (1960), Contributions to the theory of optimal control; Basar & Olsder (1999), Dynamic
    noncooperative game theory.

    Raises ValueError for no players, and as `LQR` does.
    """
    players = whole("players", players, 1, MOST_PLAYERS)
    push = [[[0.06], [0.6]]] * players
    return LQR(
        A=[[1.0, 0.2], [0.0, 1.0]],
        B=push,
        Q=[[[1.0, 0.0], [0.0, 0.1]]] * players,
        R=[[[5.0]]] * players,
        horizon=horizon,
        noise=noise,
        limit=limit,
    )
