"""Games of OpenSpiel [Lanctot et al. 2019] of any size, stepped one state a lane.

Small ones play many times faster compiled to tables: `games.openspiel`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from games.board import Board
from games.openspiel import canonical, load, tensors, told_by
from games.processes import hosting
from games.stepping import SteppedLanes

PREFIX = "openspiel_stepped:"
"""What the names of stepped games begin with."""


@dataclass(frozen=True)
class Stepped:
    """A game of OpenSpiel, by its game string such as "go(board_size=9)". Implements `games.game.Playable`.

    Agents see information-state tensors, or observation tensors where the game has no others (`observation` chooses:
    "information_state" or "observation"). Where several seats move at once they all act in one step. Chance is drawn by
    inverse CDF from the seeds of lanes; games that draw it themselves are given these as their parameter `rng_seed`.
    An episode still going after `max_steps` steps is truncated. With `workers`, that many processes step the lanes; in
    this process alone, `lanes(n).state(lane)` is a copy of a `pyspiel.State`, and lanes can be saved.

    Raises ValueError as `games.openspiel.load`, for mean-field games, those that draw chance from elsewhere, and those
    without tensors.

    >>> lanes = Stepped("tic_tac_toe").lanes(2)
    >>> lanes.reset(seed=0)
    >>> outcome = lanes.step((np.array([4, 0]), np.array([0, 0])))  # only the first player moves
    >>> print(lanes.state(1))
    x..
    ...
    ...
    """

    game: str
    observation: str | None = None
    max_steps: int | None = None
    workers: int = field(default=0, compare=False)  # plays the same

    def __post_init__(self) -> None:
        if not isinstance(self.workers, int) or self.workers < 0:
            raise ValueError(f"workers must be a whole number, 0 for this process alone, got {self.workers!r}")
        if self.max_steps is not None and (not isinstance(self.max_steps, int) or self.max_steps < 1):
            raise ValueError(f"max_steps must be a whole number, at least 1, or None; got {self.max_steps!r}")
        name = self.game.removeprefix(PREFIX) if isinstance(self.game, str) else self.game
        rules = load(name)
        kind = rules.get_type()
        if kind.dynamics == kind.Dynamics.MEAN_FIELD:
            raise ValueError(
                f"{rules} is a mean-field game, which cannot be stepped: choose one of finitely many players"
            )
        if _draws_itself(rules) and "rng_seed" not in kind.parameter_specification:
            raise ValueError(f"{rules} cannot be stepped, for it draws chance from a seed of its own")
        if _draws_itself(rules) and "rng_seed=" in name:
            raise ValueError(f"the seeds of lanes are the rng_seed of {kind.short_name}: leave it out, got {name!r}")
        if rules.num_distinct_actions() < 1:
            raise ValueError(f"{rules} cannot be played: there is no action")
        seen = tensors(rules, self.observation)
        if seen == "nothing":
            raise ValueError(f"{rules} cannot be stepped, for it shows its players no tensors")
        with told_by(rules):
            rules.new_initial_state()
        object.__setattr__(self, "game", canonical(rules, name))
        object.__setattr__(self, "observation", seen)

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"player_{seat}" for seat in range(rules_of(self.game).num_players()))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        """Flat tensors; OpenSpiel does not tell their bounds."""
        assert self.observation is not None
        size = int(np.prod(shape(self.game, self.observation)))
        return tuple(Box(-np.inf, np.inf, (size,), np.float32) for _ in self.agents)

    @property
    def action_spaces(self) -> tuple[Discrete, ...]:
        choices = rules_of(self.game).num_distinct_actions()
        return tuple(Discrete(choices) for _ in self.agents)

    @property
    def masked(self) -> tuple[bool, ...]:
        return (True,) * len(self.agents)

    def episode(self) -> "States":
        return States(self)

    def lanes(self, num_lanes: int) -> SteppedLanes:
        """That many states side by side, not reset. Raises ValueError for no lanes."""
        return SteppedLanes(self, num_lanes, hosting(self.workers))


@cache
def rules_of(game: str) -> Any:
    """The `pyspiel.Game` of a game string, once in a process."""
    return load(game)


def shape(game: str, observation: str) -> list[int]:
    """Of the tensors that a game calls so, before they are flattened."""
    return getattr(rules_of(game), f"{observation}_tensor_shape")()


class States:
    """States of one lane, episode after episode. Implements `games.stepping.Keeping`."""

    def __init__(self, source: Stepped):
        import pyspiel

        self.source, self.rules = source, rules_of(source.game)
        self.seats = range(self.rules.num_players())
        kind = self.rules.get_type()
        self.paid_on_the_way = kind.reward_model == kind.RewardModel.REWARDS
        self.draws_itself = _draws_itself(self.rules)
        self.chance = Random()  # some say that they have no chance, and have it for some parameters
        remember = pyspiel.IIGObservationType(perfect_recall=source.observation == "information_state")
        # The tensors of states, in memory that NumPy sees: lists of chess's take 50 times as long.
        self.observer = pyspiel._Observation(self.rules, self.rules.make_observer(remember, {}))
        self.seen = np.frombuffer(self.observer, np.float32)
        self.now: Any = None
        self.movers: list[int] = []
        self.returns: list[float] = []

    def begin(self, seed: int, row: Board) -> None:
        self._start(seed)
        self._draw()
        if self.now.is_terminal():
            raise ValueError(f"{self.rules} cannot be played: it may be over before anybody moves")
        self._show(row)

    def play(self, actions: Sequence[int | np.ndarray], row: Board) -> None:
        now = self.now
        if now.is_simultaneous_node():
            now.apply_actions([actions[seat] if seat in self.movers else 0 for seat in self.seats])
        else:
            now.apply_action(actions[self.movers[0]])
        self._draw()
        self.steps += 1
        over = now.is_terminal()
        if over or self.paid_on_the_way:
            returns = now.returns()
            row.rewards[:] = [after - before for after, before in zip(returns, self.returns, strict=True)]
            self.returns = returns
        if over:
            row.terminated[:] = row.done[0] = True
        elif self.steps == self.source.max_steps:
            row.truncated[:] = row.done[0] = True
        self._show(row)

    def state(self) -> Any:
        """A copy of the `pyspiel.State`."""
        return self.now.clone()

    def saved(self) -> dict:
        """The episode's seed, and the moves of chance and players up to here."""
        return {"seed": self.seed, "history": self.now.history()}

    def restore(self, saved: dict, row: Board) -> None:
        self._start(saved["seed"])
        moves = iter(saved["history"])
        for move in moves:
            if self.now.is_chance_node():
                self.chance.random()
                self.now.apply_action(move)
                continue
            if self.now.is_simultaneous_node():
                self.now.apply_actions([move, *islice(moves, len(self.seats) - 1)])
            else:
                self.now.apply_action(move)
            self.steps += 1
        if self.paid_on_the_way:
            self.returns = self.now.returns()
        self._show(row)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _start(self, seed: int) -> None:
        self.seed, self.steps, self.returns, rules = seed, 0, [0.0] * len(self.seats), self.rules
        self.chance.seed(seed)
        if self.draws_itself:
            rules = _seeded(rules, seed)
        self.now = rules.new_initial_state()

    def _draw(self) -> None:
        """Let chance move until a player is to move, or the game is over."""
        while self.now.is_chance_node():
            self.now.apply_action(drawn(self.now.chance_outcomes(), self.chance.random()))

    def _show(self, row: Board) -> None:
        now, self.movers = self.now, []
        row.alive[:], row.acting[:] = True, False
        if not now.is_terminal():
            for seat in self.seats if now.is_simultaneous_node() else (now.current_player(),):
                self._show_legal(seat, row)
            if not self.movers:
                raise ValueError(f"{self.rules} cannot be played: there is no legal action in its state {now}")
        for seat, seen in enumerate(row.observations):
            try:
                self.observer.set_from(now, seat)
            except RuntimeError:  # what pyspiel.SpielError is: some games show nothing to those who are not to move
                if seat in self.movers:
                    raise
                seen[:] = 0
            else:
                seen[:] = self.seen

    def _show_legal(self, seat: int, row: Board) -> None:
        legal, masks = self.now.legal_actions(seat), row.legal[seat]
        assert masks is not None
        masks[0][:] = False
        if legal:
            masks[0][legal] = row.acting[seat] = True
            self.movers.append(seat)


def drawn(outcomes: Sequence[tuple[int, float]], uniform: float) -> int:
    """The outcome of chance by inverse CDF, from (outcome, probability) and a uniform of [0, 1); never one of 0."""
    passed, last = 0.0, None
    for outcome, probability in outcomes:
        if probability > 0:
            passed, last = passed + probability, outcome
            if uniform < passed:
                return outcome
    if last is None:
        raise ValueError("chance has no outcome of positive probability")
    return last  # rounding may leave the sum below 1


def _draws_itself(rules: Any) -> bool:
    """Whether states draw the outcomes of chance, rather than tell their probabilities."""
    kind = rules.get_type()
    return kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC


def _seeded(rules: Any, seed: int) -> Any:
    import pyspiel

    return pyspiel.load_game(rules.get_type().short_name, rules.get_parameters() | {"rng_seed": seed})
