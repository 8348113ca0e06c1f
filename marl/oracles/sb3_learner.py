"""The learning behind `SB3`: an algorithm of Stable-Baselines3 on a view of the lanes, a little at a time."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from games.game import Lanes, Policy
from games.noise import unit_seed
from marl.oracles.checks import check_lanes
from marl.oracles.oracle import diverged
from marl.oracles.sb3 import SB3
from marl.sb3.build import algorithm, blueprint
from marl.sb3.policy import SB3Policy, q_values
from marl.sb3.state import Generators, load, state_of
from marl.sb3.vec_env import VecEnvView

log = logging.getLogger(__name__)


class SB3Learner:
    """Implements `marl.oracles.Learner`; see `SB3.learner`."""

    def __init__(
        self,
        settings: SB3,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        if len(seats) != 1 or len(lanes.agents) != 1:
            raise ValueError(
                f"Stable-Baselines3 trains one seat, got seats {tuple(seats)} and lanes that show {len(lanes.agents)}: "
                "let games.versus.Versus play the others"
            )
        check_lanes(settings, lanes, seats)
        self.settings, (self.seat,), self.seed, self.updates = settings, seats, seed, 0
        self.view = VecEnvView(lanes)
        self.generators = Generators(torch.device(device))
        with self.generators.swapped():
            # Its seeds are NumPy's, of 32 bits.
            self.model = algorithm(settings, self.view, unit_seed(seed, "sb3") % 2**32, device)
            self.view.seed(seed)
        self.plan = blueprint(settings, self.model)
        if self.seat in start:
            self.model.policy.load_state_dict(self._checked(start[self.seat]).tensors)

    def _checked(self, start: Policy) -> SB3Policy:
        if not isinstance(start, SB3Policy) or start.plan != self.plan:
            raise ValueError(f"{self.settings.algorithm} goes on from an SB3Policy of {self.plan}, got {start!r}")
        return start

    @property
    def finished(self) -> bool:
        return self.model.num_timesteps >= self.settings.total_steps

    @property
    def policies(self) -> dict[int, Policy]:
        return {self.seat: SB3Policy(self.plan, self.model.policy.state_dict(), self.settings.greedy)}

    def update(self) -> dict[str, float]:
        """Play `SB3.update_steps` or more; what the algorithm logs of its last gradient steps, by its own names.

        `return` is the mean of each lane's last whole episode (nan before the first) and `return_error` its standard
        error; `entropy` is minus the `entropy_loss`; `q_mean`, `q_min` and `q_max` are of the greedy actions where the
        lanes are. Raises FloatingPointError where a number or a weight is no longer finite.
        """
        settings, model = self.settings, self.model
        logged = model.logger.name_to_value
        logged.clear()
        steps = min(settings.update_steps, settings.total_steps - model.num_timesteps)
        with self.generators.swapped():
            try:
                model.learn(steps, log_interval=None, reset_num_timesteps=False)  # type: ignore[arg-type]
            except ValueError as error:  # as distributions say of networks that are no longer finite
                if self._finite():
                    raise
                raise self._diverged("its weights are not finite") from error
        watched = {name.rpartition("/")[2]: float(value) for name, value in logged.items()}
        if "entropy_loss" in watched:
            watched["entropy"] = -watched["entropy_loss"]
        infinite = {
            name: value for name, value in watched.items() if name.endswith("loss") and not math.isfinite(value)
        }
        if infinite or not self._finite():
            raise self._diverged(f"{infinite or 'its weights are not finite'}")
        if not self.updates:
            self._tell_of_masks()
        self.updates += 1
        return {"update": self.updates, "steps": model.num_timesteps} | self._returns() | watched | self._values()

    def _tell_of_masks(self) -> None:
        algorithm = self.settings.algorithm
        if algorithm != "MaskablePPO" and self.view.lanes.legal(0) is not None:
            log.warning(
                "note: %s knows nothing of forbidden choices: where it makes one, a legal one is drawn; MaskablePPO "
                "learns from masks",
                algorithm,
            )

    def _finite(self) -> bool:
        return all(bool(part.isfinite().all()) for part in self.model.policy.parameters())

    def _diverged(self, what: str) -> FloatingPointError:
        return diverged(self.seat, self.updates + 1, self.model.num_timesteps, what)

    def _returns(self) -> dict[str, float]:
        whole = self.view.last_returns[~np.isnan(self.view.last_returns)]
        mean = float(whole.mean()) if len(whole) else math.nan
        error = float(whole.std(ddof=1) / len(whole) ** 0.5) if len(whole) > 1 else math.nan
        return {"return": mean, "return_error": error}

    @torch.inference_mode()
    def _values(self) -> dict[str, float]:
        net, seen = self.model.policy, self.model._last_obs
        net.set_training_mode(False)
        values = q_values(net, torch.as_tensor(seen, device=net.device))
        if values is None:
            return {}
        return {"q_mean": values.mean().item(), "q_min": values.min().item(), "q_max": values.max().item()}

    def state_dict(self) -> dict[str, Any]:
        started = self.model._last_obs is not None
        return {
            "updates": self.updates,
            "view": self.view.state_dict() if started else None,
            "model": state_of(self.model),
            "generators": self.generators.own,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates, self.generators.own = state["updates"], state["generators"]
        load(self.model, state["model"])
        if state["view"] is None:
            self.view.seed(self.seed)
        else:
            self.view.load_state_dict(state["view"])
