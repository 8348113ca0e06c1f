"""A run of PSRO from its folder's last iteration on: train, evaluate, solve, measure, save, show."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from analysis.figures import draw
from experiments.measures import EPISODE, Rows, find, learning_rows, measure, metric, shown
from experiments.run import RunFolder, changed_versions, to_lines
from experiments.stop import Stop
from experiments.terminal import Display, Forecast, Stopwatch, clock, display
from experiments.tracker import Tracker, trackers
from games.game import Game, Policy
from games.versus import Populations
from marl.atomic import BrokenCheckpoint, to_json, verify, whole_folder, write_atomic
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot, save_snapshot
from marl.oracles.ppo import PPO
from marl.population import PayoffTable, evaluate, full_gap
from marl.psro import Snapshot, best_response, psro
from metasolvers import MetaSolver

if TYPE_CHECKING:
    from experiments.psro_bucket_brigade import Config
