"""Bucket Brigade games of every kind, played night by night: what the tests of its laws share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from games.bucket_brigade import SCENARIOS, BucketBrigade
from games.bucket_brigade.rules import DIALECTS
from games.bucket_brigade.scenarios import UNUSED
from games.lanes import tree_map
from tests.games.reference import Reference

VARIANTS: dict[str, dict[str, Any]] = {
    "continuous": {"scenario": "default_continuous", "rho": 0.1, "min_nights": 3},
    "continuous, at once": {"scenario": "default_continuous", "rules": "engine", "rho": 0.1},
    "two phases": {"scenario": "hard", "two_phase": True},
    "adjacent only": {"scenario": "positional_default", "adjacent_only": True, "rho": 0.2},
    "progress": {"scenario": "hard", "progress_shaping": 3.0},
    "actions": {"scenario": "hard", "rules": "engine", "rescue_shaping": 5.0, "presence_shaping": 0.7},
    "potential": {"scenario": "hard", "potential_shaping": 0.5, "potential_discount": 0.9, "min_nights": 2},
    "two houses": {"scenario": "v2_minimal", "extinguish": "continuous", "suppression": 0.3},
    "everything": {
        **{"scenario": "positional_default", "extinguish": "continuous", "two_phase": True, "adjacent_only": True},
        **{"progress_shaping": 3.0, "rescue_shaping": 5.0, "presence_shaping": 0.7, "potential_shaping": 0.5},
        **{"rho": 0.1, "min_nights": 2},
    },
}
"""One game, at least, of every variant of the rules."""


def amounts(agents: int) -> st.SearchStrategy:
    """Of a seat: one for all, or one each."""
    amount = st.sampled_from([0.0, 0.5, 3.0, 50.0])
    return amount | st.tuples(*[amount] * agents)


@st.composite
def games_of_all_kinds(draw: st.DrawFn, even: bool = False, **fixed: st.SearchStrategy) -> dict[str, Any]:
    """Arguments of a game of any size with any rules but two phases; `even`: everyone owns equally many houses."""
    agents = draw(st.integers(1, 5))
    houses = draw(st.integers(1 if agents > 1 else 2, 2).map(lambda each: each * agents) if even else st.integers(2, 8))
    share = st.sampled_from([0.0, 0.3, 1.0])
    strategies = {
        "rules": st.sampled_from(list(DIALECTS)),
        "kappa": st.sampled_from([0.0, 0.3, 0.5, 0.95, 1.0]),
        "beta": share,
        "rho": st.sampled_from([0.0, 0.02, 0.2, 0.6]),
        "cost": st.sampled_from([0.0, 0.5, 2.0]),
        "distance_cost": st.sampled_from([0.0, 0.25]),
        "homes": st.none() | st.tuples(*[st.integers(0, houses - 1)] * agents),
        "min_nights": st.integers(0, 6),
        "own_gain": amounts(agents),
        "other_gain": amounts(agents),
        "own_loss": amounts(agents),
        "other_loss": amounts(agents),
        "extinguish": st.sampled_from(["bernoulli", "continuous"]),
        "suppression": st.sampled_from([0.25, 0.3, 0.5, 1.0, 2.0]),
        "adjacent_only": st.booleans(),
        "progress_shaping": share,
        "rescue_shaping": share,
        "presence_shaping": share,
        "potential_shaping": share,
        "potential_discount": st.sampled_from([0.9, 1.0]),
    }
    return {"scenario": "hard", "num_agents": agents, "num_houses": houses} | {
        name: draw(strategy) for name, strategy in (strategies | fixed).items()
    }


def cell_of(game: BucketBrigade) -> dict[str, Any]:
    """The game's numbers as plain values, put together from the scenario and the arguments."""
    given = {name: getattr(game, name) for name in UNUSED | SCENARIOS[game.scenario] if name != "gist"}
    cell = UNUSED | SCENARIOS[game.scenario] | {name: value for name, value in given.items() if value is not None}
    return cell if cell["homes"] else {name: value for name, value in cell.items() if name != "homes"}


def reference_of(game: BucketBrigade) -> Reference:
    return Reference(cell_of(game), **DIALECTS[game.rules], adjacent_only=game.adjacent_only)


def draws(rng: np.random.Generator, game: BucketBrigade, lanes: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Actions of everyone, and the noise of a step."""
    actions = tuple(rng.integers([game.H, 2, 2], size=(lanes, 3)) for _ in range(game.N))
    return actions, rng.random((lanes, game.noise_sizes[1]), np.float32)


def play_night_by_night(
    game: BucketBrigade, params: Any, seed: int, nights: int, put=np.asarray, lanes: int = 8
) -> Iterator[tuple[Any, Any, np.ndarray]]:
    """Yields (state, actions, noise) of every night, the start first; nobody stops at the end of an episode."""
    rng = np.random.default_rng(seed)
    params = tree_map(put, params)
    noise = rng.random((lanes, game.noise_sizes[0]), np.float32)
    state = game.init(params, put(noise))
    yield state, None, noise
    for _ in range(nights):
        actions, noise = draws(rng, game, lanes)
        state = game.step(params, state, tuple(put(a) for a in actions), put(noise))
        yield state, actions, noise
