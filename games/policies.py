"""Policies that play any game."""

from dataclasses import dataclass

from array_api_compat import array_namespace, device
from gymnasium.spaces import Space

from games.game import Array, Legal, factors


@dataclass(frozen=True)
class Uniform:
    """Every legal choice of every factor with equal probability; `choices` numbers them per factor."""

    choices: tuple[int, ...]
    flat: bool
    """Actions are [B] (Discrete) rather than [B, factors]."""

    @classmethod
    def of(cls, space: Space) -> "Uniform":
        """For an action space, Discrete or MultiDiscrete."""
        return cls(factors(space), flat=space.shape == ())

    @property
    def noise_size(self) -> int:
        return len(self.choices)

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp = array_namespace(noise)
        if legal is None:
            # The largest uniform times n may round up to n.
            columns = [
                xp.clip(xp.astype(noise[:, factor] * n, xp.int64), max=n - 1) for factor, n in enumerate(self.choices)
            ]
        else:
            columns = [draw_legal(mask, noise[:, factor]) for factor, mask in enumerate(legal)]
        return (columns[0] if self.flat else xp.stack(columns, axis=1)), None

    def probabilities(self, observation: Array, legal: Legal) -> tuple[Array, ...]:
        """One [B, A_f] a factor; rows without a legal choice are treated as all legal."""
        xp = array_namespace(observation)
        masks = legal or tuple(
            xp.broadcast_to(xp.ones_like(observation[:, :1]) > 0, (observation.shape[0], n)) for n in self.choices
        )
        weights = [xp.astype(mask | ~xp.any(mask, axis=1, keepdims=True), xp.float32) for mask in masks]
        return tuple(weight / xp.sum(weight, axis=1, keepdims=True) for weight in weights)


def draw_legal(legal: Array, noise: Array) -> Array:
    """[B] int64 uniformly one of the legal choices [B, A], by uniforms [B]; any one where none is legal.

    By columns: sums over the short axis of arrays [B, A] cost NumPy ten times as much.
    """
    xp = array_namespace(legal)
    columns = [legal[:, choice] for choice in range(legal.shape[1])]
    count = xp.zeros_like(noise, dtype=xp.int64)
    for column in columns:
        count = count + column
    nothing = count == 0
    count = xp.where(nothing, len(columns), count)
    # The largest uniform times the count may round up to it.
    wanted = xp.minimum(xp.astype(noise * xp.astype(count, xp.float32), xp.int64), count - 1)
    choice, passed = xp.zeros_like(count), xp.zeros_like(count)
    for column in columns[:-1]:
        passed = passed + (column | nothing)
        choice = choice + (passed <= wanted)
    return choice


def draw(probabilities: Array, noise: Array) -> Array:
    """[B] int64 choices by inverse CDF from probabilities [B, A] and uniforms [B]; never one of probability zero."""
    xp = array_namespace(probabilities)
    cumulative = xp.cumulative_sum(probabilities, axis=1)
    # Scaling by the total, and stopping before the last positive choice, keep rounding from falling off the end.
    reached = noise[:, None] * cumulative[:, -1:] >= cumulative
    choice = xp.sum(xp.astype(reached, xp.int64), axis=1)
    index = xp.arange(probabilities.shape[1], device=device(probabilities))
    last = xp.max(xp.where(probabilities > 0, index[None, :], xp.zeros_like(index)[None, :]), axis=1)
    return xp.minimum(choice, last)
