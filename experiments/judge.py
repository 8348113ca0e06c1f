"""How good the best responses of a Bucket Brigade run are, beside scripted replies: `counterplay responses`."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from analysis.load import load_run
from experiments.placement import began_as
from experiments.psro_bucket_brigade import Config
from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import FAMILIES, POLICIES, policy
from games.game import Policy
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot
from marl.population import HERE, Estimate, Value, deviation_value, mixture_value
from marl.psro import Snapshot
from marl.workers import Unit, Workers, workers_of

SCRIPTED: dict[str, tuple[str, dict]] = {
    # Full genomes are slower and weaker than the simplified ones on the same genes.
    **{name: (name, {}) for name in POLICIES if name not in FAMILIES and "full" not in name},
    "firefighter any": ("firefighter", {"scope": "any"}),
    "firefighter owned": ("firefighter", {"scope": "owned"}),
}
HEADER = (
    f"{'iteration player':17}{'response':>18}  {'best scripted reply':38}{'uniform':>18}{'closed':>15}{'behind':>10}"
)
LEGEND = """response, best scripted reply, uniform: what the player earns by each ({reward} reward) against the others'
meta-strategy, ± standard error. closed: share of the gap between uniform and the reply that the response closes, in
the first iteration wanted to be 98 %. behind: standard errors that it earns less than the reply, at most 2 wanted."""
WANTED_SHARE = 0.98
"""Of the gap between uniform play and the best scripted reply, in the first iteration."""


class Judgement(NamedTuple):
    """One best response beside scripted replies to the same meta-strategy; the player's own return per episode."""

    iteration: int
    player: int
    response: Estimate
    best: str  # scripted reply, selected on other episodes than it is scored on
    scripted: Estimate
    uniform: Estimate

    @property
    def share(self) -> Estimate:
        """Of the gap between uniform play and the best scripted reply that the response closes."""
        gap = self.scripted.value - self.uniform.value
        share = (self.response.value - self.uniform.value) / gap
        errors = (
            self.response.standard_error,
            share * self.scripted.standard_error,
            (1 - share) * self.uniform.standard_error,
        )
        return Estimate(share, float(np.linalg.norm(errors) / abs(gap)), "estimate")

    @property
    def behind(self) -> float:
        """Standard errors that the response earns less than the best scripted reply; negative where it earns more."""
        return apart(self.scripted, self.response)

    @property
    def ok(self) -> bool:
        if self.iteration == 1 and self.best != "uniform":
            return self.share.value >= WANTED_SHARE
        return self.behind <= 2


def apart(larger: Estimate, smaller: Estimate) -> float:
    """Standard errors between two independent estimates."""
    return (larger.value - smaller.value) / float(np.hypot(larger.standard_error, smaller.standard_error))


def judged(
    game: BucketBrigade,
    before: Snapshot,
    responses: dict[int, Policy],
    reward: str,
    episodes: int,
    workers: Workers = HERE,
) -> Iterator[Judgement]:
    """Judge players' responses to the meta-strategy of the snapshot `before`, on fresh episodes."""
    iteration = before.iteration + 1
    scripted = {name: policy(kind, game, **fields) for name, (kind, fields) in SCRIPTED.items()}

    def values(candidates: dict[tuple[int, str], Policy]) -> dict[tuple[int, str], Estimate]:
        """What each player earns by playing each candidate, by (player, use)."""
        names = {f"judge/{iteration}/{player}/{use}": (player, use) for player, use in candidates}
        play = partial(deviation_value, game, before.populations, before.sigma)
        work = [Unit(name, partial(play, (key[0], candidates[key]), episodes, 0, name)) for name, key in names.items()]
        return {names[name]: _earned(value, names[name][0], reward) for name, value in workers.run(work)}

    selected = values({(i, f"select/{name}"): candidate for i in responses for name, candidate in scripted.items()})
    best = {i: max((selected[i, f"select/{name}"].value, name) for name in scripted)[1] for i in responses}
    scores = values(
        {(i, "score/response"): response for i, response in responses.items()}
        | {(i, f"score/{name}"): scripted[name] for i in responses for name in (best[i], "uniform")}
    )
    for i in responses:
        response, reply, uniform = (scores[i, f"score/{name}"] for name in ("response", best[i], "uniform"))
        yield Judgement(iteration, i, response, best[i], reply, uniform)


def _earned(value: Value, player: int, reward: str) -> Estimate:
    if reward == "team":
        return value.team
    return Estimate(float(value.mean[player]), float(value.standard_error[player]), "estimate")


def judge(run: Path, episodes: int, number: int | None = None) -> bool:
    """Print how every best response does, and the last meta-strategy; whether all is as it should be.

    `episodes` fresh ones are played for every value, by `number` worker processes (by default one a core). Raises
    ValueError for a folder that is no run, or is damaged.
    """
    config = began_as(run, Config())
    store, folder = PolicyStore(run / "policies"), run / "snapshots"
    snapshots = [load_snapshot(folder, i, store) for i in range(finished_iterations(folder))]
    gaps = load_run(run).series("full_gap")
    game = config.make_game()
    torch.set_num_threads(1)
    print(LEGEND.format(reward=config.reward), HEADER, sep="\n", flush=True)
    fine = True
    with workers_of(number, len(game.agents), partial(torch.set_num_threads, 1)) as workers:
        for before, after in pairwise(snapshots):
            pairs = enumerate(zip(before.populations, after.populations, strict=True))
            responses = {i: new[-1] for i, (old, new) in pairs if len(new) > len(old)}
            for row in judged(game, before, responses, config.reward, episodes, workers):
                print(_line(row), flush=True)
                fine &= row.ok
    _print_teams(game, snapshots[-1], episodes)
    fallen = _gap_falls(gaps)
    print("all is as it should be" if fallen and fine else "something falls short of that: see above")
    return fallen and fine


def _line(row: Judgement) -> str:
    best = f"{row.best} {_number(row.scripted)}"
    closed = f"{row.share.value:.1%} ± {row.share.standard_error:.1%}" if row.iteration == 1 else ""
    verdict = "ok" if row.ok else "NO"
    return (
        f"{row.iteration:9} {row.player:<7}{_number(row.response):>18}  {best:38}{_number(row.uniform):>18}"
        f"{closed:>15}{row.behind:+8.1f}se  {verdict}"
    )


def _print_teams(game: BucketBrigade, last: Snapshot, episodes: int) -> None:
    """The team's return under the last meta-strategy beside scripted teams."""
    players = len(game.agents)
    print(f"\n{'team of':17}{'per episode':>18}{'per night':>18}")
    alone = np.ones((1,) * players)
    for name in ("uniform", "specialist", "spread"):
        kind, fields = SCRIPTED[name]
        team = [[policy(kind, game, **fields)] for _ in range(players)]
        print(_team_line(name, mixture_value(game, team, alone, episodes, 0, f"judge/team/{name}")))
    value = mixture_value(game, last.populations, last.sigma, episodes, 0, "judge/team/meta")
    print(_team_line("meta-strategy", value))


def _gap_falls(rows: list[dict]) -> bool:
    """Print the gaps in the whole game of the first and the last meta-strategy; whether it fell by 3 errors."""
    estimates = [Estimate(row["value"], row["standard_error"], "lower bound") for row in rows]
    if len(estimates) < 2:
        print("\nno two gaps in the whole game to compare: the run is not finished, or --gap-steps was 0")
        return False
    first, last = estimates[0], estimates[-1]
    fallen = apart(first, last)
    print(
        f"\ngap in the whole game: first at least {_number(first)}, last at least {_number(last)}, {fallen:.1f}se less"
    )
    return fallen > 3


def _team_line(name: str, value: Value) -> str:
    return f"{name:17}{_number(value.team):>18}{_number(value.team_per_step):>18}"


def _number(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} ± {estimate.standard_error:.2f}"
