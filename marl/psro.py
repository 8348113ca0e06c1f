"""Policy-space response oracles: the outer loop as a generator."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from torch import as_tensor

from games.game import Game, Lanes, Playable, Policy
from games.lanes import closing, lanes_of
from games.noise import unit_seed
from games.versus import Populations, Versus
from marl.exact import ExactTable
from marl.oracles import Oracle, Progress
from marl.population import PayoffTable
from marl.shared import SharedTable
from marl.wrappers import TeamReward
from metasolvers import MetaSolver

Payoffs = PayoffTable | SharedTable | ExactTable


class Snapshot(NamedTuple):
    """One iteration's outcome."""

    iteration: int
    populations: Sequence[Sequence[Policy]]
    payoffs: Payoffs
    sigma: np.ndarray  # [k_1, ..., k_N] joint meta-strategy


Respond = Callable[[Snapshot], Sequence[Sequence[Policy]]]
"""New policies of every player, from none to several, to the outcome of the iteration before."""
Evaluate = Callable[[Populations, Any], Payoffs]
"""(populations, known) -> their payoffs; extends a table of the kind it makes, or None."""
Solve = Callable[[Populations, Any], np.ndarray]
"""(populations, their payoffs) -> the meta-strategy."""


def from_payoffs(meta_solver: MetaSolver) -> Solve:
    """The meta-strategy that one of `metasolvers` finds, which asks for nothing but payoffs."""
    return lambda populations, payoffs: meta_solver(payoffs.mean)


def psro(
    populations: Populations,
    respond: Respond,
    evaluate: Evaluate,
    solve: Solve,
    iterations: int,
    done: Snapshot | None = None,
) -> Iterator[Snapshot]:
    """Policy-space response oracles [Lanctot et al. 2017, algorithm 1]; one snapshot an iteration.

    Iteration 0 solves the game among the initial `populations`; each of the `iterations` after it adds what `respond`
    finds, and extends the payoff table. What these are given makes it any of its family: `solve` decides what is
    solved (`from_payoffs(zero_sum_nash)`), `marl.targets` against whom responses are trained. They are added as they
    come, even where the population holds them already, or nothing is gained by them: with the meta-solver uniform,
    fictitious play counts on that. Where the snapshot `done` is given, only those after it are made and yielded.

    >>> import torch
    >>> from games import make
    >>> from games.policies import Uniform
    >>> from marl.oracles import PPO
    >>> from marl.population import evaluate
    >>> from metasolvers import zero_sum_nash
    >>> torch.set_num_threads(1)  # small networks are fastest so
    >>> game, oracle = make("matching_pennies"), PPO(steps=4096, num_lanes=64)
    >>> respond = one_response_each(game, oracle, seed=0)
    >>> initial = [[Uniform.of(space)] for space in game.action_spaces]
    >>> payoffs = partial(evaluate, game, episodes=100, seed=0)
    >>> extended = lambda populations, known: payoffs(populations, known=known)
    >>> for snapshot in psro(initial, respond, extended, from_payoffs(zero_sum_nash), 2):
    ...     print(snapshot.iteration, snapshot.sigma.shape)
    0 (1, 1)
    1 (2, 2)
    2 (3, 3)
    """
    if done is None:
        populations = [list(population) for population in populations]
        payoffs = evaluate(populations, None)
        done = Snapshot(0, populations, payoffs, solve(populations, payoffs))
        yield done
    for iteration in range(done.iteration + 1, iterations + 1):
        populations = [[*old, *new] for old, new in zip(done.populations, respond(done), strict=True)]
        payoffs = evaluate(populations, done.payoffs)
        done = Snapshot(iteration, populations, payoffs, solve(populations, payoffs))
        yield done


@contextmanager
def learning_lanes(
    game: Game | Playable,
    num_lanes: int,
    populations: Populations,
    sigma: np.ndarray,
    seat: int,
    reward: Literal["own", "team"] = "own",
    device: str = "cpu",
) -> Iterator[Versus]:
    """Lanes that show one seat of the game, while the others play sigma; closed in the end.

    With reward "team" the seat earns the sum of all agents' rewards. On a device other than the CPU, lanes of our games
    and the others' policies live there too.
    """
    opponents = [[placed(policy, device) for policy in population] for population in populations]
    with game_lanes(game, num_lanes, reward, device) as lanes:
        yield Versus(lanes, opponents, sigma, (seat,))


@contextmanager
def game_lanes(
    game: Game | Playable, num_lanes: int, reward: Literal["own", "team"] = "own", device: str = "cpu"
) -> Iterator[Lanes]:
    """The same, but of all seats."""
    if reward not in ("own", "team"):
        raise ValueError(f"reward is 'own' or 'team', got {reward!r}")
    put = np.asarray if device == "cpu" else partial(as_tensor, device=device)
    with closing(lanes_of(game, num_lanes, put)) as lanes:
        yield TeamReward(lanes) if reward == "team" else lanes


def best_response(
    game: Game | Playable,
    oracle: Oracle,
    populations: Populations,
    sigma: np.ndarray,
    seat: int,
    seed: int,
    unit: str,
    reward: Literal["own", "team"] = "own",
    device: str = "cpu",
    start: Policy | None = None,
    progress: Progress | None = None,
) -> Policy:
    """One unit of work: train `seat` against the other seats' play of sigma.

    The result is a pure function of (game, oracle, populations, sigma, seat, seed, unit, reward, start), on one kind of
    device. The others are drawn from `populations` [player][k] by `sigma` [k_1, ..., k_N]; (`seed`, `unit`) key what
    is random. `reward` and `device` are those of `learning_lanes`; the policy comes back on the CPU. Training goes on
    from the policy `start`, or begins from scratch; `progress` gets what the learner reports after every update. Raises
    ValueError where the oracle cannot train for this seat.
    """
    warm = None if start is None else {0: start}
    with learning_lanes(game, oracle.num_lanes, populations, sigma, seat, reward, device) as lanes:
        return placed(oracle.train(lanes, (0,), unit_seed(seed, unit), device, warm, progress)[0], "cpu")


def one_response_each(
    game: Game | Playable, oracle: Oracle, seed: int, progress: Callable[[], Progress] | None = None
) -> Respond:
    """Every player's best response to the meta-strategy, trained from scratch: a `respond` for `psro`.

    Units are named `train/ITERATION/SEAT`. Where `progress` is given, it is called once before each training, and makes
    what that one tells.
    """

    def respond(before: Snapshot) -> list[list[Policy]]:
        train = partial(best_response, game, oracle, before.populations, before.sigma)
        units = [f"train/{before.iteration + 1}/{seat}" for seat in range(len(game.agents))]
        return [[train(seat, seed, unit, progress=progress and progress())] for seat, unit in enumerate(units)]

    return respond


def placed(policy: Policy, device: str) -> Policy:
    """The policy with its weights, if it has any, on a device."""
    return policy.to(device) if hasattr(policy, "to") else policy
