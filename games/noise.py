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

    >>> alone = Noise(0, ["payoff/0-1"]).draw(Purpose.STEP, step=7, lanes=2, columns=3)
    >>> beside = Noise(0, ["payoff/0-0", "payoff/0-1"]).draw(Purpose.STEP, step=7, lanes=2, columns=3)
    >>> bool((alone == beside[2:]).all())
    True
    """

    def __init__(self, seed: int, units: Sequence[str]):
        if seed < 0:
            raise ValueError(f"a seed is a non-negative integer, got {seed}")
        self._generators = [_Keyed(seed, unit_key(name)) for name in units]

    def draw(self, purpose: int, step: int, lanes: int, columns: int) -> np.ndarray:
        if not columns:
            return np.zeros((len(self._generators) * lanes, 0), np.float32)
        # Column-major, as the draws come: a column is contiguous.
        blocks = [generator.uniforms(purpose, step, columns * lanes) for generator in self._generators]
        if len(blocks) == 1:
            return blocks[0].reshape(columns, lanes).T
        return (
            np.stack([block.reshape(columns, lanes) for block in blocks], axis=1)
            .reshape(columns, len(blocks) * lanes)
            .T
        )


class _Keyed:
    def __init__(self, seed: int, key: int):
        # Seeds of any size fold into the 64 bits of a key word.
        self._philox = np.random.Philox(key=np.array([seed if seed < 2**64 else unit_key(str(seed)), key], np.uint64))
        self._start = self._philox.state

    def uniforms(self, purpose: int, step: int, size: int) -> np.ndarray:
        """[size] float32 multiples of 2^-23: half the time of `Generator.random`, and no second array."""
        # The two low counter words count blocks of output, the two high ones name the draw.
        self._start["state"]["counter"][:] = (0, 0, step, purpose)
        self._philox.state = self._start
        words = self._philox.random_raw((size + 1) // 2).astype("<u8", copy=False).view("<u4")[:size]
        # 23 random bits below the exponent of 1.0 make a float in [1, 2).
        words >>= np.uint32(9)
        words |= np.uint32(0x3F800000)
        floats = words.view(np.float32)
        floats -= np.float32(1)
        return floats
