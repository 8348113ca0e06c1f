"""Which oracle trains best responses: named by --oracle, its settings options of that name (--sac.steps ...)."""

import json
from dataclasses import field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar, get_origin

import tyro

from games.spelling import unknown
from marl.oracles import DQN, ORACLES, PPO, BehaviouralCloning, Exact, Oracle

# What imports torch, or takes its time, is imported where it is used: --help answers at once.
if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from games.game import Game, Lanes, Playable, Policy
    from games.versus import Populations

LITTLE: dict[str, Any] = {"steps": 512, "num_lanes": 16, "horizon": 16, "epochs": 1, "minibatches": 1, "hidden": (16,)}
SMALL: dict[str, dict[str, Any]] = {
    "a2c": {"steps": 512, "num_lanes": 16, "horizon": 16, "hidden": (16,)},
    "ppo": LITTLE,
    "joint": {"ppo": PPO(**LITTLE)},
    "recurrent_ppo": LITTLE | {"hidden": (), "units": 8},
    "dqn": {"steps": 512, "num_lanes": 4, "gradient_steps": 2, "learning_starts": 64, "hidden": (16,)},
    "sac": {"steps": 512, "num_lanes": 4, "gradient_steps": 2, "learning_starts": 64, "hidden": (16,)},
    "nfsp": {
        "dqn": DQN(steps=512, num_lanes=16, gradient_steps=2, learning_starts=64, hidden=(16,)),
        "ppo": PPO(**LITTLE),
        "hidden": (16,),
    },
    "behavioural_cloning": {"steps": 512, "num_lanes": 8, "epochs": 2, "hidden": (16,)},
    "sb3": {"algorithm": "A2C", "steps": 256, "num_lanes": 4},
}
"""Budgets that take seconds, by oracle: what differs from its defaults."""


REGISTRY = tyro.constructors.ConstructorRegistry()
"""How options are read that tyro alone would not read so."""


@REGISTRY.primitive_rule
def _as_json(info: tyro.constructors.PrimitiveTypeInfo) -> tyro.constructors.PrimitiveConstructorSpec | None:
    """Settings of any names, as a JSON object."""
    if get_origin(info.type) is not dict:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="JSON",
        instance_from_str=lambda words: _object(words[0]),
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [json.dumps(value)],
    )


def _object(text: str) -> dict[str, Any]:
    """Raises ValueError for what is no JSON object."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no JSON ({error}): write it as '{{\"name\": value}}'") from None
    if not isinstance(value, dict):
        raise ValueError(f"{text!r} is no JSON object: write it as '{{\"name\": value}}'")
    return value


class Choosing(Protocol):
    """A configuration that names an oracle, and may have settings for it in a field of that name."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def oracle(self) -> str: ...


class Preferring(Choosing, Protocol):
    """One that always has settings for PPO."""

    @property
    def ppo(self) -> PPO: ...


C = TypeVar("C", bound=Preferring)


def check_oracle(name: str) -> None:
    """Raises ValueError for a name that no oracle has, with near matches."""
    if name not in ORACLES:
        raise unknown("oracle", name, ORACLES)


def check_responder(name: str) -> None:
    """Raises ValueError for a name that no oracle of best responses has, with near matches."""
    check_oracle(name)
    if ORACLES[name]().all_seats:
        raise ValueError(f"{name} trains all seats at once, and a best response is one seat's: use the oracle ppo")


def chosen(config: Choosing) -> Oracle:
    """The oracle that a configuration names, with the settings it has for it, or the oracle's own defaults.

    An expert may be the folder of the training that made it.
    """
    oracle = getattr(config, config.oracle) if hasattr(config, config.oracle) else ORACLES[config.oracle]()
    if isinstance(oracle, BehaviouralCloning) and (Path(oracle.expert) / "run.json").is_file():
        return replace(oracle, expert=str(Path(oracle.expert, "policy", "policy")))
    return oracle


def with_oracle(config: C, name: str, settings: Oracle | None = None) -> C:
    """The configuration with another oracle and its settings, by default the oracle's own.

    It gets a field of the oracle's name, which tyro makes options of, in place of those for PPO. Raises ValueError for
    a name that no oracle of best responses has.
    """
    check_responder(name)
    plain = getattr(config, "plain", type(config))  # it may have another oracle's settings already
    values = {entry.name: getattr(config, entry.name) for entry in fields(plain)} | {"oracle": name}
    if name == "ppo" or not fields(ORACLES[name]):
        return plain(**values)
    kind = make_dataclass(
        plain.__name__,
        [
            ("ppo", Annotated[PPO, tyro.conf.Suppress], field(default=config.ppo)),
            (name, ORACLES[name], field(default_factory=ORACLES[name])),
        ],
        bases=(plain,),
        namespace={"__doc__": plain.__doc__, "plain": plain},
        frozen=True,
    )
    return kind(**values, **{name: settings or ORACLES[name]()})


def small(name: str, settings: Oracle) -> Oracle:
    """The oracle with a budget that takes seconds."""
    return replace(settings, **SMALL.get(name, {}))  # type: ignore[type-var]


def with_steps(oracle: Oracle, steps: int, option: str) -> Oracle:
    """The oracle with another budget, which `option` gave. Raises ValueError where it cannot work."""
    if "steps" not in {entry.name for entry in fields(oracle)}:  # type: ignore[arg-type]
        if not steps:
            return oracle
        raise ValueError(f"{type(oracle).__name__} has no steps to be set: leave out {option}, or set it to 0")
    try:
        return replace(oracle, steps=steps)  # type: ignore[type-var]
    except ValueError as error:
        raise ValueError(f"{option}={steps} cannot work: {error}") from None


def part(oracle: Oracle, pipeline: int, targets: str) -> Oracle:
    """The oracle with its share of steps an iteration, of a pipeline of so many levels.

    Raises ValueError where it has none to share, or too few, with what would do; or targets are not the mixture: then
    there is no lowest level.
    """
    if pipeline == 1:
        return oracle
    if targets != "mixture":
        raise ValueError(f"a pipeline has one response a level: use --targets mixture, got {targets}")
    if not oracle.total_steps:
        raise ValueError(
            f"{type(oracle).__name__} has no training to share out: leave out --pipeline, or use --oracle ppo"
        )
    share = oracle.total_steps // pipeline
    try:
        return with_steps(oracle, share, "steps")
    except ValueError as error:
        raise ValueError(
            f"--pipeline {pipeline} leaves every level {share:,} of the oracle's {oracle.total_steps:,} steps an "
            f"iteration, too few to train with: {_enough(oracle, pipeline)}"
        ) from error


def _enough(oracle: Oracle, pipeline: int) -> str:
    """What to change so that every level of a pipeline has steps to train with."""
    option = next((f"--{name}.steps" for name, kind in ORACLES.items() if type(oracle) is kind), "the oracle's steps")
    update = getattr(oracle, "batch", 1)
    most = next((levels for levels in range(pipeline - 1, 1, -1) if _works(oracle, oracle.total_steps // levels)), None)
    least = next((steps for steps in (update * 2**power for power in range(20)) if _works(oracle, steps)), None)
    told = [f"use {option} {least * pipeline} or more"] if least else [f"raise {option}"]
    return " or ".join([*told, f"--pipeline {most} at most" if most else "leave out --pipeline"])


def _works(oracle: Oracle, steps: int) -> bool:
    """Whether the oracle can train with so many steps."""
    try:
        with_steps(oracle, steps, "steps")
    except ValueError:
        return False
    return True


def check_trainable(
    game: "Game | Playable", name: str, oracle: Oracle, initial: "Sequence[Policy]"
) -> "dict[int, Policy]":
    """What the oracle makes, before it has learned, of the first seat of every kind; `initial` has a policy a seat.

    Raises ValueError for a game, called `name`, that has seats it cannot train, as its learner says, and where what it
    makes cannot be saved.
    """
    import numpy as np

    populations, sigma = [[policy] for policy in initial], np.ones((1,) * len(initial))
    spaces = [str(pair) for pair in zip(game.observation_spaces, game.action_spaces, strict=True)]
    kinds = sorted({spaces.index(kind) for kind in spaces})
    return {seat: untrained(game, name, oracle, populations, sigma, seat) for seat in kinds}


def untrained(
    game: "Game | Playable",
    name: str,
    oracle: Oracle,
    populations: "Populations",
    sigma: "np.ndarray",
    seat: int,
    start: "Policy | None" = None,
    alone: bool = True,
) -> "Policy":
    """What the oracle makes of a seat, against those who play sigma, before it has learned. Errors as above.

    Unless it is `alone`, in joint training, others learn too.
    """
    from experiments.opponents import Opponents, beginnings, lanes_to_learn
    from marl.policy_files import check_savable

    others = Opponents(populations, sigma)
    try:
        with lanes_to_learn(oracle, game, others, seat, alone=alone) as (lanes, seats):
            policy = oracle.learner(lanes, seats, 0, start=beginnings(oracle, others, seat, start)).policies[seat]
            if isinstance(oracle, BehaviouralCloning):
                _check_expert(oracle, lanes)
        check_savable(policy)
        if isinstance(oracle, Exact):
            _check_told_apart(game, seat)
    except (ValueError, ModuleNotFoundError, FileNotFoundError) as error:
        which, agent = type(oracle).__name__, game.agents[seat]
        raise ValueError(f"{which} cannot train {agent} of {name}: {error}{_advice(game, seat)}") from error
    return policy


def _advice(game: "Game | Playable", seat: int) -> str:
    """What may be done about the spaces of somebody else's environment."""
    from gymnasium.spaces import Box

    from games.external import External

    if not isinstance(game, External):
        return ""
    if isinstance(game.action_spaces[seat], Box):
        return "; or give the environment bins, as in name(bins=5), for so many values a dimension"
    if len(game.observation_spaces[seat].shape) > 1:
        return '; or give the environment images="flat"'
    return ""


def _check_expert(oracle: BehaviouralCloning, lanes: "Lanes") -> None:
    """Raises ValueError for an expert that cannot take a step of the lanes, FileNotFoundError for one without files."""
    from marl.demonstrations import demonstrate
    from marl.oracles.behavioural_cloning_learner import expert_of

    demonstrate(lanes, [expert_of(oracle)] * len(lanes.agents), 1)


def _check_told_apart(game: "Game | Playable", seat: int) -> None:
    """Raises ValueError where information states look the same: an exact best response may differ there."""
    from games.exact import observations
    from marl.exact import tree_game

    rows = observations(tree_game(game), seat)
    looks = len({row.tobytes() for row in rows})
    if looks < len(rows):
        raise ValueError(
            f"exact best responses cannot be played where player {seat} is shown only {looks:,} different observations "
            f"in {len(rows):,} information states: use --oracle ppo, or a game that shows players their own past "
            "(goofspiel does with imp_info=true,points_order=descending)"
        )
