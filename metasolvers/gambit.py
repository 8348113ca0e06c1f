"""Gambit's solvers on the same payoffs: another implementation of equilibria, and methods that are not found here.

pygambit (GPL) is an extra of its own, imported where it is used: `pip install "counterplay[gambit]"`.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.bimatrix import Strategies
from metasolvers.metagame import check_payoffs

TWO_PLAYER = ("enummixed", "lcp", "lp")
ANY_PLAYERS = ("enumpure", "enumpoly", "logit", "gnm", "ipa")
METHODS = (*TWO_PLAYER, *ANY_PLAYERS)


def gambit_nash(payoffs: ArrayLike, method: str | None = None) -> list[Strategies]:
    """The Nash equilibria that one of Gambit's methods finds: payoffs [N, k_1, ..., k_N] -> N strategies [k_i] each.

    "enummixed" (all extreme ones), "lcp" (some) and "lp" (constant-sum) take two players, in rational arithmetic;
    "enumpure" (all pure ones), "enumpoly" (all isolated ones), "logit" (one), "gnm" (some) and "ipa" (one) any number
    [Savani & Turocy, Gambit: the package for computation in game theory, gambit-project.org]. By default it is
    "enummixed" for two players and "enumpoly" for others. product(strategies) makes a sigma.
    Raises ValueError for another method and for games that the method does not take, ModuleNotFoundError without
    pygambit, and ArithmeticError where Gambit gives up.
    """
    table = check_payoffs(payoffs)
    if method is None:
        method = "enummixed" if len(table) == 2 else "enumpoly"
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    if method in TWO_PLAYER and len(table) != 2:
        raise ValueError(f"{method} takes games of two players; got {len(table)}: use one of {', '.join(ANY_PLAYERS)}")
    try:
        from pygambit import StrategicGame, nash
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f'gambit_nash needs pygambit: pip install "counterplay[gambit]" ({error})') from error
    exact = np.vectorize(Fraction, otypes=[object])(table)
    try:
        result = getattr(nash, f"{method}_solve")(StrategicGame.from_arrays(*exact))
    except (RuntimeError, NotImplementedError) as error:
        raise ValueError(f"{method} does not take this game: {error}") from error
    if not result.success:
        raise ArithmeticError(f"Gambit's {method} gave up: {result}")
    found = result.equilibria if hasattr(result, "equilibria") else [result.equilibrium]
    return [_strategies(profile, table.shape[1:]) for profile in found]


def _strategies(profile, policies: tuple[int, ...]) -> Strategies:
    """Players and policies are called "1", "2", ... there."""
    return tuple(
        np.array([float(profile[str(player + 1)][str(policy + 1)]) for policy in range(size)])
        for player, size in enumerate(policies)
    )
