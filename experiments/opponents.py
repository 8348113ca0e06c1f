"""Who plays the seats that do not learn: scripted policies, a policy's files, or what an earlier run found."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from analysis.load import command_of
from experiments.run import read_settings
from games.game import Game, Lanes, Playable, Policy
from games.lanes import closing, lanes_of
from games.policies import Uniform
from games.scripted import profile
from games.versus import Cast, Populations
from marl.atomic import BrokenCheckpoint, verify, whole_folder
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot
from marl.oracles import BehaviouralCloning, JointTraining, Oracle
from marl.policy_files import load_policy, save_policy
from marl.psro import game_lanes, learning_lanes
from metasolvers import marginal

SIGMA = "sigma.npy"
TRAINED = "policy"
"""Folder, and unit of work, of what a training made."""
TOGETHER = "together"
"""Folder of who learned beside it, in joint training."""
EXPERT = "expert"
"""Files of who is imitated, beside those of the opponents."""


class Opponents(NamedTuple):
    """A joint distribution over the profiles of populations; the learning seat's has one policy, that nobody plays."""

    populations: Populations
    sigma: np.ndarray  # [k_1, ..., k_N]

    def joined_by(self, seat: int, policy: Policy) -> "Opponents":
        """With a policy for the seat that learned."""
        return Opponents([[policy] if i == seat else p for i, p in enumerate(self.populations)], self.sigma)


def opponents(against: str, game: Game | Playable, seat: int) -> Opponents:
    """Those that an option names: a scripted policy of the game, a run's folder, or a policy's files without suffix.

    Of a run of PSRO they play the last meta-strategy; a policy plays every other seat. Raises ValueError for what is
    nothing of that, or cannot play these seats.
    """
    path = Path(against)
    if (path / "run.json").is_file() and command_of(read_settings(path)) != "train":
        found = _meta_strategy(path, seat)
    else:
        policies = _policies(path)
        if not policies and ("/" in against or path.exists()):
            raise ValueError(f"there is no run, and no policy, at {against}")
        policies = policies or list(profile(against, game))
        others = policies if len(policies) > 1 else policies * len(game.agents)
        found = Opponents([[policy] for policy in others], np.ones((1,) * len(others)))
    if len(found.populations) != len(game.agents):
        raise ValueError(f"{against} has {len(found.populations)} players, this game has {len(game.agents)}")
    placed = found.joined_by(seat, Uniform.of(game.action_spaces[seat]))
    _check_plays(against, placed, game)
    return placed


@contextmanager
def lanes_to_learn(
    oracle: Oracle,
    game: Game | Playable,
    others: Opponents,
    seat: int,
    reward: Literal["own", "team"] = "own",
    device: str = "cpu",
    alone: bool = False,
) -> Iterator[tuple[Lanes, tuple[int, ...]]]:
    """Lanes, and the seats they show: one against the others, or in joint training, if not `alone`, all of the game."""
    if oracle.all_seats and not alone:
        with game_lanes(game, oracle.num_lanes, reward, device) as lanes:
            yield lanes, tuple(range(len(game.agents)))
    else:
        with learning_lanes(game, oracle.num_lanes, *others, seat, reward, device) as lanes:
            yield lanes, (seat,)


def beginnings(oracle: Oracle, others: Opponents, seat: int, start: Policy | None) -> dict[int, Policy]:
    """Policies to go on from, by seat; in joint training the others' too, where their seats do not learn.

    Raises ValueError for a mixture of others there, where the seat itself does not learn, and where seats are to learn
    that there are not.
    """
    known = {} if start is None else {seat: start}
    if not isinstance(oracle, JointTraining) or oracle.opponents or not oracle.learning_seats:
        return known
    players = range(len(others.populations))
    if not set(oracle.learning_seats) <= set(players):
        raise ValueError(f"learning_seats must be among the players, 0..{players[-1]}, got {oracle.learning_seats}")
    if seat not in oracle.learning_seats:
        raise ValueError(f"seat {seat} is none of those that learn, {oracle.learning_seats}: name one of them")
    if max(map(len, others.populations)) > 1:
        raise ValueError("in joint training seats that do not learn play one policy each: name no meta-strategy")
    return known | {
        player: population[0]
        for player, population in enumerate(others.populations)
        if player not in oracle.learning_seats
    }


def together(oracle: Oracle, others: Opponents, policies: Mapping[int, Policy]) -> Opponents | None:
    """With whom a policy of joint training is measured: those who learned with it. None where it is with the others."""
    if not oracle.all_seats or (isinstance(oracle, JointTraining) and oracle.opponents):
        return None
    company = [[policies.get(player, population[0])] for player, population in enumerate(others.populations)]
    return Opponents(company, np.ones((1,) * len(company)))


def met(run: Path, game: Game | Playable, seat: int) -> Opponents:
    """With whom the policy of a training is measured. Raises BrokenCheckpoint as `load_opponents`."""
    folder = run / TOGETHER
    return load_opponents(folder if folder.exists() else run / "opponents", game, seat)[0]


def policy_at(path: Path) -> Policy:
    """A policy by its files, without suffix, or by the folder of the training that made it.

    Raises ValueError where there is none.
    """
    found = _policies(path)
    if not found:
        raise ValueError(
            f"there is no policy at {path}: name the folder of a training, or a policy's files without .json"
        )
    return found[0]


def _policies(path: Path) -> list[Policy]:
    """The one at a path; none where there is nothing."""
    if (path / "run.json").is_file():
        if command_of(read_settings(path)) != "train":
            raise ValueError(f"{path} is a run of PSRO: name one of its policies, as {path}/policies/train-1-0/policy")
        if not (path / TRAINED).exists():
            raise ValueError(f"{path} has trained no policy yet: resume it first")
        return [PolicyStore(path).load(TRAINED).policy]
    stem = path.with_suffix("") if path.suffix == ".json" else path
    return [load_policy(stem)] if stem.with_name(f"{stem.name}.json").is_file() else []


def _meta_strategy(run: Path, seat: int) -> Opponents:
    """Of the last iteration: the policies that the others ever play, and how they play them together."""
    last = finished_iterations(run / "snapshots") - 1
    if last < 0:
        raise ValueError(f"{run} has finished no iteration yet: resume it first")
    snapshot = load_snapshot(run / "snapshots", last, PolicyStore(run / "policies"))
    if seat >= snapshot.sigma.ndim:
        raise ValueError(f"{run} has {snapshot.sigma.ndim} players, none of number {seat}")
    joint = snapshot.sigma.sum(axis=seat, keepdims=True)
    played = [np.flatnonzero(marginal(joint, player)).tolist() for player in range(joint.ndim)]
    populations = [
        [population[index] for index in indices]
        for population, indices in zip(snapshot.populations, played, strict=True)
    ]
    return Opponents(populations, joint[np.ix_(*played)])


def _check_plays(against: str, placed: Opponents, game: Game | Playable) -> None:
    """Raises ValueError unless everybody sees what it was made for, and can take a step of the game."""
    for agent, space, population in zip(game.agents, game.observation_spaces, placed.populations, strict=True):
        shape = space.shape or ()
        for policy in population:
            features = getattr(policy, "features", None)
            if len(shape) == 1 and features not in (None, *shape):
                raise ValueError(
                    f"{against} cannot play the other seats of this game: {agent} observes {shape[0]} features, "
                    f"{policy!r} was made for {features}"
                )
    for number in range(max(map(len, placed.populations))):
        everyone = [[population[min(number, len(population) - 1)]] for population in placed.populations]
        with closing(lanes_of(game, 1)) as lanes:
            lanes.reset(0, "trial")
            cast = Cast(lanes, everyone, np.ones((1,) * len(everyone)), range(len(everyone)))
            try:
                cast.start()
                lanes.step(tuple(cast.act().values()))
            except (ValueError, RuntimeError, IndexError, TypeError) as error:
                raise ValueError(f"{against} cannot play the other seats of this game: {error}") from error


def save_opponents(
    folder: Path, placed: Opponents, seat: int, start: Policy | None = None, expert: Policy | None = None
) -> None:
    """Write the others' policies, named by player and number, and their sigma; with them, if there are any, the policy
    that training starts from, and the expert it imitates.
    """
    with whole_folder(folder) as path:
        np.save(path / SIGMA, placed.sigma, allow_pickle=False)
        for player, population in enumerate(placed.populations):
            for number, policy in enumerate(population if player != seat else ()):
                save_policy(policy, path / f"{player}-{number}")
        for name, given in (("start", start), (EXPERT, expert)):
            if given is not None:
                save_policy(given, path / name)


def with_own_expert(oracle: Oracle, folder: Path) -> Oracle:
    """The oracle; one that imitates an expert does the one that `save_opponents` wrote into the folder."""
    return replace(oracle, expert=str(folder / EXPERT)) if isinstance(oracle, BehaviouralCloning) else oracle


def load_opponents(folder: Path, game: Game | Playable, seat: int) -> tuple[Opponents, Policy | None]:
    """What `save_opponents` wrote. Raises BrokenCheckpoint where it is not as it was written."""
    verify(folder)
    try:
        sigma = np.load(folder / SIGMA, allow_pickle=False)
        populations: list[Sequence[Policy]] = [
            [Uniform.of(game.action_spaces[seat])]
            if player == seat
            else [load_policy(folder / f"{player}-{number}") for number in range(size)]
            for player, size in enumerate(sigma.shape)
        ]
        start = load_policy(folder / "start") if (folder / "start.json").exists() else None
    except (OSError, ValueError, EOFError) as error:
        raise BrokenCheckpoint(f"{folder} is not as a training writes it ({error})") from error
    return Opponents(populations, sigma), start
