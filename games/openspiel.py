"""Finite games of OpenSpiel [Lanctot et al. 2019], compiled to flat arrays once and kept on disk.

Needs the extra `openspiel`: pip install 'counterplay[openspiel]'.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from math import log, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from games.spelling import unknown
from games.tree import CHANCE, TERMINAL, Builder, Tree, level_order
from games.tree_files import cached_sight, cached_tree
from games.tree_game import Sight, TreeGame

OBSERVATIONS = ("information_state", "observation")

PREFIX = "openspiel:"
"""What the names of OpenSpiel's games begin with."""

SIMULTANEOUS = -2
"""OpenSpiel's current player where all seats move at once."""

MAX_BYTES = 2**30
"""Of the names of information states, which take the most memory where trees are deep."""

MAX_NODES = 2_000_000
"""Of a game tree: tic_tac_toe has 549,946, leduc_poker(players=3) 1,831,571."""

WALKS = 64
"""At random, to see whether a tree is much too large."""


def openspiel(game: str = "kuhn_poker", observation: str | None = None, max_nodes: int = MAX_NODES) -> TreeGame:
    """A finite game of OpenSpiel, by its game string such as "leduc_poker(players=3)".

    Players: those of the game, at once or by turns.
    Observations: information-state tensors, or observation tensors where the game has no others; `observation` chooses:
        "information_state" or "observation".
    Actions: Discrete of all that the game has; masks tell which are legal.
    Rewards: the game's, when it pays them: most do at the end.
    Horizon: the game's end.
    Chance: the game's, drawn where it moves.
    Exact values: `games.exact`.
    References: Lanctot et al. (2019), OpenSpiel: a framework for reinforcement learning in games.

    The game is compiled by walking its whole tree, and once more when first asked what agents see; both are kept in a
    cache folder by game string and OpenSpiel version (`games.tree_files`).

    Raises ValueError where OpenSpiel is not installed, for an unknown game or parameter, chance that cannot be
    enumerated, players who forget, tensors that the game does not provide, or more than `max_nodes` nodes.

    >>> game = openspiel("kuhn_poker(players=3)")
    >>> game.tree.num_nodes, len(game.tree.keys), game.observation_spaces[0].shape
    (601, 48, (17,))
    """
    if not isinstance(max_nodes, int) or max_nodes < 1:
        raise ValueError(f"max_nodes must be a whole number, at least 1, got {max_nodes!r}")
    rules = load(game)
    seen = tensors(rules, observation)
    name = canonical(rules, game)
    origin = " ".join([f"OpenSpiel {version('open_spiel')}: {name}", *files(name).values()])
    tree = cached_tree(origin, partial(compiled, rules, max_nodes))
    if tree.num_nodes > max_nodes:
        raise _too_large(rules, max_nodes)
    look = partial(_seen, name, seen, f"{origin}, {seen}")
    return TreeGame(f"{PREFIX}{name}", tree, rules.num_distinct_actions(), look, partial(_text, name), seen)


def canonical(rules: Any, given: str) -> str:
    """The game's own string, in which parameters have one order; the one given where that may say too little.

    (OpenSpiel leaves out parameters of some games that are made from others, or calls them what it does not know.)
    """
    if given.count("(") < 2:
        try:
            return str(load(str(rules)))
        except ValueError:
            pass
    return given


def game_string(game: TreeGame) -> str:
    """OpenSpiel's own name of a compiled game. Raises ValueError for one that is not OpenSpiel's."""
    if not game.name.startswith(PREFIX):
        raise ValueError(f"wanted a game of OpenSpiel, got {game!r}")
    return game.name.removeprefix(PREFIX)


def files(game: str) -> dict[str, str]:
    """sha256 of the files that a game string names, by path: such games change with them."""
    found = {}
    for value in re.findall(r"=([^=(),]+)", game):
        with suppress(OSError):  # no path, such as a grid that is longer than paths may be
            found[value] = sha256(Path(value).read_bytes()).hexdigest()
    return found


def _seen(game: str, seen: str, origin: str) -> Sight:
    """What the seats see, from the cache or by another walk: exact values can do without it."""

    def walked() -> Sight:
        rules = load(game)
        with told_by(rules):
            return sight(rules, seen)

    return cached_sight(origin, walked)


def load(game: str) -> Any:
    """The `pyspiel.Game` of a game string. Raises ValueError, with near matches, for one that OpenSpiel lacks."""
    try:
        import pyspiel
    except ImportError:
        raise ValueError("OpenSpiel's games need its package: pip install 'counterplay[openspiel]'") from None
    game = game.removeprefix(PREFIX) if isinstance(game, str) else game
    if not isinstance(game, str) or not re.fullmatch(r"\w+(\(.*\))?", game) or game.count("(") != game.count(")"):
        raise ValueError(f"an OpenSpiel game is given by a string such as 'leduc_poker(players=3)', got {game!r}")
    known = {entry.short_name: entry.parameter_specification for entry in pyspiel.registered_games()}
    names = re.findall(r"^\w+|\w+(?=\()", game)  # with those of games that are parameters of others
    for name in names:
        if name not in known:
            raise unknown("OpenSpiel game", name, known)
    parameters = {parameter for name in names for parameter in known[name]}
    for parameter in re.findall(r"[(,](\w+)=", game):
        if parameter not in parameters:
            raise unknown(f"parameter of OpenSpiel's {names[0]}", parameter, parameters)
    try:
        return pyspiel.load_game(game)
    except Exception as error:  # C++ raises several kinds
        raise ValueError(f"OpenSpiel cannot make {game!r}: {error}") from None


def tensors(rules: Any, observation: str | None) -> str:
    """Which of `OBSERVATIONS` agents see. Raises ValueError for one that the game does not provide."""
    kind = rules.get_type()
    provided = [
        name
        for name, there in zip(
            OBSERVATIONS, (kind.provides_information_state_tensor, kind.provides_observation_tensor), strict=True
        )
        if there
    ]
    if observation is None:
        return provided[0] if provided else "nothing"
    if observation not in OBSERVATIONS:
        raise unknown("observation", observation, OBSERVATIONS)
    if observation not in provided:
        raise ValueError(f"{rules} provides {' and '.join(provided) or 'no'} tensors, not {observation}")
    return observation


class At(NamedTuple):
    """A node of the walk: where several seats move at once, one of them, `moves` being those before it."""

    state: Any
    player: int
    legal: Sequence[Any]  # actions, or (probability, state) of the outcomes of chance
    depth: int
    chance: float
    moves: tuple[int, ...]


def walk(rules: Any) -> Iterator[At]:
    """All nodes of a game, depth first. A row of chance moves is one node."""
    players = rules.num_players()
    stack: list[tuple[Any, int, float, tuple[int, ...]]] = [(rules.new_initial_state(), 0, 1.0, ())]
    while stack:
        state, depth, chance, moves = stack.pop()
        player = state.current_player()
        if player == SIMULTANEOUS:
            player = len(moves)
            legal = state.legal_actions(player)
            yield At(state, player, legal, depth, chance, moves)
            for action in reversed(legal):
                together = (*moves, action)
                if len(together) < players:
                    stack.append((state, depth + 1, 1.0, together))
                else:
                    child = state.clone()
                    child.apply_actions(list(together))
                    stack.append((child, depth + 1, 1.0, ()))
        elif player >= 0:
            legal = state.legal_actions()
            yield At(state, player, legal, depth, chance, ())
            stack += [(state.child(action), depth + 1, 1.0, ()) for action in reversed(legal)]
        elif player == CHANCE:
            outcomes = list(_outcomes(state))
            yield At(state, CHANCE, outcomes, depth, chance, ())
            stack += [(child, depth + 1, probability, ()) for probability, child in reversed(outcomes)]
        else:
            yield At(state, TERMINAL, (), depth, chance, ())


def _outcomes(state: Any, chance: float = 1.0) -> Iterator[tuple[float, Any]]:
    """(probability, state) of what a chain of chance moves may lead to."""
    for action, probability in state.chance_outcomes():
        if probability > 0:
            child = state.child(action)
            if child.is_chance_node():
                yield from _outcomes(child, chance * probability)
            else:
                yield chance * probability, child


@contextmanager
def told_by(rules: Any) -> Iterator[None]:
    """What OpenSpiel raises meanwhile is a ValueError."""
    try:
        yield
    except (RuntimeError, LookupError) as error:  # a pyspiel.SpielError is a RuntimeError
        raise ValueError(f"OpenSpiel fails in {rules}: {error}") from error


def compiled(rules: Any, max_nodes: int) -> Tree:
    """The tree of a game. Raises ValueError where that cannot be, or has more than `max_nodes` nodes."""
    kind = rules.get_type()
    named = kind.provides_information_state_string
    all_seen = kind.information == kind.Information.PERFECT_INFORMATION
    if kind.dynamics == kind.Dynamics.MEAN_FIELD:
        raise ValueError(
            f"{rules} cannot be compiled, for it is a mean-field game: choose one of finitely many players"
        )
    if kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{rules} cannot be compiled, for its chance moves cannot be enumerated: {_stepped(rules)}")
    if not named and not all_seen:
        raise ValueError(f"{rules} cannot be compiled, for it does not name its information states: {_stepped(rules)}")
    with told_by(rules):
        _check_size(rules, max_nodes)
        return _built(rules, max_nodes, named).tree(remember=all_seen)


def _built(rules: Any, max_nodes: int, named: bool) -> Builder:
    builder, nobody = Builder(rules.num_players()), np.zeros(rules.num_players())
    kind = rules.get_type()
    on_the_way = kind.reward_model == kind.RewardModel.REWARDS
    paid: list[np.ndarray] = []  # by depth, on the path to this node: returns so far
    size = 0
    for at in walk(rules):
        node = builder.node(at.player, at.depth, len(at.legal), at.chance, bool(at.moves))
        if at.player >= 0:
            # Where everything is seen, the moves so far are what is known.
            key = at.state.information_state_string(at.player) if named else at.state.history_str()
            builder.inform(node, key, at.legal)
            size += len(key)
        if on_the_way or at.player == TERMINAL:
            before = paid[at.depth - 1] if on_the_way and at.depth else nobody
            returns = before if at.moves or at.player == CHANCE else np.array(at.state.returns())
            builder.pay(node, returns - before)
            paid[at.depth :] = [returns]
        if len(builder) > max_nodes:
            raise _too_large(rules, max_nodes)
        if size > MAX_BYTES:
            raise ValueError(f"the names of what players know in {rules} take more than a gigabyte: {_stepped(rules)}")
    return builder


def sight(rules: Any, seen: str) -> Sight:
    """What the seats see at every node of a game, of the tensors called `seen`."""
    seats, rows, views, depths = range(rules.num_players()), {b"": 0}, array("i"), array("i")
    blind: set[tuple[bool, bool]] = set()  # (at the end, whose turn it is) where the game shows nothing

    def row(at: At, seat: int) -> int:
        case = (at.player == TERMINAL, at.player == seat)
        if at.player == CHANCE or seen == "nothing" or case in blind:
            return 0
        try:
            tensor = getattr(at.state, f"{seen}_tensor")(seat)
        except RuntimeError:  # what pyspiel.SpielError is
            if at.player == seat:
                raise
            blind.add(case)
            return 0
        return rows.setdefault(np.array(tensor, np.float32).tobytes(), len(rows))

    for at in walk(rules):
        depths.append(at.depth)
        views.extend([row(at, seat) for seat in seats])
    width = max(map(len, rows)) // 4 or 1
    table = np.zeros((len(rows), width), np.float32)  # row 0 is what those see whom the game shows nothing
    for data, index in rows.items():
        if index:
            table[index] = np.frombuffer(data, np.float32)
    order = level_order(np.array(depths))
    return Sight(table, np.array(views, np.int32).reshape(-1, len(seats))[order].T.copy())


def _check_size(rules: Any, max_nodes: int) -> None:
    """Refuse at once what is too large, by random walks from the root.

    What a walk multiplies up of its numbers of choices is the number of ends on average [Knuth 1975]. So the product of
    several, each divided by `max_nodes`, is 1 at most on average where there are no more, and hardly ever exceeds 1e12.
    """
    generator, evidence = np.random.default_rng(0), 0.0
    for _ in range(WALKS):
        evidence += log(_choices(rules, generator, 1000.0 * max_nodes) / max_nodes)
        if evidence > log(1e12):
            raise _too_large(rules, max_nodes)


def _choices(rules: Any, generator: np.random.Generator, enough: float) -> float:
    """Product of the numbers of choices along a random walk, which ends where it is `enough`."""
    state, number = rules.new_initial_state(), 1.0
    while not state.is_terminal() and number < enough:
        seats = range(rules.num_players()) if state.is_simultaneous_node() else [state.current_player()]
        legal = [state.legal_actions(seat) for seat in seats]
        if not all(legal):
            raise ValueError(f"{rules} cannot be played: there is no legal action in its state {state}")
        number *= prod(map(len, legal))
        chosen = [int(generator.choice(actions)) for actions in legal]
        state.apply_actions(chosen) if state.is_simultaneous_node() else state.apply_action(*chosen)
    return number


def _stepped(rules: Any) -> str:
    return f"games.make('openspiel_stepped:{rules}') plays what cannot be compiled, state by state"


def _too_large(rules: Any, max_nodes: int) -> ValueError:
    return ValueError(
        f"{rules} has more than {max_nodes:,} nodes: raise max_nodes if there is time (about a second for 100,000 of "
        f"them) and memory (about 100 MB), or make the game smaller; {_stepped(rules)}"
    )


def _text(game: str, path: tuple[int, ...]) -> str:
    """A state as OpenSpiel prints it, reached by the children of these numbers."""
    state = load(game).new_initial_state()
    moves: list[int] = []
    for rank in path:
        if state.is_chance_node():
            state = list(_outcomes(state))[rank][1]
        elif state.is_simultaneous_node():
            moves.append(state.legal_actions(len(moves))[rank])
            if len(moves) == state.num_players():
                state.apply_actions(moves)
                moves = []
        else:
            state.apply_action(state.legal_actions()[rank])
    return str(state)
