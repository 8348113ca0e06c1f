"""The rules of lanes, over lanes that break one rule each."""

from dataclasses import dataclass

import numpy as np
import pytest

import games
from games.conformance import LANES, ConformanceError, check_lanes
from games.conformance.__main__ import main
from games.external import external
from games.external.pettingzoo import External
from games.stepping import SteppedLanes
from tests.games.broken_envs import IgnoresItsSeed, RemembersAnUnfinishedEpisode, Sound


@dataclass(frozen=True)
class Dressed(External):
    """An environment in lanes of another kind."""

    kind: type = SteppedLanes

    def lanes(self, num_lanes):
        return self.kind(self, num_lanes) if self.workers == 0 else super().lanes(num_lanes)


class PaysInColumns(SteppedLanes):
    def step(self, actions):
        outcome = super().step(actions)
        return outcome._replace(rewards=outcome.rewards[..., None])


class ShowsTheDead(SteppedLanes):
    def observe(self, seat):
        return super().observe(seat) + ~self.alive[:, seat, None]


class PaysTheDead(SteppedLanes):
    def step(self, actions):
        outcome = super().step(actions)
        return outcome._replace(rewards=outcome.rewards + 1)


class AllowsTheDead(SteppedLanes):
    def legal(self, seat):
        return tuple(mask | ~self.alive[:, seat, None] for mask in super().legal(seat))


class ForgetsTheDead(SteppedLanes):
    def step(self, actions):
        alive = self.alive
        outcome = super().step(actions)
        told = alive | outcome.done[:, None]
        return outcome._replace(terminated=outcome.terminated & told, truncated=outcome.truncated & told)


class ShowsOtherEnds(SteppedLanes):
    def final_observations(self, seat):
        return super().final_observations(seat) + 1


class CountsLanes(SteppedLanes):
    def step(self, actions):
        outcome = super().step(actions)
        return outcome._replace(rewards=outcome.rewards * self.num_lanes)


class PaysOnlyHere(SteppedLanes):
    def step(self, actions):
        outcome = super().step(actions)
        return outcome._replace(rewards=outcome.rewards * 2)


class Endless(Sound):
    lengths = dict.fromkeys(("ann", "bob"), 1000)


class OnlyItself(Dressed):
    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return 0


BROKEN = {
    "values": OnlyItself(Sound),
    "lane_shapes": Dressed(Sound, kind=PaysInColumns),
    "seen": Dressed(Sound, kind=ShowsTheDead),
    "earned": Dressed(Sound, kind=PaysTheDead),
    "turns": Dressed(Sound, kind=AllowsTheDead),
    "lives": Dressed(Sound, kind=ForgetsTheDead),
    "finals": Dressed(Sound, kind=ShowsOtherEnds),
    "ends": external(Endless),
    "repeats": external(IgnoresItsSeed),
    "restarts": external(RemembersAnUnfinishedEpisode),
    "alone": Dressed(Sound, kind=CountsLanes),
    "workers": Dressed(Sound, kind=PaysOnlyHere),
}
"""Rule -> what breaks it, and no other."""

REPEATING = {"repeats", "restarts", "alone", "workers"}
"""Rules that what never repeats itself breaks together."""


@pytest.mark.parametrize("rule", LANES)
def test_every_rule_catches_what_breaks_it_and_the_others_do_not(rule):
    slow = {"workers"} - {rule}
    with pytest.raises(ConformanceError, match=f"rule '{rule}' is broken"):
        check_lanes(BROKEN[rule], 2, steps=15, skip=slow)
    check_lanes(BROKEN[rule], 2, steps=15, skip=slow | (REPEATING if rule == "repeats" else {rule}))


def test_sound_lanes_keep_every_rule():
    report = check_lanes(external(Sound), lanes=2, steps=15, skip=["workers"])
    assert (*report.rules, "workers") == tuple(LANES)
    assert (report.episodes, report.steps) == (4, 30)
    game = check_lanes(games.make("rock_paper_scissors", rounds=2), steps=9)
    assert game.unchecked == {"workers": "it takes no workers"}
    assert set(check_lanes(external(lambda: Sound()), steps=9, skip=["workers"]).unchecked) == {"values", "workers"}


@pytest.mark.parametrize(("rule", "own"), [("repeats", "seeds"), ("restarts", "restarts")])
def test_an_environments_own_fault_is_named_with_what_it_does_by_itself(rule, own):
    with pytest.raises(ConformanceError, match=f"so it is in the environment by itself: rule '{own}' is broken"):
        check_lanes(BROKEN[rule], steps=15)
    with pytest.raises(ConformanceError) as caught:
        check_lanes(BROKEN["alone"], steps=15)
    assert "by itself" not in str(caught.value)


def lanes_of_sound():
    return external(Sound)


def test_the_command_asks_the_rules_of_lanes(capsys):
    assert main("tests.games.test_check_lanes:lanes_of_sound", max_steps=15, skip=("workers",)) == 0
    assert "11 rules passed, 0 broken in 6 episodes of 3 lanes in 15 steps" in capsys.readouterr().out


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="lanes and steps >= 2"):
        check_lanes(external(Sound), lanes=1)
    with pytest.raises(ValueError, match=r"Game or Playable, got dict"):
        check_lanes({})
    with pytest.raises(ValueError, match="unknown rule 'live'; did you mean 'lives'"):
        check_lanes(external(Sound), skip=["live"])


def test_lanes_of_kernels_keep_every_rule_too():
    check_lanes(games.make("bucket_brigade", max_nights=4), lanes=2, steps=12)
    assert np.isfinite(check_lanes(games.make("blotto"), steps=3).episodes)
