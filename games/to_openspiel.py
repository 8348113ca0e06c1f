"""Games and payoff tensors as games of OpenSpiel [Lanctot et al. 2019], whose algorithms then run on them."""

import re
from collections.abc import Sequence
from math import inf
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from games.game import Game
from games.normal_form import NormalForm
from games.openspiel_rules import Moment, Pending, Rules
from games.spelling import unknown
from games.tree import TERMINAL, Tree
from games.tree_game import TreeGame

try:
    import pyspiel
except ImportError:
    raise ImportError("OpenSpiel's package is not here: pip install 'counterplay[openspiel]'") from None

Utility = Literal["general_sum", "zero_sum", "identical"]


class Stakes(NamedTuple):
    """What the returns of an episode add up to, and (lowest, highest) of them."""

    utility: Utility = "general_sum"
    lowest: float = -inf
    highest: float = inf


MAX_STEPS = 10_000
"""Of an episode, where the game does not say."""
_ours: set[str] = set()


def register(
    game: Game,
    name: str,
    *,
    turn_based: bool = False,
    paid_at_end: bool = False,
    grid: int | None = None,
    bins: int | None = None,
    max_steps: int | None = None,
    stakes: Stakes | None = None,
) -> pyspiel.Game:
    """Register a game of ours with OpenSpiel; `pyspiel.load_game(name)` gives it again in this process.

    Actions are numbers: those of a MultiDiscrete space in C order; a Box is offered in `bins` evenly spaced values a
    dimension. Information states are all that a seat has seen and
    done; observation tensors are what it sees, padded with zeros where others see more. Truncation, which OpenSpiel
    does not know, and `max_steps` end an episode for good.

    Seats that act at once do so in simultaneous nodes; with `turn_based`, one after the other, without seeing what
    those before have chosen, as CFR and its like want it. With `paid_at_end`, as MCTS wants it, all rewards are paid
    when the episode is over (where chance is drawn MCTS needs `solve=False`, too: it takes one outcome for all).

    Finite trees (`games.tree`) have the probabilities of their chance. The chance of other games is drawn, from the
    parameter `rng_seed` of the game that is loaded: OpenSpiel calls that sampled, and cannot enumerate it, nor copy
    states by their histories. With `grid` each uniform of the noise is a chance move of its own, with that many
    outcomes of equal probability, (i + 1/2) / grid: exact where all probabilities are multiples of 1 / grid. Where 256
    starts are alike, they are taken to be without chance.

    `stakes` are known of normal forms and trees; by default general sums without bounds. Raises ValueError for a name
    that is none or OpenSpiel's own, for what is no Game, for continuous actions without bins, and for arguments that
    cannot be.

    >>> from games import make
    >>> from open_spiel.python.algorithms import cfr, exploitability
    >>> pennies = register(make("matching_pennies"), "our_pennies", turn_based=True)
    >>> solver = cfr.CFRSolver(pennies)
    >>> for _ in range(10):
    ...     solver.evaluate_and_update_policy()
    >>> float(exploitability.exploitability(pennies, solver.average_policy()))
    0.0
    """
    if not isinstance(game, Game):
        raise ValueError(
            f"only a games.game.Game can be registered, such as games.make('pong'), got {game!r:.80}; payoffs [N, ...] "
            "are a game of OpenSpiel by games.openspiel_payoffs.to_tensor_game"
        )
    stakes = stakes_of(game) if stakes is None else stakes
    _check(name, stakes, {"grid": grid, "bins": bins, "max_steps": max_steps})
    form: dict[str, Any] = {"game": game, "grid": grid, "bins": bins, "max_steps": max_steps or _horizon(game)}
    rules = Rules(**form, seed=0)
    kind = _type(rules, name, turn_based, paid_at_end, stakes.utility)
    info = _info(rules, kind, stakes)

    class Registered(OurGame):
        def __init__(self, params: dict | None = None):
            super().__init__(kind, info, form, params or {})

    pyspiel.register_game(kind, Registered)
    _ours.add(name)
    return pyspiel.load_game(name)


def _check(name: str, stakes: Stakes, numbers: dict[str, int | None]) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
        raise ValueError(f"a game's name in OpenSpiel is made of letters, digits and _, got {name!r}")
    if name in pyspiel.registered_names() and name not in _ours:
        raise ValueError(f"OpenSpiel has a game {name!r} of its own: choose another name")
    for what, number in numbers.items():
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ValueError(f"{what} must be a whole number, at least 1, or None; got {number!r}")
    if stakes.utility not in get_args(Utility):
        raise unknown("utility", stakes.utility, get_args(Utility))


def _horizon(game: Game) -> int:
    if isinstance(game, NormalForm):
        return game.rounds
    return len(game.tree.nodes.levels) if isinstance(game, TreeGame) else MAX_STEPS


def _type(rules: Rules, name: str, turn_based: bool, paid_at_end: bool, utility: str) -> pyspiel.GameType:
    kinds = pyspiel.GameType
    start = rules.start
    while isinstance(start, Pending):
        start = rules.draw(None, (), start, rules.chance.outcomes(start)[0][0])
    together = len(start.acting) > 1 and not turn_based
    sampled = kinds.ChanceMode.EXPLICIT_STOCHASTIC if rules.chance.explicit else kinds.ChanceMode.SAMPLED_STOCHASTIC
    return kinds(
        short_name=name,
        long_name=name.replace("_", " ").capitalize(),
        dynamics=kinds.Dynamics.SIMULTANEOUS if together else kinds.Dynamics.SEQUENTIAL,
        chance_mode=sampled if any(rules.chance.moves) else kinds.ChanceMode.DETERMINISTIC,
        information=kinds.Information.IMPERFECT_INFORMATION,
        utility=getattr(kinds.Utility, utility.upper()),
        reward_model=kinds.RewardModel.TERMINAL if paid_at_end else kinds.RewardModel.REWARDS,
        max_num_players=len(rules.seats),
        min_num_players=len(rules.seats),
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={} if rules.chance.explicit else {"rng_seed": 0},
    )


def _info(rules: Rules, kind: pyspiel.GameType, stakes: Stakes) -> pyspiel.GameInfo:
    zero = {"utility_sum": 0.0} if kind.utility == pyspiel.GameType.Utility.ZERO_SUM else {}
    moves = rules.max_steps * (1 if kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS else len(rules.seats))
    return pyspiel.GameInfo(
        num_distinct_actions=max(actions.number for actions in rules.actions),
        max_chance_outcomes=rules.chance.most,
        num_players=len(rules.seats),
        min_utility=stakes.lowest,
        max_utility=stakes.highest,
        max_game_length=moves,
        **zero,
    )


class OurGame(pyspiel.Game):
    """A Game of ours, as OpenSpiel sees it."""

    def __init__(self, kind: pyspiel.GameType, info: pyspiel.GameInfo, form: dict[str, Any], params: dict):
        super().__init__(kind, info, params)
        self.rules = Rules(**form, seed=params.get("rng_seed", 0))
        self.together = kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        self.paid_at_end = kind.reward_model == pyspiel.GameType.RewardModel.TERMINAL

    def new_initial_state(self) -> "OurState":
        return OurState(self)

    def max_chance_nodes_in_history(self) -> int:
        start, step = self.rules.chance.moves
        return start + self.rules.max_steps * step

    def make_py_observer(self, iig_obs_type: Any = None, params: dict | None = None) -> "Observer":
        return Observer(self.rules, bool(iig_obs_type and iig_obs_type.perfect_recall), params)


class OurState(pyspiel.State):
    """A moment of an episode, the choices made since, and what chance is to move on."""

    def __init__(self, game: OurGame):
        super().__init__(game)
        self.rules, self.together, self.paid_at_end = game.rules, game.together, game.paid_at_end
        self.now: Moment | None = None  # what players saw last
        self.chosen: dict[int, int] = {}
        self.pending: Pending | None = None
        self.earlier = self._total()  # returns before the last move
        self._follow(self.rules.start)

    def current_player(self) -> int:
        if self.pending is not None:
            return pyspiel.PlayerId.CHANCE
        waiting = self._waiting()
        if not waiting:
            return pyspiel.PlayerId.TERMINAL
        return pyspiel.PlayerId.SIMULTANEOUS if self.together and len(waiting) > 1 else waiting[0]

    def is_terminal(self) -> bool:
        return self.pending is None and self.now is not None and self.now.over

    def _waiting(self) -> list[int]:
        assert self.now is not None
        return [seat for seat in self.now.acting if seat not in self.chosen]

    def _legal_actions(self, player: int) -> list[int]:
        if self.now is None or player not in self._waiting():
            return [0] if self.is_simultaneous_node() else []  # to wait
        return self.now.legal(player)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        assert self.pending is not None
        return self.rules.chance.outcomes(self.pending)

    def _apply_action(self, action: int) -> None:
        self.earlier = self._total()
        if self.pending is not None:
            self._follow(self.rules.draw(self.now, self._all_chosen(), self.pending, action))
        else:
            self._choose({self.current_player(): action})

    def _apply_actions(self, actions: Sequence[int]) -> None:
        self.earlier = self._total()
        self._choose({seat: actions[seat] for seat in self._waiting()})

    def _choose(self, actions: dict[int, int]) -> None:
        self.chosen = self.chosen | actions
        if not self._waiting():
            assert self.now is not None
            self._follow(self.rules.play(self.now, self._all_chosen()))

    def _all_chosen(self) -> tuple[int | None, ...]:
        return tuple(self.chosen.get(seat) for seat in self.rules.seats)

    def _follow(self, led: Moment | Pending) -> None:
        """Go on to where somebody is to move, or the episode is over."""
        while isinstance(led, Moment):
            self.now, self.chosen, self.pending = led, {}, None
            if led.acting or led.over:
                return
            led = self.rules.play(led, self._all_chosen())
        self.pending = led

    def _total(self) -> list[float]:
        return list(self.now.returns) if self.now else [0.0 for _ in self.rules.seats]

    def rewards(self) -> list[float]:
        if self.paid_at_end:
            return self.returns()
        return [now - before for now, before in zip(self._total(), self.earlier, strict=True)]

    def returns(self) -> list[float]:
        return [0.0 for _ in self.rules.seats] if self.paid_at_end and not self.is_terminal() else self._total()

    def known(self, player: int) -> str:
        """What names a player's information state."""
        told = self.now.known(player) if self.now else f"{player}: start"
        return f"{told} plays {self.chosen[player]}" if player in self.chosen else told

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"chance {action}"
        return self.rules.actions[player].text(action)

    def __str__(self) -> str:
        if self.now is None:
            return "start"
        game, chosen = self.rules.game, "".join(f"\n{seat} plays {action}" for seat, action in self.chosen.items())
        return f"{game.describe(self.rules.params, self.now.state)}{chosen}{chr(10) + 'chance' if self.pending else ''}"


class Observer:
    """What a player sees [D], or as text; with perfect recall all it has seen and done, as text alone."""

    def __init__(self, rules: Rules, remembers: bool, params: dict | None):
        if params:
            raise ValueError(f"there are no parameters of observations, got {params}")
        self.remembers, self.tensor, self.dict = remembers, None, {}
        if not remembers:
            size = max(int(np.prod(space.shape)) for space in rules.game.observation_spaces)
            self.tensor = np.zeros(size, np.float32)
            self.dict = {"observation": self.tensor}

    def set_from(self, state: OurState, player: int) -> None:
        if self.tensor is not None:
            self.tensor.fill(0)
            if state.now is not None:
                seen = state.now.observation(player)
                self.tensor[: len(seen)] = seen

    def string_from(self, state: OurState, player: int) -> str:
        if self.remembers:
            return state.known(player)
        return state.now.seen(player) if state.now else "start"


def stakes_of(game: Game) -> Stakes:
    """As far as the game tells."""
    if isinstance(game, NormalForm):
        returns = game.rounds * game.payoffs.reshape(len(game.choices), -1)
    elif isinstance(game, TreeGame):
        returns = _tree_returns(game.tree)
    else:
        return Stakes()
    utility: Utility = "general_sum"
    if np.allclose(returns.sum(axis=0), 0, rtol=0, atol=1e-9):
        utility = "zero_sum"
    elif len(returns) > 1 and np.allclose(returns, returns[0], rtol=0, atol=1e-9):
        utility = "identical"
    return Stakes(utility, float(returns.min()), float(returns.max()))


def _tree_returns(tree: Tree) -> np.ndarray:
    """[N, E] returns at the ends of a tree."""
    returns = tree.nodes.rewards.copy()
    for begin, end in zip(tree.nodes.levels[1:-1], tree.nodes.levels[2:], strict=True):
        returns[begin:end] += returns[tree.parents[begin:end]]
    return returns[tree.nodes.player == TERMINAL].T
