"""Lanes of a team."""

import numpy as np
import pytest

import games
from games.lanes import GameLanes
from games.normal_form import NormalForm
from games.policies import Uniform
from games.versus import Versus
from marl.wrappers import TeamReward


def test_everyone_earns_what_the_team_earns_also_against_a_cast():
    game = games.make("bucket_brigade")
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    own, team = GameLanes(game, 16), TeamReward(GameLanes(game, 16))
    seen = Versus(TeamReward(GameLanes(game, 16)), populations, np.ones((1,) * 4), [2])
    everyone = Versus(GameLanes(game, 16), populations, np.ones((1,) * 4), [2])
    for lanes in (own, team, seen, everyone):
        lanes.reset(3)
    actions = tuple(np.full((16, 3), seat % 2) for seat in range(4))
    expected = own.step(actions).rewards.sum(axis=1)
    np.testing.assert_allclose(team.step(actions).rewards, np.repeat(expected[:, None], 4, axis=1))
    seen.step(actions[2:3])
    everyone.step(actions[2:3])
    np.testing.assert_array_equal(seen.observe(0), everyone.observe(0))
    saved = team.state_dict()
    again = TeamReward(GameLanes(game, 16))
    again.load_state_dict(saved)
    np.testing.assert_array_equal(again.step(actions).rewards, team.step(actions).rewards)


def test_closing_a_teams_lanes_closes_those_it_wraps():
    lanes = games.make("classic/tictactoe_v3").lanes(1)
    for team in (TeamReward(lanes), TeamReward(GameLanes(games.make("bucket_brigade"), 1))):
        team.close()
    with pytest.raises(ValueError, match="are closed"):
        lanes.reset(0)


def test_rewards_may_be_shared_in_part():
    unequal = NormalForm([[[2.0]], [[-6.0]]])
    lanes = TeamReward(GameLanes(unequal, 1), share=0.25)
    lanes.reset(0)
    assert lanes.step((np.zeros(1, np.int64),) * 2).rewards.tolist() == [[0.75 * 2 - 1, 0.75 * -6 - 1]]
    with pytest.raises(ValueError, match="share"):
        TeamReward(lanes, share=1.5)
