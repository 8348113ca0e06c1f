"""What learners see of seats that wait, die, and are paid for what they did before."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from games.game import Outcome, feature_box
from games.lanes import GameLanes
from games.policies import Uniform
from games.stepping import SteppedLanes
from games.versus import Versus
from marl.collect import Collector
from marl.experience import Experience
from marl.losses import gae
from marl.networks import policy_layers
from marl.oracles import PPO
from tests.marl.small_games import Fixed, Lock, Spoilt, playing

FIRST, SECOND = range(2)


@dataclass(frozen=True)
class Duel:
    """The first of two chooses, then the second, and then the first earns 1 where both chose alike, the second else.

    A Source of `games.stepping`, and one of its episodes. With `dies` the first one is gone before it is paid, its time
    `cut` short or not, and sees 0.5 as the last.
    """

    dies: bool = False
    cut: bool = False
    agents = ("first", "second")
    observation_spaces = (feature_box(2), feature_box(2))
    action_spaces = (Discrete(2), Discrete(2))
    masked = (False, False)

    def lanes(self, num_lanes):
        return SteppedLanes(self, num_lanes)

    def episode(self):
        return DuelEpisode(self)


class DuelEpisode:
    def __init__(self, source):
        self.source = source

    def begin(self, seed, row):
        self.chosen = []
        row.alive[:] = True
        self.show(row)

    def play(self, actions, row):
        self.chosen.append(actions[len(self.chosen)])
        if len(self.chosen) == 2:
            row.rewards[:] = (0, self.chosen[0] != self.chosen[1]) if self.source.dies else self.pay()
            row.done[0] = True
            row.terminated[SECOND] = True
            row.terminated[FIRST] |= not row.truncated[FIRST]
            row.alive[:] = row.acting[:] = False
            return
        if self.source.dies:
            row.rewards[FIRST] = 0.25
            row.alive[FIRST] = False
            row.observations[FIRST][:] = 0.5
            row.truncated[FIRST], row.terminated[FIRST] = self.source.cut, not self.source.cut
        self.show(row)

    def pay(self):
        alike = self.chosen[0] == self.chosen[1]
        return alike, not alike

    def show(self, row):
        row.acting[:] = [not self.chosen, bool(self.chosen)]
        for seat in np.flatnonzero(row.alive):
            row.observations[seat][:] = (len(self.chosen), self.chosen[0] if self.chosen and seat == SECOND else 0)

    def close(self):
        pass


def advantages(game, values=0.0):
    """[2 seats][4, 64] of two episodes a lane, and what was seen; the critic says `values` everywhere."""
    lanes = game.lanes(64)
    lanes.reset(0)
    generator = np.random.default_rng(0)
    collector = Collector(lanes, horizon=4)
    rollouts = collector.collect([playing(policy_layers(2, (4,), (2,), generator)) for _ in range(2)])
    found = []
    for rollout in rollouts:
        now = torch.full_like(rollout.rewards, values)
        later = now.clone()
        for step, where, final in rollout.finals:
            later[step, where] = final[:, 0] if values else 0.0
        found.append(gae(rollout.rewards, now, later, rollout.terminated, rollout.ended, 1.0, 1.0))
    return rollouts, found


def test_who_waits_is_paid_for_its_last_move():
    (first, second), (by_first, by_second) = advantages(Duel())
    alike = (first.actions[0::2, 0] == second.actions[1::2, 0]).float()
    assert 0 < alike.mean() < 1
    assert first.acting.tolist() == (~second.acting).tolist() == [[True] * 64, [False] * 64] * 2
    torch.testing.assert_close(by_first[0::2], alike)  # where it moved, though it is paid a step later
    torch.testing.assert_close(by_second[1::2], 1 - alike)
    assert (second.observations[1, :, 1] == first.actions[0, 0]).all()


@pytest.mark.parametrize("cut", [False, True])
def test_who_dies_earns_no_more_and_is_only_bootstrapped_where_it_was_cut(cut):
    (first, second), (by_first, _) = advantages(Duel(dies=True, cut=cut), values=0.125)
    assert first.alive.tolist() == [[True] * 64, [False] * 64] * 2
    assert second.alive.all()
    assert first.ended.all()
    torch.testing.assert_close(by_first[0::2], torch.full((2, 64), 0.25 + 0.5 * cut - 0.125))
    assert (first.observations[1::2] == 0).all()


def test_ppo_learns_what_pays_only_after_the_others_turn():
    """The second player copies nobody: it plays 1, so that the first should."""
    game = Duel()
    lanes = Versus(game.lanes(64), [[Fixed((0.5, 0.5))], [Fixed((0.1, 0.9))]], np.ones((1, 1)), (FIRST,))
    policy = PPO(steps=4096, num_lanes=64, minibatches=1, hidden=(8,), learning_rate=1e-2).train(lanes, (FIRST,), 0)[
        FIRST
    ]
    start = np.zeros((1, 2), np.float32)
    assert policy.act(start, None, None, np.zeros((1, 0)))[0] == 1


@pytest.mark.parametrize(
    ("blind", "error", "complaint"),
    [
        (True, FloatingPointError, r"observes .*nan.* in lane 2 at step 3"),
        (False, ValueError, "is to act in lane 2 at step 3, but has no legal choice for factor 0"),
    ],
)
def test_games_that_cannot_be_learnt_from_are_named_with_the_lane(blind, error, complaint):
    lanes = GameLanes(Spoilt(blind=blind), 4)
    lanes.reset(0)
    layers = policy_layers(1, (4,), (2,), np.random.default_rng(0))
    with pytest.raises(error, match=complaint):
        Collector(lanes, horizon=8).collect([playing(layers)])


def by_collector(lanes):
    layers = policy_layers(8, (4,), (5, 3), np.random.default_rng(0))
    Collector(lanes, horizon=2).collect([playing(layers)])


def by_experience(lanes):
    Experience(lanes, 100, 1.0).play([Uniform((5, 3), flat=False)])


def outcome(**changed):
    flags = np.ones((4, 1), bool)
    return Outcome(np.zeros((4, 1), np.float32), flags, ~flags, flags[:, 0])._replace(**changed)


@pytest.mark.parametrize("play", [by_collector, by_experience])
@pytest.mark.parametrize(
    ("part", "shown", "complaint"),
    [
        ("observe", np.zeros((4, 9), np.float32), r"observations of dialler .* got \(4, 9\) of float32"),
        ("observe", np.zeros(4, np.float32), r"observations of dialler .* got \(4,\) of float32"),
        ("observe", np.zeros((4, 8), complex), r"observations of dialler .* got \(4, 8\) of complex128"),
        ("legal", (np.ones((4, 5), np.int8), np.ones((4, 3), bool)), r"legal for dialler .* got \(4, 5\) of int8 and"),
        ("legal", (np.ones((4, 5), bool), np.ones((4, 2), bool)), r"legal for dialler must be \(4, 5\) of bool and"),
        ("legal", (np.ones((4, 6), bool), np.ones((4, 3), bool)), r"legal for dialler .* got \(4, 6\) of bool and"),
        ("legal", (np.ones((4, 5), bool),), r"legal for dialler .* got \(4, 5\) of bool$"),
        ("step", outcome(rewards=np.zeros(4, np.float32)), r"rewards of a step must be \(4, 1\).* got \(4,\)"),
        (
            "step",
            outcome(terminated=np.ones((4, 1), np.int64)),
            "terminated of a step must be .* of bool, got .* int64",
        ),
        ("step", outcome(done=np.ones((4, 1), bool)), r"done of a step must be \(4,\) of bool, got \(4, 1\)"),
    ],
)
def test_lanes_that_do_not_keep_to_their_spaces_are_refused(part, shown, complaint, play):
    lanes = GameLanes(Lock(), 4)
    lanes.reset(0)
    setattr(lanes, part, lambda _: shown)
    with pytest.raises(ValueError, match=complaint):
        play(lanes)


def test_pictures_of_floats_are_not_taken_for_those_of_bytes():
    lanes = GameLanes(Lock(), 4)
    lanes.reset(0)
    lanes.observation_spaces = (Box(0, 255, (8,), np.uint8),)
    with pytest.raises(ValueError, match=r"observations of dialler must be .*uint8.*, got \(4, 8\) of float32"):
        by_experience(lanes)
