"""Noise keyed by (seed, unit, purpose, step): equal keys give equal uniforms, whoever asks and in whatever order."""

from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b

import numpy as np


class Purpose(IntEnum):
    """What a draw is for; the policy of seat i draws from `SEAT + i`."""

    INIT = 0
    STEP = 1
    CAST = 2
    SHUFFLE = 3
    SEAT = 16


def unit_key(name: str) -> int:
    """64-bit key of a unit of work such as `payoff/0-1-0-1/3` or `train/2/0`."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def unit_seed(seed: int, name: str) -> int:
    """64-bit seed of one unit of work: a pure function of the run's seed and the unit's name."""
    return unit_key(f"{seed}:{name}")


class Noise:
    """Uniforms for one or more units of work played side by side in equal blocks of lanes.

    `draw(purpose, step, lanes, columns)` -> [units * lanes, columns] float32 in [0, 1), one block of `lanes` rows per
    unit. A counter-based generator [Salmon et al. 2011, Philox] makes each block a pure function of its key, so a unit
    draws the same numbers alone, beside other units, or after a restart. Columns are drawn one after the other: asking
    for more of them leaves the first ones as they were.

    Raises ValueError for a negative seed.
    """

    def __init__(self, seed: int, units: Sequence[str]):
        if seed < 0:
            raise ValueError(f"a seed is a non-negative integer, got {seed}")
        self._generators = [_Keyed(seed, unit_key(name)) for name in units]

    def draw(self, purpose: int, step: int, lanes: int, columns: int) -> np.ndarray:
        noise = np.empty((len(self._generators), columns, lanes), np.float32)
        for block, generator in zip(noise, self._generators, strict=True):
            generator.fill(purpose, step, block)
        # Column-major, as the draws came: the transpose copies nothing where there is one unit.
        return noise.transpose(1, 0, 2).reshape(columns, lanes * len(noise)).T


class _Keyed:
    def __init__(self, seed: int, key: int):
        # Seeds of any size fold into the 64 bits of a key word.
        self._philox = np.random.Philox(key=np.array([seed if seed < 2**64 else unit_key(str(seed)), key], np.uint64))
        self._generator = np.random.Generator(self._philox)
        self._start = self._philox.state

    def fill(self, purpose: int, step: int, out: np.ndarray) -> None:
        # The two low counter words count blocks of output, the two high ones name the draw.
        self._start["state"]["counter"][:] = (0, 0, step, purpose)
        self._philox.state = self._start
        self._generator.random(out=out, dtype=np.float32)
