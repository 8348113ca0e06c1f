"""An environment without pictures, to be found by name."""

from games.envs import ParallelFace
from tests.games.turns import Turns


def parallel_env(render_mode: str | None = None) -> ParallelFace:
    return ParallelFace(Turns(rounds=3), "turns_v0", render_mode)
