"""Exact values of populations in games with a tree: what `marl.population` estimates by play, without sampling."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from games.exact import TabularPolicy, free_opponent, least_exploitable, mixture_responses, payoff_table, tabulate
from games.exact.recommendations import gains_when_told
from games.game import Game, Policy
from games.policies import Uniform
from games.tree_game import TreeGame
from games.versus import Populations
from marl.population import Chosen, Estimate, FullGap, held_sizes
from marl.targets import Target
from metasolvers import check_sigma, expected_payoffs, independent

if TYPE_CHECKING:
    from marl.psro import Snapshot

_parts: WeakKeyDictionary[Policy, dict[tuple[TreeGame, int], np.ndarray]] = WeakKeyDictionary()
"""What policies that never change play, by game and player: PSRO asks for all of them in every iteration."""


class ExactTable(NamedTuple):
    """Expected returns of every joint profile of the populations."""

    mean: np.ndarray  # [N, k_1, ..., k_N] payoffs

    @property
    def standard_error(self) -> np.ndarray:
        """[N, k_1, ..., k_N] zeros."""
        return np.zeros(self.mean.shape)

    @property
    def episodes(self) -> np.ndarray:
        """[k_1, ..., k_N] int64 zeros: none is played."""
        return np.zeros(self.mean.shape[1:], np.int64)


def tree_game(game: object) -> TreeGame:
    """The game, where it has a tree. Raises ValueError for any other."""
    if not isinstance(game, TreeGame):
        raise ValueError(
            f"exact values are of games with a tree, such as make('openspiel:kuhn_poker'), got {type(game).__name__}: "
            "play episodes of it instead (marl.population), and train best responses (the oracle ppo)"
        )
    return game


def population_parts(game: TreeGame, populations: Populations) -> list[np.ndarray]:
    """For every player [k, S_player] what its policies play.

    A policy of a kind that never changes is tabulated once, and its table kept while it lives. Raises ValueError as
    `games.exact.tabulate`, and unless every player has a policy.
    """
    if len(populations) != len(game.agents) or not all(len(population) for population in populations):
        sizes = tuple(len(population) for population in populations)
        raise ValueError(f"each of {len(game.agents)} players needs at least one policy, got populations of {sizes}")
    return [
        np.stack([policy_part(game, policy, player) for policy in population])
        for player, population in enumerate(populations)
    ]


def policy_part(game: TreeGame, policy: Policy, player: int) -> np.ndarray:
    """[S_player] what one policy plays in a player's seat; see `population_parts`."""
    if not _never_changes(policy):
        return tabulate(game, policy, player)
    known = _parts.setdefault(policy, {})
    if (game, player) not in known:
        known[game, player] = tabulate(game, policy, player)
    return known[game, player]


def _never_changes(policy: Policy) -> bool:
    """Whether it is of a kind that always plays the same; others may learn between two calls."""
    if type(policy) in (TabularPolicy, Uniform):
        return True
    from marl.policies import NeuralPolicy  # torch takes a second to import, and tables do without

    return type(policy) is NeuralPolicy


def evaluate_exact(game: Game, populations: Populations, known: ExactTable | None = None) -> ExactTable:
    """Payoffs of every profile of the populations; those that `known` holds are taken from it.

    Raises ValueError for a game without a tree, a player without policies, policies that cannot be tabulated, or a
    `known` table of populations that these do not extend.

    >>> from games import make
    >>> from games.policies import Uniform
    >>> kuhn = make("openspiel:kuhn_poker")
    >>> evaluate_exact(kuhn, [[Uniform.of(space)] for space in kuhn.action_spaces]).mean.tolist()
    [[[0.125]], [[-0.125]]]
    """
    rules = tree_game(game)
    sizes = tuple(len(population) for population in populations)
    held = held_sizes(known, sizes)
    parts = population_parts(rules, populations)
    table = np.empty((len(sizes), *sizes))
    if known is not None:
        table[(slice(None), *(slice(size) for size in held))] = known.mean
    for player, size in enumerate(held):  # the profiles of which this player's policy is the first new one
        blocks = [*(slice(old) for old in held[:player]), slice(size, None), *(slice(None),) * len(sizes[player + 1 :])]
        chosen = [own[block] for own, block in zip(parts, blocks, strict=True)]
        if all(len(own) for own in chosen):
            table[(slice(None), *blocks)] = payoff_table(rules.tree, chosen)
    return ExactTable(table)


def exact_gap(game: Game, populations: Populations, payoffs: ExactTable, sigma: np.ndarray) -> FullGap[int | None]:
    """The full game's CCE gap of sigma, which is its NashConv where sigma is a product; exact.

    `payoffs` are of these populations. `chosen` numbers a best response as if it were added to the population.
    Raises ValueError as `evaluate_exact`, and for a sigma that does not fit.
    """
    rules = tree_game(game)
    joint = check_sigma(sigma, payoffs.mean)
    responses = mixture_responses(rules.tree, population_parts(rules, populations), joint)
    earned = expected_payoffs(payoffs.mean, joint)
    # Rounding may leave an equilibrium just below zero.
    gains = [max(response.value - float(own), 0.0) for response, own in zip(responses, earned, strict=True)]
    return _exact_gap(gains, [len(own) if gain else None for own, gain in zip(populations, gains, strict=True)])


def exact_ce_gap(
    game: Game, populations: Populations, payoffs: ExactTable, sigma: np.ndarray
) -> FullGap[dict[int, int]]:
    """The full game's CE gap of sigma: everyone knows which policy it was told to play when it deviates; exact.

    At least `exact_gap`, and the same where sigma is a product. `chosen[player]` numbers the best responses as it does,
    by the policy told. Raises ValueError as it does.
    """
    rules = tree_game(game)
    joint = check_sigma(sigma, payoffs.mean)
    told = gains_when_told(rules.tree, population_parts(rules, populations), joint)
    chosen = [{k: len(own) for k, gain in gains.items() if gain} for own, gains in zip(populations, told, strict=True)]
    return _exact_gap([sum(gains.values()) for gains in told], chosen)


def exact_nash_conv(
    game: Game, populations: Populations, payoffs: ExactTable, sigma: np.ndarray
) -> FullGap[int | None]:
    """The full game's NashConv of sigma's marginals, played independently, whatever sigma is; exact.

    For meta-strategies such as alpha-rank's, which are joint and promise no correlated equilibrium. Raises ValueError
    as `exact_gap`.
    """
    return exact_gap(game, populations, payoffs, independent(check_sigma(sigma, payoffs.mean)))


def anytime(game: Game, populations: Populations, payoffs: ExactTable) -> np.ndarray:
    """The meta-strategy of least NashConv in the whole game, of all products over the populations.

    The `solve` of `marl.psro.psro` for anytime PSRO [McAleer et al. 2022, arXiv:2201.07700]: the gap in the whole game
    never rises. Raises ValueError as `games.exact.least_exploitable`, for games that are not zero-sum of two players.
    """
    rules = tree_game(game)
    return least_exploitable(rules.tree, population_parts(rules, populations))


def anytime_targets(game: Game, snapshot: "Snapshot", player: int) -> list[Target]:
    """One response, to what the other would play if only this player were held to its population.

    With `anytime` as meta-strategy this is anytime double oracle; see `games.exact.free_opponent`.
    """
    rules, (first, second) = tree_game(game), snapshot.populations
    free = free_opponent(rules.tree, population_parts(rules, snapshot.populations), player)
    opponent = [TabularPolicy.of(rules, 1 - player, free)]
    populations = [first, opponent] if player == 0 else [opponent, second]
    return [Target(snapshot.sigma.sum(axis=1 - player, keepdims=True), populations=populations)]


def exact_returns(payoffs: ExactTable, sigma: np.ndarray) -> list[Estimate]:
    """What every player earns under sigma."""
    return [_exact(float(value)) for value in expected_payoffs(payoffs.mean, sigma)]


def _exact_gap(gains: Sequence[float], chosen: Sequence[Chosen]) -> FullGap[Chosen]:
    return FullGap(_exact(sum(gains)), [_exact(gain) for gain in gains], chosen)


def _exact(value: float) -> Estimate:
    return Estimate(value, 0.0, "exact")
