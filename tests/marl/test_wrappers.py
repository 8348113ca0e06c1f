"""Lanes of a team."""

import numpy as np
import pytest

import games
from games.lanes import GameLanes
from games.normal_form import NormalForm
from games.policies import Uniform
from games.versus import Versus
from marl.wrappers import Rotated, TeamReward


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


def test_seats_are_taken_in_turn(xp):
    """In the second block of lanes, seat 0 is the game's seat 1, and so on round the table."""
    game = games.make("bucket_brigade")
    inner, rotated = GameLanes(game, 8, put=xp.put), Rotated(GameLanes(game, 8, put=xp.put))
    inner.reset(2)
    rotated.reset(2)
    actions = [xp.put(np.full((8, 3), seat % 2)) for seat in range(4)]
    for _ in range(3):
        turned = [[actions[(seat - block) % 4][2 * block : 2 * block + 2] for block in range(4)] for seat in range(4)]
        expected = inner.step(tuple(xp.put(np.concatenate(rows)) for rows in turned))
        outcome = rotated.step(tuple(actions))
        for seat in range(4):
            for block in range(4):
                rows, place = slice(2 * block, 2 * block + 2), (seat + block) % 4
                np.testing.assert_array_equal(outcome.rewards[rows, seat], expected.rewards[rows, place])
                np.testing.assert_array_equal(rotated.observe(seat)[rows], inner.observe(place)[rows])
    again = Rotated(GameLanes(game, 8, put=xp.put))
    again.reset(0)
    again.load_state_dict(rotated.state_dict())
    np.testing.assert_array_equal(again.observe(1), rotated.observe(1))


def test_masks_and_turns_go_round_with_the_seats():
    game = games.make("openspiel:kuhn_poker")
    inner, rotated = GameLanes(game, 4), Rotated(GameLanes(game, 4))
    inner.reset(0)
    rotated.reset(0)
    np.testing.assert_array_equal(rotated.acting, np.vstack([inner.acting[:2], inner.acting[2:, ::-1]]))
    for seat in (0, 1):
        expected = np.vstack([inner.legal(seat)[0][:2], inner.legal(1 - seat)[0][2:]])
        np.testing.assert_array_equal(rotated.legal(seat)[0], expected)
