"""For every rule of `check_game` a game, or lanes, that break it and no other; `Turns` keeps them all."""

import numpy as np
from array_api_compat import array_namespace

from games.channel import Channel, Placement
from games.lanes import GameLanes
from tests.games.turns import Turns


class OnlyItself(Turns):
    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


class GrowsItsLeaves(Turns):
    def init(self, params, noise):
        xp = array_namespace(noise)
        state = super().init(params, noise)
        return state._replace(action=xp.astype(state.action, xp.int32))


class PaysAtTheStart(Turns):
    def rewards(self, params, state):
        return state.rewards + 1


class EndsTwice(Turns):
    def truncated(self, params, state):
        return self.terminated(params, state)


class SeesTooMuch(Turns):
    def observe(self, params, state, seat):
        return super().observe(params, state, seat) * 2


class LetsTheIdleChoose(Turns):
    def legal(self, params, state, seat):
        (mask,) = super().legal(params, state, seat)
        return (mask | (state.round > 0)[:, None],)


class HearsTheIdle(Turns):
    def step(self, params, state, actions, noise):
        return super().step(params, state, (actions[0], actions[0]), noise)


class LooksAtOtherLanes(Turns):
    def step(self, params, state, actions, noise):
        xp = array_namespace(noise)
        return super().step(params, state, actions, xp.broadcast_to(noise[:1], noise.shape))


class SumsParameters(Turns):
    def step(self, params, state, actions, noise):
        pay = array_namespace(noise).sum(params.pay)
        return super().step(params._replace(pay=pay), state, actions, noise)


class WritesItsState(Turns):
    def step(self, params, state, actions, noise):
        state.rewards[:] = 0
        return super().step(params, state, actions, noise)


class PaysMoreInNumPy(Turns):
    def step(self, params, state, actions, noise):
        after = super().step(params, state, actions, noise)
        return after._replace(rewards=after.rewards * (2 if isinstance(noise, np.ndarray) else 1))


class SaysNothing(Turns):
    def describe(self, params, state, lane=0):
        return ""


class Grows(Turns):
    """A picture of another size every round."""

    def frame(self, params, state, lane=0):
        return np.zeros((8, 8 + int(state.round[lane]), 3), np.uint8)


class HearsBeyondItsSight(Turns):
    """The second player sees one column, and two sounds need two."""

    channels = (Placement("spoken", Channel({0: (1,)}), {0: (0,)}, {1: {0: ((0, 2),)}}),)


class OnlyTheFirstLives(GameLanes):
    @property
    def alive(self):
        alive = super().alive
        alive[:, 1:] = False
        return alive


class GoesOnPlaying(GameLanes):
    def step(self, actions):
        outcome = super().step(actions)
        self._state = self._ended
        return outcome


class ForgetsItsSteps(GameLanes):
    def load_state_dict(self, state):
        super().load_state_dict(state | {"steps": 0})


BROKEN_GAMES = {
    "values": OnlyItself,
    "leaves": GrowsItsLeaves,
    "starts": PaysAtTheStart,
    "outcomes": EndsTwice,
    "observed": SeesTooMuch,
    "turns": LetsTheIdleChoose,
    "idle": HearsTheIdle,
    "lane_wise": LooksAtOtherLanes,
    "lane_parameters": SumsParameters,
    "read_only": WritesItsState,
    "arrays": PaysMoreInNumPy,
    "describes": SaysNothing,
    "pictures": Grows,
    "channels": HearsBeyondItsSight,
}
"""Rule of kernels -> a game that breaks it, and nothing else."""
BROKEN_LANES = {"lane_shapes": OnlyTheFirstLives, "auto_reset": GoesOnPlaying, "resumes": ForgetsItsSteps}
"""Rule of lanes -> lanes that break it, and nothing else."""
