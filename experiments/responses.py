"""How good the best responses of a finished Bucket Brigade run are, beside scripted replies.

python -m experiments.responses runs/rest_trap-0
"""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from experiments.stop import guarded


def main(run: Annotated[Path, tyro.conf.Positional], episodes: int = 20_000, workers: int | None = None) -> int:
    """Judge every best response of a run, and its last meta-strategy; the exit code is 1 where one falls short.

    A response of the first iteration should close 98 % of the gap between uniform play and the best scripted reply;
    a later one should earn no less than the best scripted reply, less 2 standard errors; and the last meta-strategy's
    gap in the whole game should be below the first one's by 3 standard errors. Returns are estimates, of the reward
    that the responses were trained for; gaps are lower bounds.

    Args:
        run: Folder of the run.
        episodes: Fresh episodes per value.
        workers: Processes that play them side by side, with equal results; by default one a core.
    """
    if episodes < 2:
        raise ValueError(f"episodes must be at least 2, for a standard error; got {episodes}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    from experiments.judge import judge  # torch

    return 0 if judge(run, episodes, workers) else 1


if __name__ == "__main__":
    sys.exit(guarded(lambda stop: tyro.cli(main, prog="python -m experiments.responses")))
