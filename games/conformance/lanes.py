"""Rules of the lanes made from a Game: restarts, final observations, going on from a saved state."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from games.conformance.kernels import Batch, to_array
from games.conformance.record import freeze
from games.conformance.rules import Broken
from games.lanes import GameLanes
from games.noise import Noise, Purpose
from games.policies import Uniform


class Step(NamedTuple):
    """What was seen before a step, its outcome, and what was seen at its end."""

    seen: list[np.ndarray]
    acting: np.ndarray
    alive: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    done: np.ndarray
    final: list[np.ndarray]


def lanes_of(batch: Batch) -> GameLanes:
    """The batch's game in lanes of the batch's kind of arrays, not reset."""
    return GameLanes(batch.game, batch.lanes, put=batch.put)


def play_on(lanes: GameLanes, steps: int) -> list[Step]:
    """Uniform legal play, as NumPy arrays."""
    seats = range(len(lanes.agents))
    policies = [Uniform.of(space) for space in lanes.action_spaces]
    shown = []
    for _ in range(steps):
        seen = [lanes.observe(seat) for seat in seats]
        acting, alive = to_array(lanes.acting), to_array(lanes.alive)
        actions = tuple(
            policy.act(seen[seat], lanes.legal(seat), None, lanes.noise(Purpose.SEAT + seat, policy.noise_size))[0]
            for seat, policy in enumerate(policies)
        )
        rewards, terminated, truncated, done = (to_array(part) for part in lanes.step(actions))
        final = [to_array(lanes.final_observations(seat)) for seat in seats]
        shown.append(
            Step([to_array(part) for part in seen], acting, alive, rewards, terminated, truncated, done, final)
        )
    return shown


def lane_shapes(batch: Batch) -> None:
    """acting is a subset of alive, both [B, N]; an outcome is [B, N], and done says that everyone is over."""
    lanes = lanes_of(batch)
    lanes.reset(batch.seed)
    wanted = (batch.lanes, len(lanes.agents))
    for step, now in enumerate(play_on(lanes, batch.steps)):
        if now.acting.shape != wanted or now.alive.shape != wanted or (now.acting & ~now.alive).any():
            got = f"{now.acting.shape} and {now.alive.shape}"
            raise Broken(f"acting must be a subset of alive, both {wanted}; got {got}", None, None, step)
        shapes = [part.shape for part in (now.rewards, now.terminated, now.truncated, now.done)]
        if shapes != [wanted] * 3 + [wanted[:1]]:
            raise Broken(f"an outcome must be {wanted}, done {wanted[:1]}; got {shapes}", None, None, step)
        if (now.done != (now.terminated | now.truncated).all(axis=1)).any():
            raise Broken("done must say that everyone is terminated or truncated", None, None, step)


def auto_reset(batch: Batch) -> None:
    """Lanes restart in the step that ends their episode, with its init noise; final observations are of the end."""
    lanes, game = lanes_of(batch), batch.game
    lanes.reset(batch.seed, "restarts")
    params, noise = game.params(), Noise(batch.seed, ["restarts"])
    for step, (now, following) in enumerate(pairwise(play_on(lanes, batch.steps))):
        start = game.init(params, noise.draw(Purpose.INIT, step + 1, batch.lanes, game.noise_sizes[0]))
        for seat, agent in enumerate(lanes.agents):
            seen, fresh = following.seen[seat], game.observe(params, start, seat)
            if (now.final[seat][~now.done] != seen[~now.done]).any():
                raise Broken("final observations must be the next ones where nothing ended", agent, None, step)
            if (seen[now.done] != fresh[now.done]).any():
                raise Broken("a lane must start over in the step that ends its episode", agent, None, step)


def resumes(batch: Batch) -> None:
    """Lanes go on from a state_dict as they would have."""
    lanes, other = lanes_of(batch), lanes_of(batch)
    lanes.reset(batch.seed)
    play_on(lanes, batch.steps // 2)
    other.load_state_dict(lanes.state_dict())
    for step, (one, two) in enumerate(zip(play_on(lanes, batch.steps), play_on(other, batch.steps), strict=True)):
        for name, a, b in zip(Step._fields, one, two, strict=True):
            if freeze(a) != freeze(b):
                raise Broken(f"{name} must go on from a state_dict as they would have", None, None, step)


LANES_RULES: dict[str, Callable[[Batch], str | None]] = {
    rule.__name__: rule for rule in (lane_shapes, auto_reset, resumes)
}
