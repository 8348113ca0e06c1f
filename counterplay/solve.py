"""Tables of payoffs solved, `counterplay solve payoffs.npy --solver zero_sum_nash`, and the solvers there are."""

import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from counterplay.screen import Screen, bare_table
from games.spelling import unknown
from metasolvers import (
    META_SOLVERS,
    Entry,
    Law,
    cce_gap,
    check_payoffs,
    expected_payoffs,
    is_product,
    marginal,
    nash_conv,
)
from metasolvers import meta_solver as solver_named

MOST_SHOWN = 12
"""Rows of a table of policies or profiles."""
GAMES = {"any": "any", "two_player": "two players", "zero_sum": "two, zero-sum"}


def main(
    payoffs: Annotated[Path | None, tyro.conf.Positional] = None,
    solver: str = "alpha_rank",
    set: tuple[str, ...] = (),
    save: Path | None = None,
) -> int:
    """Solve a table of payoffs, or list the meta-solvers there are.

    Args:
        payoffs: A run folder (its last table), a .npy or .json file of payoffs [N, k_1, ..., k_N], or a .csv file of
            the first player's payoffs in a two-player zero-sum game. Without it the meta-solvers are listed.
        solver: Name of the meta-solver.
        set: Its parameters, as alpha=0.1 population_size=20.
        save: Where to write sigma [k_1, ..., k_N], a .npy file.
    """
    screen = Screen()
    if payoffs is None:
        rows = [_row(name, entry) for name, entry in META_SOLVERS.items()]
        screen.print(bare_table(("meta-solver", "players", "certificate", "what it is"), rows))
        screen.print(
            "\nhelp(metasolvers.NAME) in Python explains one; META_SOLVERS[NAME].laws are what the tests hold it to"
        )
        return 0
    solve = solver_named(solver)
    table, exact = read(payoffs)
    parameters = _parameters(solver, set)
    sigma = solve(table, **parameters)
    _show(screen, table, sigma)
    _certify(screen, META_SOLVERS[solver], table, sigma, parameters)
    if not exact:
        screen.print("payoffs are estimates, whose errors these numbers leave out: `counterplay show` tells them")
    if save is not None:
        np.save(save, sigma)
    return 0


def read(path: Path) -> tuple[np.ndarray, bool]:
    """Payoffs [N, k_1, ..., k_N] from a run folder or file, and whether they are exact, as files are taken to be.

    Raises ValueError for one that holds none.
    """
    if path.is_dir():
        from analysis.load import load_run

        run = load_run(path)
        return run.iterations[-1].mean, run.exact
    readers = {".npy": _npy, ".json": _json, ".csv": _csv}
    if path.suffix not in readers:
        raise ValueError(f"payoffs are read from a run folder, .npy, .json or .csv; got {path}")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        return check_payoffs(readers[path.suffix](path)), True
    except (ValueError, EOFError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _npy(path: Path) -> np.ndarray:
    return np.load(path, allow_pickle=False)


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def _csv(path: Path) -> np.ndarray:
    row = np.loadtxt(path, delimiter=",", ndmin=2)
    return np.stack([row, -row])


def _parameters(solver: str, given: tuple[str, ...]) -> dict[str, Any]:
    """Keyword arguments of a meta-solver from name=value. Raises ValueError for names that it does not have."""
    known = dict(list(inspect.signature(solver_named(solver)).parameters.items())[1:])
    found = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"a parameter is set as name=value, got {setting!r}")
        if name not in known:
            raise unknown(f"parameter of {solver}", name, known)
        found[name] = _value(name, value, known[name].default)
    return found


def _value(name: str, given: str, default: Any) -> Any:
    """A parameter's value, of the kind that its default has."""
    try:
        value = json.loads(given.lower() if given in ("True", "False") else given)
    except ValueError:
        value = given
    kind = type(default)
    if kind is float and type(value) is int:
        value = float(value)
    if default is not None and type(value) is not kind:
        wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}.get(kind, str(kind))
        raise ValueError(f"{name} is {wanted}, got {given!r}; several settings are separated by spaces")
    return value


def _row(name: str, entry: Entry) -> tuple[str, ...]:
    about = (inspect.getdoc(entry.solve) or "").splitlines()[0].partition(": payoffs")[0]
    certificate = "" if entry.certificate is None else entry.certificate.name
    if entry.certificate is not None and Law.CERTIFIED in entry.laws:
        certificate += f" <= {entry.certificate.tolerance:g}"
    return (name, GAMES[entry.takes], certificate, about)


def _show(screen: Screen, table: np.ndarray, sigma: np.ndarray) -> None:
    for player in range(sigma.ndim):
        shares = marginal(sigma, player)
        rows = [(str(policy), f"{shares[policy]:.6f}") for policy in _largest(shares)]
        rest = f" ({len(shares) - len(rows)} more)" if len(shares) > len(rows) else ""
        screen.print(bare_table(("policy", "probability"), rows, title=f"player {player}{rest}"))
    if not is_product(sigma):
        profiles = [tuple(int(index) for index in np.unravel_index(place, sigma.shape)) for place in _largest(sigma)]
        rows = [("-".join(map(str, profile)), f"{sigma[profile]:.6f}") for profile in profiles]
        screen.print(bare_table(("profile", "probability"), rows, title="joint profiles (the players are correlated)"))
    screen.print("earned: " + ", ".join(f"{value:.6g}" for value in expected_payoffs(table, sigma)))


def _largest(mass: np.ndarray) -> np.ndarray:
    """Flat indices of the largest entries, in the order of the table where only rounding parts them."""
    return np.argsort(-mass.ravel().round(9), kind="stable")[:MOST_SHOWN]


def _certify(screen: Screen, entry: Entry, table: np.ndarray, sigma: np.ndarray, parameters: dict[str, Any]) -> None:
    name, gap = ("nash_conv", nash_conv) if is_product(sigma) else ("cce_gap", cce_gap)
    screen.print(f"{name}: {gap(table, sigma):.3g} (in the payoffs' units, among these policies)")
    if entry.certificate is not None:
        measure, tolerance = entry.certificate.measure, entry.certificate.tolerance
        asked = {key: parameters[key] for key in inspect.signature(measure).parameters if key in parameters}
        value = measure(table, sigma, **asked)
        verdict = f"at most {tolerance:g}" if value <= tolerance else f"not converged: more than {tolerance:g}"
        screen.print(f"{entry.certificate.name}: {value:.3g}, {verdict}")
