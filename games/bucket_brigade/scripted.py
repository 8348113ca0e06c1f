"""Scripted policies of Bucket Brigade; they read nothing but the observation."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from array_api_compat import array_namespace, device

from games.bucket_brigade.genomes import ARCHETYPES, SIMPLE_GENES, FullGenome, Genome
from games.bucket_brigade.observation import first, nth_fire, number, read
from games.bucket_brigade.rules import WORK, BucketBrigade
from games.game import Array, Legal, Policy
from games.policies import Uniform
from games.spelling import unknown

SCOPES = ("any", "owned")


@dataclass(frozen=True)
class AlwaysRest:
    """Rests at house 0, signal 0."""

    noise_size: ClassVar[int] = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp = array_namespace(observation)
        nowhere = xp.astype(observation[:, 0] * 0, xp.int64)
        return action(nowhere, nowhere, nowhere), None


@dataclass(frozen=True)
class Specialist:
    """Works at its first own house that burns, signal 1; rests at its first own house, signal 0, if none does."""

    agents: int = 4
    houses: int = 10
    noise_size: ClassVar[int] = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        fire, home = first(seen.burning * seen.owned > 0), first(seen.owned > 0) % self.houses
        mode = xp.astype(fire < self.houses, xp.int64)
        return action(xp.where(mode == WORK, fire, home), mode, mode), None


@dataclass(frozen=True)
class Firefighter:
    """With probability `p` works at the burning house of the lowest index in scope, signal 1; else rests at house 0.

    The scope is all houses (`any`: everyone runs to the same one) or the `owned` ones.
    Raises ValueError for another scope, or a p outside [0, 1].
    """

    scope: str = "any"
    p: float = 1.0
    agents: int = 4
    houses: int = 10
    noise_size: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise unknown("scope of a firefighter", self.scope, SCOPES)
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be a probability, got {self.p}")

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        fire = first((seen.burning if self.scope == "any" else seen.burning * seen.owned) > 0)
        mode = xp.astype((fire < self.houses) & (noise[:, 0] < self.p), xp.int64)
        return action(fire * mode, mode, mode), None

    def joint(self, observation: Array, legal: Legal) -> Array:
        """[B, 4 H] float64 probabilities of the actions, as `games.policies.joint_probabilities` asks for them."""
        xp = array_namespace(observation)
        low, high = xp.zeros_like(observation[:, :1]), xp.ones_like(observation[:, :1])
        goes, rests = (self.act(observation, legal, None, noise)[0] for noise in (low, high))
        return self.p * one_hot(goes, self.houses) + (1 - self.p) * one_hot(rests, self.houses)


@dataclass(frozen=True)
class Spread:
    """Agent i works at the (i mod n)-th of the n burning houses, signal 1; rests at house 0 if none burns.

    Nobody works twice at one fire while another burns alone: a strong team by convention rather than by talking.
    """

    agents: int = 4
    houses: int = 10
    noise_size: ClassVar[int] = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation: Array, legal: Legal, memory: None, noise: Array) -> tuple[Array, None]:
        xp, seen = array_namespace(observation), read(observation, self.agents, self.houses)
        fires, who = number(seen.burning), first(seen.asked > 0)
        fire = nth_fire(seen, who % xp.where(fires > 0, fires, xp.ones_like(fires)))
        mode = xp.astype(fires > 0, xp.int64)
        return action(fire * mode, mode, mode), None


def action(house: Array, mode: Array, signal: Array) -> Array:
    """[B, 3] int64 from three columns [B]."""
    return array_namespace(house).stack([house, mode, signal], axis=1)


def one_hot(actions: Array, houses: int) -> Array:
    """[B, 4 H] float64: 1 at the number of the action [B, 3] in C order."""
    xp = array_namespace(actions)
    numbers = xp.arange(4 * houses, dtype=xp.int64, device=device(actions))
    return xp.astype(numbers[None, :] == (4 * actions[:, 0] + 2 * actions[:, 1] + actions[:, 2])[:, None], xp.float64)


def build(kind: type, game: BucketBrigade, **fields: Any) -> Policy:
    """A policy of the class `kind` for the size of `game`.

    Raises ValueError for fields that the class does not have, and where one without a default is left out.
    """
    known = {field.name: field for field in dataclasses.fields(kind)}
    size = {name: value for name, value in (("agents", game.N), ("houses", game.H)) if name in known}
    for name in fields:
        if name not in known:
            raise unknown(f"field of {kind.__name__}", name, known)
    missing = [name for name, field in known.items() if field.default is dataclasses.MISSING and name not in fields]
    if missing:
        raise ValueError(f"{kind.__name__} is a family of policies: name one of them, or give its {', '.join(missing)}")
    return kind(**size | fields)


POLICIES: dict[str, Callable[..., Policy]] = {
    "always_rest": partial(build, AlwaysRest),
    "firefighter": partial(build, Firefighter),
    "genome": partial(build, Genome),
    "genome_full": partial(build, FullGenome),
    "specialist": partial(build, Specialist),
    "spread": partial(build, Spread),
    "uniform": lambda game: Uniform.of(game.action_spaces[0]),
    **{
        f"genome {name}": partial(build, Genome, **{gene: genes[gene] for gene in SIMPLE_GENES})
        for name, genes in ARCHETYPES.items()
    },
    **{f"genome_full {name}": partial(build, FullGenome, **genes) for name, genes in ARCHETYPES.items()},
}
"""Every scripted policy by name: what builds it from a game, and from fields of its own."""

FAMILIES = ("firefighter", "genome", "genome_full")
"""Names of many policies, told apart by their fields; the genes of a genome have no defaults."""

BLIND = ("uniform", "always_rest")
"""Policies that never look, and therefore play whatever the layout of the observation."""


def policy(name: str, game: BucketBrigade, **fields: Any) -> Policy:
    """The policy called `name` in `POLICIES`, for any seat of `game`; `fields` are its own, such as a scope or genes.

    Raises ValueError for an unknown name or field, for missing genes, or a game that shows what the policy cannot read.
    """
    if name not in POLICIES:
        raise unknown("Bucket Brigade policy", name, POLICIES)
    if game.observation != "features" and name not in BLIND:
        raise ValueError(f"{name} reads observation='features' only, got a game with {game.observation!r}")
    return POLICIES[name](game, **fields)
