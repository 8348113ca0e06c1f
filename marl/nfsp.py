"""The learning behind `NFSP`: best responses to what everybody plays, and averages of the responses so far."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from games.game import Array, Lanes, Legal, Policy
from games.lanes import to_numpy
from games.noise import Noise, Purpose, unit_seed
from games.numbers import real, whole
from marl.anticipation import Anticipation
from marl.buffers import Reservoir, precise
from marl.demonstrations import Demonstrations
from marl.experience import decision_parts, stacked
from marl.imitation import Imitator
from marl.oracles.checks import check_lanes
from marl.oracles.nfsp import NFSP
from marl.oracles.oracle import diverged, named


class NFSPLearner:
    """Implements `marl.oracles.Learner`; see `NFSP.learner`.

    `learner` learns best responses, on lanes where those who do not learn play eta * response + (1 - eta) * average.
    What each response, as it is handed out, chooses where its learner comes goes to the seat's reservoir: the average
    weighs responses by how likely their own moves come to a state, as mixing them before the game does [Heinrich &
    Silver 2016, section 3.1]. Up to exploration, that is: a learner that explores also comes where its response would
    not, as often as it explores.
    """

    def __init__(
        self,
        settings: NFSP,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str,
        start: Mapping[int, Policy],
    ):
        check_lanes(settings, lanes, seats)
        for agent, space in zip(lanes.agents, lanes.action_spaces, strict=True):
            if isinstance(space, Box):
                raise ValueError(f"NFSP averages choices, but {agent} has {space}: use joint training")
        self.settings, self.seats, self.done_updates = settings, tuple(seats), 0
        self.lanes = Anticipation(lanes, settings.eta, self._remember)
        self.learner: Any = settings.learning.learner(self.lanes, seats, seed, device)
        self.averages = [
            Average(settings, lanes, column, seat, seed, device, start.get(seat)) for column, seat in enumerate(seats)
        ]
        self._hand_over()

    def _remember(self, column: int, seen: Array, legal: Legal, chosen: Array, learns: np.ndarray) -> None:
        self.averages[column].remember(seen, legal, chosen, learns)

    def _hand_over(self) -> None:
        """Let everybody in the lanes play what was learnt."""
        responses = self.learner.policies
        self.lanes.responses = [responses[seat] for seat in self.seats]
        self.lanes.averages = [average.policy() for average in self.averages]

    @property
    def finished(self) -> bool:
        return self.learner.finished

    @property
    def policies(self) -> dict[int, Policy]:
        """The averages."""
        return dict(zip(self.seats, self.lanes.averages, strict=True))

    @property
    def responses(self) -> dict[int, Policy]:
        """Best responses to the averages, by and large, as learnt so far."""
        return dict(zip(self.seats, self.lanes.responses, strict=True))

    def update(self) -> dict[str, float]:
        """As the response's learner, and then supervised steps; metrics are `.../seat` where several seats learn.

        `return` is of each lane's last whole episode in which the seat learnt, against what the others anticipate;
        `average_loss` is the mean cross-entropy of the average with what the responses chose, in nats, and
        `average_uniform_loss` that of who knows nothing but what is legal; `average_miss` how often its likeliest
        choice is another; `reservoir` how many decisions are held. Raises FloatingPointError where a loss or a weight
        is no longer finite.
        """
        settings, left = self.settings, 1 - self.done_updates / self.settings.learning.updates
        metrics = self.learner.update()
        self.done_updates += 1
        returns, errors = (statistic.tolist() for statistic in self.lanes.returns.mean())
        for column, (seat, average) in enumerate(zip(self.seats, self.averages, strict=True)):
            metrics |= named(self.seats, seat, {"return": returns[column], "return_error": errors[column]})
            watched = average.improve(settings.learning_rate * (left if settings.anneal else 1.0))
            if not (average.imitator.finite and not math.isinf(watched["average_loss"])):
                raise diverged(seat, self.done_updates, int(metrics["steps"]), watched)
            metrics |= named(self.seats, seat, watched)
        self._hand_over()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.done_updates,
            "learner": self.learner.state_dict(),
            "averages": [average.state_dict() for average in self.averages],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done_updates = whole("updates", state["updates"], 0, self.settings.learning.updates)
        self.learner.load_state_dict(state["learner"])
        for average, saved in zip(self.averages, state["averages"], strict=True):
            average.load_state_dict(saved)
        self._hand_over()


class Average:
    """One seat's average policy, and the reservoir of decisions that it is an average of."""

    def __init__(
        self,
        settings: NFSP,
        lanes: Lanes,
        column: int,
        seat: int,
        seed: int,
        device: str,
        start: Policy | None,
    ):
        self.settings, self.device = settings, torch.device(device)
        capacity = min(settings.capacity, settings.total_steps)
        parts = decision_parts(lanes, column)
        self.reservoir = Reservoir(capacity, parts, unit_seed(seed, f"reservoir/{seat}"), device)
        spaces = lanes.observation_spaces[column], lanes.action_spaces[column]
        self.imitator = Imitator(*spaces, settings.hidden, f"average/{seat}", seed, device, start)
        self.noise, self.steps, self.owed = Noise(seed, [f"average/{seat}"]), 0, 0.0

    def remember(self, seen: Array, legal: Legal, chosen: Array, rows: np.ndarray) -> None:
        """What was chosen [B] or [B, F] in these rows [B]."""
        where = np.flatnonzero(rows)
        if not len(where):
            return
        batch = {
            "observation": to_numpy(seen)[where],
            "action": to_numpy(chosen).reshape(len(rows), -1)[where],
        }
        if legal is not None:
            batch["legal"] = stacked(tuple(to_numpy(mask)[where] for mask in legal))
        self.reservoir.push(batch)

    def improve(self, learning_rate: float) -> dict[str, float]:
        """The supervised steps of an update, as many as its reservoir asks for; what was watched in the last."""
        settings, watched = self.settings, None
        if self.reservoir.size:
            share = self.reservoir.size / settings.learning.updates
            self.owed += settings.coverage * share / settings.minibatch
            due = max(1, int(self.owed))
            self.owed = max(0.0, self.owed - due)
            for _ in range(due):
                sample = self._drawn()
                watched = self.imitator.step(sample, learning_rate)
        if watched is None:
            loss = miss = floor = math.nan
        else:
            floor = self.imitator.explained.uniform_loss(sample).mean().item()
            loss, miss, _ = watched.tolist()
        return {
            "average_loss": loss,
            "average_uniform_loss": floor,
            "average_miss": miss,
            "reservoir": self.reservoir.size,
        }

    def _drawn(self) -> Demonstrations:
        uniforms = precise(self.noise.draw(Purpose.SHUFFLE, self.steps, self.settings.minibatch, 2))
        self.steps += 1
        places = self.reservoir.draw(uniforms)
        rows = self.reservoir.take(places)
        allowed = rows["legal"].movedim(0, 2) if "legal" in rows else None
        source = torch.as_tensor(places, device=self.device)
        return Demonstrations(rows["observation"].to(torch.float32), rows["action"].t(), allowed, source)

    def policy(self) -> Policy:
        """As learnt so far."""
        return self.imitator.policy(greedy=False)

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": self.imitator.parameters.state_dict(),
            "reservoir": self.reservoir.state_dict(),
            "steps": self.steps,
            "owed": self.owed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.imitator.parameters.load_state_dict(state["parameters"])
        self.reservoir.load_state_dict(state["reservoir"])
        self.steps, self.owed = whole("steps", state["steps"], 0), real("owed", state["owed"], 0)
