"""The most that a team can earn in Bucket Brigade, exactly or bounded: `counterplay optimum`.

Where the rescue and ruin of every house are worth the same to the team, nights of Bernoulli fires are a Markov decision
process on numbers of houses (`counts`). Its value, the team optimum, is what one mind that sees everything and moves
everybody earns on average: no team does better. Other games are relaxed until they are of that kind, in ways that cost
no team anything, so that their optimum is an upper bound.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from games.bucket_brigade.counts import Nights, bernoulli_nights, continuous_nights
from games.bucket_brigade.params import Params, Shaping
from games.bucket_brigade.rules import DIALECTS, BucketBrigade
from games.bucket_brigade.scenarios import SCENARIOS
from games.bucket_brigade.scripted import policy
from games.lanes import tree_map
from games.play import play

UNSHAPED = Shaping(progress=0.0, shares=np.zeros(1), presence=0.0, potential=0.0, discount=1.0)

Crews = Callable[[int], tuple[int, ...]]
"""How a team answers so many fires: workers at each of some of them, the largest crew first."""


class Optimum(NamedTuple):
    """Highest mean team return of an episode: undiscounted, the sum over agents."""

    value: float
    kind: str
    """`exact`, or `upper bound`."""
    why: str
    """What makes it exact, or what is easier than in the game."""


def team_optimum(game: BucketBrigade) -> Optimum:
    """The team optimum where fires are Bernoulli and houses alike, else an upper bound.

    On rings small enough to write out, `markov.optimal_team` is exact for unlike houses too, and has the play.
    The numbers are those that the kernels play with, `game.params()`, in float64. Exact for all rules, phases, and
    shaping by progress, rescue and potential. Raises ValueError for a game too large to enumerate.

    >>> team_optimum(BucketBrigade("trivial_cooperation")).value  # nothing burns: 13 nights of 4 x (100 + 0.5)
    5226.0
    """
    easier = relaxations(game)
    why = "; ".join(easier) or "houses are alike, so their numbers tell everything"
    return Optimum(Plan(game).value, "upper bound" if easier else "exact", why)


def relaxations(game: BucketBrigade) -> list[str]:
    """What is easier in `Plan` than in the game: nothing where the plan is exact.

    None of it lowers the pay of anything that a team could do in the game, or takes it away.
    """
    params = game.params()
    found = {
        "fires spread as it suits the team, and work on one serves at others": params.suppression is not None,
        "every house pays as the best one": bool(np.ptp(worths(float64(params), game.H), axis=1).any()),
        "every way to work is short": params.travel is not None,
        "everyone may work everywhere": params.reach is not None and bool((params.reach != params.house).any()),
        "presence pays wherever one works": params.shaping is not None and bool(params.shaping.presence.any()),
    }
    return [easier for easier, holds in found.items() if holds]


def float64(params: Params) -> Params:
    """Parameters of one cell, without their axis of lanes."""
    return tree_map(lambda leaf: leaf[0].astype(np.float64), params)


def worths(params: Params, H: int) -> np.ndarray:
    """[2, owners] what the whole team gains by a house saved and loses by one ruined, whoever owns it."""
    own = np.array([params.own_gain, params.own_loss])
    other = np.array([params.other_gain, params.other_loss])
    return (own + (other.sum(axis=1, keepdims=True) - other))[:, :H]


class Pay(NamedTuple):
    """The team's pay for a night, in parts, with S states and C choices."""

    wages: np.ndarray  # [C] of those who work and those who rest
    rescues: np.ndarray  # [C] mean, for houses saved
    reached: np.ndarray  # [S] for the state that the night leads to
    drift: np.ndarray  # [S] for that state's potential, unless the game is over
    left: np.ndarray  # [S] for the state before: what shaping subtracts
    all_safe: float  # the same of a ring all safe


def team_pay(params: Params, nights: Nights, N: int, H: int) -> Pay:
    """The pay of `N` agents; `params` are one cell's, in float64."""
    shaping = UNSHAPED if params.shaping is None else params.shaping
    gains, losses = worths(params, H)
    stays_safe = 1 - params.rho
    work = params.work + shaping.presence * stays_safe
    crew = np.array([sum(choice.crews) for choice in nights.choices])
    rescued = np.array([choice.rescued for choice in nights.choices]) * stays_safe
    welfare = N * (nights.safe * params.safe + (nights.ruined + nights.burning / 2) * params.ruined)
    progress, potential = N * shaping.progress, shaping.potential
    return Pay(
        # Neither a cost nor the pay of rest is negative: without a fire only presence can make work worth its cost.
        wages=crew * work + (N - crew) * max(params.rest, work),
        rescues=rescued * (gains.max() + shaping.shares[0]),
        reached=nights.safe * (N * params.safe + progress) + nights.ruined * (N * params.ruined - losses.min()),
        drift=potential * shaping.discount * welfare,
        left=-progress * nights.safe - potential * welfare,
        all_safe=-H * (progress + potential * N * params.safe),
    )


class Plan:
    """The best joint play, from the last night backwards; with `convention`, the play of a team that follows it.

    Raises ValueError for a game too large to enumerate.
    """

    value: float
    """Mean team return of an episode."""

    def __init__(self, game: BucketBrigade, convention: Crews | None = None):
        self.game, self.params = game, float64(game.params())
        dynamics = bernoulli_nights if self.params.suppression is None else continuous_nights
        nights = dynamics(self.params, game.N, game.H)
        if convention is not None:
            followed = [one for one in nights.choices if one.crews == convention(nights.burning[one.state])]
            nights = nights._replace(choices=followed)
        self.nights, self._pay = nights, team_pay(self.params, nights, game.N, game.H)
        shape = len(nights.choices), max(len(choice.chances) for choice in nights.choices)
        self._aftermaths, self._chances = np.zeros(shape, np.int64), np.zeros(shape)
        for row, choice in enumerate(nights.choices):
            self._aftermaths[row, : len(choice.chances)] = choice.aftermaths
            self._chances[row, : len(choice.chances)] = choice.chances
        self._first = np.searchsorted([choice.state for choice in nights.choices], np.arange(len(nights.safe)))
        self._solve()

    def _solve(self) -> None:
        """Set `value`, and `_ahead` [max_nights, A]: the mean pay from every aftermath of every night to the end."""
        nights, pay, values = self.nights, self._pay, np.zeros(len(self.nights.safe))
        self._ahead = np.zeros((self.game.max_nights, len(nights.ignite)))
        for night in reversed(range(self.game.max_nights)):
            goes_on = np.where(self._over(night), 0.0, pay.drift + values)
            self._ahead[night] = nights.ignite @ (pay.reached + goes_on)
            left = pay.left if self._rescues_pay(night) else pay.all_safe
            values = np.maximum.reduceat(self._scores(night), self._first) + left
        self.value = float(nights.ignite[nights.start] @ values)

    def _scores(self, night: int) -> np.ndarray:
        """[C] mean pay of every choice from this night to the end, but for `Pay.left`."""
        ahead = np.einsum("ck,ck->c", self._chances, self._ahead[night][self._aftermaths])
        return self._pay.wages + self._pay.rescues * self._rescues_pay(night) + ahead

    def _rescues_pay(self, night: int) -> bool:
        return night > 0 or bool(self.params.opening_fires_pay)

    def _over(self, night: int) -> np.ndarray:
        """[S] whether the rules end the episode with this night, the first being 0."""
        nights, params = self.nights, self.params
        alike = (nights.ruined == 0) | (nights.ruined == self.game.H)
        return (night >= params.min_nights) & (nights.burning == 0) & (alike | bool(params.ends_when_quiet))

    def crews(self, night: int, safe: int, burning: int, ruined: int) -> tuple[int, ...]:
        """The best crews, the largest first, each at a fire of its own; everybody else rests.

        `night` counts from 0. Raises ValueError for continuous fires, whose plan cannot be followed in the game, and
        for a night or houses that the game does not have.
        """
        game, nights = self.game, self.nights
        if self.params.suppression is not None:
            raise ValueError("crews are planned for Bernoulli fires, got continuous ones: their optimum is but a bound")
        here = (nights.safe == safe) & (nights.burning == burning) & (nights.ruined == ruined)
        if not (here.any() and 0 <= night < game.max_nights):
            wanted = f"{game.H} houses in all and a night below {game.max_nights}"
            raise ValueError(f"wanted {wanted}, got {safe} safe, {burning} burning, {ruined} ruined, night {night}")
        first, end = np.append(self._first, len(nights.choices))[here.argmax() :][:2]
        return nights.choices[first + int(self._scores(night)[first:end].argmax())].crews


def spread_crews(agents: int) -> Crews:
    """The crews of a team of `scripted.Spread`."""
    return lambda fires: tuple(len(range(fire, agents, fires)) for fire in range(min(fires, agents)))


PHASE_DIAGRAM = [{"kappa": kappa, "cost": cost} for kappa in (0.1, 0.3, 0.5, 0.7, 0.9) for cost in (0.5, 1.0, 2.0)]
"""Cells of `minimal_specialization`; beta, the diagram's third axis, plays no part in Bernoulli fires
[rjwalters/bucket-brigade at 5335008e, experiments/nash/phase_diagram]."""


class Row(NamedTuple):
    """A line of the table; returns are means of the whole team per episode."""

    scenario: str
    cell: dict[str, Any]
    """Parameters other than the scenario's."""
    rules: str
    kind: str
    """Of the optimum: `exact`, or `upper bound`. Where it is exact, so are the other returns."""
    optimum: float
    rest: float
    """Of a team that always rests."""
    spread: float
    """Of a team that plays `scripted.Spread`."""
    spread_se: float
    """Its standard error; 0 where it is exact."""

    @property
    def share(self) -> float | None:
        """How far `spread` goes from rest to the optimum; None where these are the same, and beside an upper bound."""
        if self.kind != "exact":
            return None
        room = self.optimum - self.rest
        return (self.spread - self.rest) / room if room > 1e-9 * abs(self.optimum) else None


def table(scenario: str, rules: str, episodes: int, max_nights: int, seed: int) -> Iterator[Row]:
    """Rows of one scenario, or of all and of the phase diagram, under one of the rules or both.

    Where optima are upper bounds, the teams beside them play `episodes` episodes.
    """
    cells: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in ([scenario] if scenario else SCENARIOS)]
    if not scenario:
        cells += [("minimal_specialization", cell) for cell in PHASE_DIAGRAM]
    for name, cell in cells:
        for dialect in [rules] if rules else DIALECTS:
            game = BucketBrigade(name, dialect, max_nights, **cell)
            best = team_optimum(game)
            if best.kind == "exact":
                rest, spread, se = Plan(game, lambda fires: ()).value, Plan(game, spread_crews(game.N)).value, 0.0
            else:
                profiles = [[policy(team, game)] * game.N for team in ("always_rest", "spread")]
                returns = play(game, profiles, episodes, seed, ["optimum/rest", "optimum/spread"]).returns.sum(-1)
                (rest, spread), se = returns.mean(axis=1).tolist(), float(returns[1].std(ddof=1) / np.sqrt(episodes))
            yield Row(name, cell, dialect, best.kind, best.value, rest, spread, se)


COLUMNS = ("scenario", "rules", "kind", "optimum", "always rest", "spread", "se", "share")


def words(row: Row) -> tuple[str, ...]:
    """The row's entries under `COLUMNS`."""
    name = " ".join([row.scenario, *(f"{name}={value:g}" for name, value in row.cell.items())])
    numbers = (f"{value:.1f}" for value in (row.optimum, row.rest, row.spread))
    share = "" if row.share is None else f"{row.share:.1%}"
    return name, row.rules, row.kind, *numbers, "exact" if row.kind == "exact" else f"{row.spread_se:.1f}", share


def markdown_table(rows: Sequence[Row]) -> str:
    lines = [COLUMNS, ("---",) * 3 + ("--:",) * 5, *map(words, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def check_files(*paths: Path | None) -> None:
    """Raises ValueError for a file that cannot be written, as it is a folder, or for want of one; None is no file."""
    for path in paths:
        if path and path.is_dir():
            raise ValueError(f"wanted a file, got the folder {path}: name a file in it")
        if path and not path.parent.is_dir():
            raise ValueError(f"wanted a file in a folder that is there, got {path}: make {path.parent} first")


def main(
    scenario: str = "",
    rules: str = "",
    episodes: int = 1000,
    max_nights: int = 1000,
    seed: int = 0,
    markdown: Path | None = None,
    json: Path | None = None,
) -> int:
    """Print the most that teams can earn per episode, beside teams that rest and teams that spread over the fires.

    The share is how far spreading goes from resting to the optimum, where that is exact. The exit code is 2 for invalid
    arguments.

    Args:
        scenario: Only this one; by default all, and the cells of the phase diagram.
        rules: Only these; by default both.
        episodes: Played where returns are not exact.
        max_nights: Cap on the nights of an episode.
        seed: Seed of the episodes.
        markdown: Write the table into this file as well.
        json: Write the unrounded rows into this file as well.
    """
    try:
        BucketBrigade(scenario or "rest_trap", rules or "quiet", max_nights)  # knows all names, and near matches
        if episodes < 2 or seed < 0:
            raise ValueError(f"wanted at least 2 episodes and a seed of at least 0, got {episodes} and {seed}")
        check_files(markdown, json)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    rows = []
    layout = "{:42}{:8}{:13}{:>12}{:>13}{:>12}{:>8}{:>9}"
    print(layout.format(*COLUMNS))
    for row in table(scenario, rules, episodes, max_nights, seed):
        rows.append(row)
        print(layout.format(*words(row)), flush=True)
    if markdown:
        markdown.write_text(markdown_table(rows))
    if json:
        json.write_text(dumps([row._asdict() for row in rows], indent=1) + "\n")
    return 0
