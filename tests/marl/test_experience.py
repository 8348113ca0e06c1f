"""Transitions are what a walk through every lane's history, one step after the other, makes of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

from games import make
from games.game import feature_box
from games.lanes import GameLanes
from games.noise import Purpose
from games.policies import Uniform
from games.stepping import SteppedLanes
from marl.experience import Experience
from tests.marl.small_games import Lock, Spoilt, Wander


@dataclass(frozen=True)
class Turmoil:
    """Two seats act, wait, die, are cut short, and are paid, all at random; what they see is never the same twice.

    A Source of `games.stepping`. `masks` has something legal for who acts, never everything.
    """

    masks: bool = False
    agents = ("first", "second")
    observation_spaces = (feature_box(2), feature_box(3))
    action_spaces = (Discrete(3), MultiDiscrete((2, 4)))

    @property
    def masked(self):
        return (self.masks, self.masks)

    def lanes(self, num_lanes):
        return SteppedLanes(self, num_lanes)

    def episode(self):
        return TurmoilEpisode()


class TurmoilEpisode:
    def begin(self, seed, row):
        self.random = np.random.default_rng(seed)
        row.alive[:] = True
        self.show(row)

    def play(self, actions, row):
        row.rewards[:] = np.where(row.alive, self.random.normal(size=2), 0)
        for seat in np.flatnonzero(row.alive & (self.random.random(2) < 0.2)):
            row.alive[seat] = False
            row.truncated[seat] = self.random.random() < 0.5
            row.terminated[seat] = not row.truncated[seat]
            row.observations[seat][:] = self.random.random(len(row.observations[seat]))
        row.done[0] = not row.alive.any()
        self.show(row)

    def show(self, row):
        row.acting[:] = row.alive & (self.random.random(2) < 0.6)
        if row.alive.any() and not row.acting.any():
            row.acting[:] = row.alive
        for seat in np.flatnonzero(row.alive):
            row.observations[seat][:] = self.random.random(len(row.observations[seat]))
            for mask in row.legal[seat] or ():
                mask[:] = self.random.random(len(mask)) < 0.5
                mask[self.random.integers(len(mask))] = True

    def close(self):
        pass


class Moment(NamedTuple):
    """One seat's view of one step in one lane."""

    observation: np.ndarray
    legal: list | None
    acting: bool
    action: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    final: np.ndarray


def histories(lanes, policies, steps):
    """[seat][lane] lists of Moments, by hand."""
    seats, histories = range(len(lanes.agents)), [[[] for _ in range(lanes.num_lanes)] for _ in lanes.agents]
    for _ in range(steps):
        seen, legal = [lanes.observe(seat) for seat in seats], [lanes.legal(seat) for seat in seats]
        noise = [lanes.noise(Purpose.SEAT + seat, policies[seat].noise_size) for seat in seats]
        acting = np.array(lanes.acting)
        actions = tuple(policies[seat].act(seen[seat], legal[seat], None, noise[seat])[0] for seat in seats)
        rewards, terminated, truncated, done = lanes.step(actions)
        for seat in seats:
            finals = lanes.final_observations(seat)
            for lane, history in enumerate(histories[seat]):
                cut = truncated[lane, seat] and not terminated[lane, seat]
                masks = None if legal[seat] is None else [mask[lane].tolist() for mask in legal[seat]]
                history.append(
                    Moment(
                        seen[seat][lane],
                        masks,
                        acting[lane, seat],
                        np.atleast_1d(actions[seat][lane]),
                        rewards[lane, seat],
                        (terminated[lane, seat] or done[lane]) and not cut,
                        cut,
                        finals[lane],
                    )
                )
    return histories


def walked(history, gamma, steps):
    """Rows that one lane's history makes: for every decision, one after the other."""
    rows = []
    for start, first in enumerate(history):
        if not first.acting:
            continue
        reward, discount, met = 0.0, 1.0, 0
        for moment in history[start:]:
            if moment is not first and moment.acting:
                met += 1
                if met == steps:
                    rows.append((first, reward, discount, moment.observation, moment.legal))
                    break
            reward, discount = reward + discount * moment.reward, discount * gamma
            if moment.terminated:
                rows.append((first, reward, 0.0, None, None))
                break
            if moment.truncated:
                if first.legal is None:
                    rows.append((first, reward, discount, moment.final, None))
                break
    return rows


def padded(legal, width):
    return [mask + [False] * (width - len(mask)) for mask in legal]


def check(experience, walks):
    """Each replay holds exactly the rows of these walks, in whatever order."""
    for replay, histories in zip(experience.replays, walks, strict=True):
        rows = replay.take(np.arange(replay.size))
        places = {observation.numpy().tobytes(): place for place, observation in enumerate(rows["observation"])}
        wanted = [row for lane in histories for row in lane]
        assert len(places) == len(wanted) == replay.size < replay.capacity
        for first, reward, discount, ahead, legal in wanted:
            place = places[first.observation.tobytes()]
            row = {name: part[place].numpy() for name, part in rows.items()}
            assert row["action"].tolist() == first.action.tolist()
            assert row["reward"] == pytest.approx(reward, rel=1e-5, abs=1e-6)
            assert row["discount"] == pytest.approx(discount, rel=1e-5)
            if discount:
                assert row["next_observation"].tolist() == ahead.tolist()
            if first.legal is not None:
                width = row["legal"].shape[1]
                assert row["legal"].tolist() == padded(first.legal, width)
                assert not discount or row["next_legal"].tolist() == padded(legal, width)


@given(st.integers(0, 99), st.integers(1, 4), st.sampled_from([1.0, 0.9, 0.0]), st.booleans())
def test_transitions_are_those_of_a_walk_through_each_lane(seed, steps, gamma, masks):
    game, policies = Turmoil(masks), [Uniform.of(space) for space in Turmoil.action_spaces]
    lanes = [game.lanes(2) for _ in range(2)]
    for each in lanes:
        each.reset(seed)
    experience = Experience(lanes[0], 500, gamma, steps)
    pushed = [experience.play(policies, 15), experience.play(policies, 9)]
    for replay, *places in zip(experience.replays, *pushed, strict=True):
        assert np.concatenate(places).tolist() == list(range(replay.size))
    by_seat = histories(lanes[1], policies, 24)
    check(experience, [[walked(history, gamma, steps) for history in seat] for seat in by_seat])


@pytest.mark.parametrize("put", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize(
    ("game", "steps"), [(Wander(truncates=False), 1), (Wander(truncates=True), 3), (make("lqr"), 2)]
)
def test_games_of_pure_functions_give_their_transitions_too(game, steps, put):
    policies = [Uniform.of(space) for space in game.action_spaces]
    lanes = GameLanes(game, 4, put=put)
    lanes.reset(0)
    experience = Experience(lanes, 500, 0.5, steps)
    experience.play(policies, 30)
    by_hand = GameLanes(game, 4)
    by_hand.reset(0)
    walks = [[walked(history, 0.5, steps) for history in seat] for seat in histories(by_hand, policies, 30)]
    rows = experience.replays[0].take(np.arange(experience.replays[0].size))
    found = sorted(zip(rows["reward"].tolist(), rows["discount"].tolist(), strict=True))
    wanted = sorted((float(reward), discount) for lane in walks[0] for _, reward, discount, _, _ in lane)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert rows["action"].dtype == (torch.float32 if isinstance(game.action_spaces[0], Box) else torch.int64)


def test_masks_of_unlike_factors_are_padded_with_what_is_not_legal():
    lanes = GameLanes(Lock(wheels=(5, 3)), 4)
    lanes.reset(0)
    legal = lanes.legal(0)
    experience = Experience(lanes, 10, 1.0)
    experience.play([Uniform.of(lanes.action_spaces[0])])
    rows = experience.replays[0].take(np.arange(4))
    assert not rows["legal"][:, 1, 3:].any()
    assert torch.equal(rows["legal"][:, 0], torch.from_numpy(legal[0]))
    assert (rows["legal"].gather(2, rows["action"][:, :, None])).all()
    assert (rows["discount"] == 0).all()


@pytest.mark.parametrize(
    ("blind", "error", "complaint"),
    [(True, FloatingPointError, "in lane 2 at step 3"), (False, ValueError, "in lane 2 at step 3, but has no legal")],
)
def test_games_that_cannot_be_learnt_from_are_named_with_lane_and_step(blind, error, complaint):
    lanes = GameLanes(Spoilt(blind=blind), 4)
    lanes.reset(0)
    with pytest.raises(error, match=complaint):
        Experience(lanes, 100, 1.0).play([Uniform((2,), flat=True)], 8)


def test_lanes_that_change_whether_they_tell_what_is_legal_are_refused():
    lanes = GameLanes(Lock(), 4)
    lanes.reset(0)
    experience = Experience(lanes, 100, 1.0)
    lanes.legal = lambda seat: None
    with pytest.raises(ValueError, match="always tell what is legal for dialler, or never"):
        experience.play([Uniform((5, 3), flat=False)])


def test_interrupted_experience_goes_on_where_it_was():
    game, policies = Wander(truncates=True), [Uniform((2,), flat=True)]

    def begun():
        lanes = GameLanes(game, 4)
        lanes.reset(3)
        return Experience(lanes, 50, 0.9, steps=3)

    straight, resumed = begun(), begun()
    straight.play(policies, 10)
    resumed.load_state_dict(straight.state_dict())
    for experience in (straight, resumed):
        experience.play(policies, 10)
    ours, theirs = (experience.replays[0].take(np.arange(50)) for experience in (straight, resumed))
    assert straight.replays[0].size == 50
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    np.testing.assert_equal(straight.decisions[0].state_dict(), resumed.decisions[0].state_dict())
    assert straight.played == resumed.played == 20
    assert straight.returns.mean()[0].item() == 4
