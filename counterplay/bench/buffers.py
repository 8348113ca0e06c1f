"""Advantages and replay beside Stable-Baselines3's and rlox's, in CPU seconds, and the memory of a replay."""

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from time import process_time

import numpy as np
import rlox
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from counterplay.bench.row import Row
from games.noise import Noise, Purpose
from marl.buffers import Replay, precise
from marl.decisions import transition_parts
from marl.losses import gae

STEPS, LANES = 128, 1024
"""Of a rollout."""
GAMMA, LAMBDA = 0.99, 0.95
FEATURES, CAPACITY = 47, 1_000_000
"""Of Bucket Brigade's observations; of a replay."""
PUSHED, SAMPLED = 64, 256
"""Transitions pushed together, and drawn together."""
ROUNDS, CALLS = 8, 20


def rows() -> Iterator[Row]:
    """The best of some rounds that take turns: other load only ever slows them."""
    torch.set_num_threads(1)
    yield from _advantages()
    yield from _replays()


def _advantages() -> Iterator[Row]:
    """Ours takes terminations and time limits apart, which the peers do not; without either all agree."""
    rng = np.random.default_rng(0)
    rewards, values = (rng.normal(size=(STEPS + 1, LANES)).astype(np.float32) for _ in range(2))
    never = torch.zeros(STEPS, LANES, dtype=torch.bool)
    earned, now, later = (torch.from_numpy(part) for part in (rewards[:-1], values[:-1], values[1:]))
    advantages = partial(gae, earned, now, later, never, never, GAMMA, LAMBDA)
    nothing = np.zeros(LANES * STEPS, np.float32)
    flat = [np.ascontiguousarray(part[:-1].T).ravel() for part in (rewards, values)]
    theirs = RolloutBuffer(STEPS, Box(-1, 1, (1,)), Box(-1, 1, (1,)), "cpu", LAMBDA, GAMMA, LANES)
    theirs.rewards[:], theirs.values[:], last = rewards[:-1], values[:-1], torch.from_numpy(values[-1])
    over = np.zeros(LANES)
    ours, sb3, other = _seconds(
        advantages,
        lambda: theirs.compute_returns_and_advantage(last, over),
        lambda: rlox.compute_gae_batched_f32(*flat, nothing, values[-1], STEPS, GAMMA, LAMBDA),
    )
    found = advantages().numpy()
    differences = (
        np.abs(theirs.advantages - found).max(),
        np.abs(
            rlox.compute_gae_batched_f32(*flat, nothing, values[-1], STEPS, GAMMA, LAMBDA)[0].reshape(LANES, STEPS).T
            - found
        ).max(),
    )
    size = STEPS * LANES
    for name, seconds, off in zip(("Stable-Baselines3", "rlox"), (sb3, other), differences, strict=True):
        note = f"{STEPS} x {LANES}; differs by {off:.1g}"
        yield Row("advantages (GAE)", size / ours, "steps/s", name, size / seconds, seconds / ours, "", note)


def _replays() -> Iterator[Row]:
    """Rows of two observations, an action, a reward and what ended: a full replay each."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(PUSHED, FEATURES)).astype(np.float32)
    paid, zeros = rng.normal(size=PUSHED).astype(np.float32), np.zeros(PUSHED, np.uint8)
    parts = transition_parts({"observation": ((FEATURES,), "float32"), "action": ((1,), "int64")})
    tracemalloc.start()
    ours = Replay(CAPACITY, parts)
    batch = ours.rows.packed({name: _of(shape, kind, seen, paid) for name, (shape, kind) in parts.items()})
    for _ in range(-(-CAPACITY // PUSHED)):
        ours.push(batch)
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sb3 = ReplayBuffer(CAPACITY, Box(-9, 9, (FEATURES,)), Box(-9, 9, (1,)), "cpu", n_envs=PUSHED)
    theirs = rlox.ReplayBuffer(CAPACITY, FEATURES, 1)
    actions, infos = paid[:, None], [dict[str, object]()] * PUSHED
    flat = (seen.ravel(), seen.ravel(), paid, paid, zeros, zeros)
    pushes: tuple[Callable[[], object], ...] = (
        lambda: ours.push(batch),
        lambda: sb3.add(seen, seen, actions, paid, zeros, infos),  # type: ignore[arg-type]
        lambda: theirs.push_batch(*flat),  # type: ignore[attr-defined]
    )
    for push in pushes[1:]:
        for _ in range(-(-CAPACITY // PUSHED)):
            push()
    noise = Noise(0, ["bench"])
    samples: tuple[Callable[[], object], ...] = (
        lambda: ours.take(ours.draw(precise(noise.draw(Purpose.SHUFFLE, 0, SAMPLED, 2)))),
        lambda: sb3.sample(SAMPLED),
        lambda: theirs.sample(SAMPLED, 0),
    )
    for what, count, calls in (("push", PUSHED, pushes), ("sample", SAMPLED, samples)):
        mine, *others = (count / seconds for seconds in _seconds(*calls))
        for name, peer in zip(("Stable-Baselines3", "rlox"), others, strict=True):
            yield Row(f"replay, {what} {count}", mine, "rows/s", name, peer, mine / peer, "")
    note = f"{CAPACITY:,} transitions, both observations of {FEATURES} float32"
    yield Row("replay, memory", memory / 1e6, "MB", "", None, None, "< 500 MB", note)


def _of(shape: tuple[int, ...], kind: str, seen: np.ndarray, paid: np.ndarray) -> np.ndarray:
    """Numbers of a part of a transition."""
    return seen if shape == (FEATURES,) else paid.astype(kind).reshape(PUSHED, *shape)


def _seconds(*functions: Callable[[], object]) -> list[float]:
    """CPU seconds a call of each."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for index, function in enumerate(functions):
            start = process_time()
            for _ in range(CALLS):
                function()
            best[index] = min(best[index], (process_time() - start) / CALLS)
    return best
