"""What one update of recurrent PPO makes of a rollout: sequences of steps, each from the memory it started with."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from games.game import Policy
from games.lanes import tree_leaves, tree_map
from games.noise import Noise, Purpose, unit_seed
from marl.cells import Leaves
from marl.collect import Rollout
from marl.gaussian import GaussianPolicy
from marl.networks import Layers, Parameters, check_takes, computing, copied, last_outputs, orthogonal_layers
from marl.networks import backward as head_backward
from marl.oracles.ppo import Rates
from marl.oracles.ppo_trainee import Objective, Views, estimates, joined, next_values, objective, passes
from marl.oracles.recurrent_ppo import RecurrentPPO
from marl.policies import NeuralPolicy
from marl.recurrent import RecurrentPolicy, Trace, backward, fresh_memory, put_back, recurrent_core, step, unroll
from marl.scales import ReturnScale


class Walk(NamedTuple):
    """Steps of M lanes as both networks took them."""

    observations: Tensor  # [L, M, D]
    seen: Tensor  # [L, M, D'] by the critic
    starts: Tensor  # [L, M] bool: where an episode did
    memories: tuple[Leaves, Leaves]  # [L, M, H] of actor and critic before each step


class Sequences(NamedTuple):
    """M sequences of S steps to learn from."""

    sample: dict[str, Tensor]  # [..., S * M] of the steps
    walk: Walk  # [burn_in + S, M], but for memories [M, H]: those it starts with
    warmed: Tensor  # [M] bool: whether it starts `burn_in` steps before the sequence, rather than with it


class Place:
    """One seat as its trainee goes through it: memories, and where episodes start."""

    def __init__(self, cores: Sequence[Layers], rollout: Rollout):
        lanes, device = rollout.rewards.shape[1], rollout.device
        self.actor, self.critic = (
            tuple(torch.as_tensor(leaf, device=device) for leaf in fresh_memory(core, lanes)) for core in cores
        )
        self.start = torch.ones(lanes, dtype=torch.bool, device=device)
        self.recorded: list[Leaves] = []

    def act(self, core: Layers, shown: Tensor, rollout: Rollout, index: int) -> Tensor:
        """[B, H] outputs of the actor's core in a step of the rollout, for what is shown to it."""
        if index == 0:
            self.recorded.clear()
        self.recorded.append(self.actor)
        starts = rollout.ended[index - 1] if index else self.start
        self.actor = step(core, shown, put_back(self.actor, _keep(starts)))
        return self.actor[0]

    def criticise(self, core: Layers, shown: Tensor, ended: Tensor) -> tuple[Trace, Tensor]:
        """The critic's core on what it is shown of a rollout [T + 1, B, D'], and where episodes started [T + 1, B]."""
        starts = torch.cat([self.start[None], ended])
        return unroll(core, shown, self.critic, starts), starts

    def walked(self, rollout: Rollout, seen: Tensor, trace: Trace, starts: Tensor) -> Walk:
        """[T, B] the rollout's steps; the next rollout goes on from here."""
        steps = len(rollout.rewards)
        actor = tuple(torch.stack(leaves) for leaves in zip(*self.recorded, strict=True))
        critic = tuple(leaf[:steps] for leaf in trace.before())
        self.critic = tuple(leaf[steps - 1].clone() for leaf in trace.after)
        self.start = starts[-1].clone()
        return Walk(rollout.observations[:-1], seen[:-1], starts[:-1], (actor, critic))

    def state_dict(self) -> list[Tensor]:
        return [leaf.clone() for leaf in tree_leaves((self.actor, self.critic, self.start))]

    def load_state_dict(self, state: Sequence[Tensor]) -> None:
        leaves = iter(state)
        self.actor, self.critic, self.start = tree_map(
            lambda leaf: torch.as_tensor(next(leaves), device=leaf.device).clone(),
            (self.actor, self.critic, self.start),
        )


class RecurrentTrainee:
    """A recurrent network for the policy and one for the critic. Implements `Trainee`."""

    def __init__(
        self,
        settings: RecurrentPPO,
        rollouts: Sequence[Rollout],
        features_seen: int,
        name: str,
        seed: int,
        start: Policy | None,
    ):
        self.settings, self.head = settings, rollouts[0].head
        device, shape = rollouts[0].device, tuple(rollouts[0].observations.shape[2:])
        shapes = (shape, (*shape[:-1], features_seen))
        self.shape = shape
        generator = np.random.default_rng(unit_seed(seed, f"init/{name}"))
        actor, critic = (
            recurrent_core(part, settings.hidden, settings.cell, settings.units, settings.span, generator)
            for part in shapes
        )
        actor += self.head.layers(settings.units, (), generator)
        critic += orthogonal_layers((settings.units, 1), 1.0, generator)
        self.parameters = Parameters([actor if start is None else self.layers(start), critic], device)
        self.actor, self.critic = self.parameters.networks
        self.shuffles = Noise(seed, [f"shuffle/{name}"])
        self.scale = ReturnScale()
        self.views = Views(shapes if settings.normalise_observations else (), device, start is not None)
        cores = (self.actor[:-1], self.critic[:-1])
        self.places = [Place(cores, rollout) for rollout in rollouts]

    @torch.inference_mode()
    def act(self, place: int, rollout: Rollout, index: int) -> Tensor:
        shown = self.views.shown(0, rollout.observations[index])
        return last_outputs(self.actor, self.places[place].act(self._core(self.actor), shown, rollout, index))

    @torch.inference_mode()
    def improve(
        self, rollouts: Sequence[Rollout], seen: Sequence[Tensor], update: int, rates: Rates
    ) -> dict[str, float]:
        """All epochs over the rollouts' sequences; see `Trainee`."""
        settings, parameters = self.settings, self.parameters
        parts, walk, fit = self._batch(rollouts, seen)
        samples = self._samples(parts, walk, update)
        epochs, differentiate = settings.epochs if self.views.ready else 0, partial(self._differentiate, rates)
        told = passes(settings, parameters, rates, samples, differentiate, epochs)
        self.views.look(rollouts, seen, parameters.networks)
        return told | {"explained_variance": fit.item()}

    def _batch(self, rollouts: Sequence[Rollout], seen: Sequence[Tensor]) -> tuple[dict[str, Tensor], Walk, Tensor]:
        """What the losses need [T, ..., M], the walks side by side, and the critic's explained variance."""
        values, bootstrapped, walks = [], [], []
        for place, rollout, observed in zip(self.places, rollouts, seen, strict=True):
            shown = self.views.shown(1, observed)
            trace, starts = place.criticise(self._core(self.critic), shown, rollout.ended)
            now = self.values(trace.outputs).view_as(starts)
            values.append(now[:-1])
            bootstrapped.append(next_values(rollout, now, partial(self._final, trace)))
            walks.append(place.walked(rollout, observed, trace, starts))
        estimated, fit = estimates(
            self.settings, rollouts, joined(values), joined(bootstrapped), self.scale, self.critic
        )
        return estimated, Walk(*tree_map(lambda *leaves: joined(leaves, axis=1), *walks)), fit

    def values(self, outputs: Tensor) -> Tensor:
        """[...] expected discounted returns from outputs [..., H] of the critic's core."""
        return self.scale.undo(torch.nn.functional.linear(outputs, *self.critic[-1])[..., 0])

    def _final(self, trace: Trace, index: int, lanes: Tensor, final: Tensor) -> Tensor:
        """Values of what was seen last in lanes that were cut, by what the critic remembered by then."""
        memory = tuple(leaf[index, lanes] for leaf in trace.after)
        return self.values(step(self._core(self.critic), self.views.shown(1, final), memory)[0])

    def _samples(self, parts: dict[str, Tensor], walk: Walk, update: int) -> list[Sequences]:
        """Minibatches of sequences in shuffled order."""
        settings = self.settings
        length, burn_in = settings.sequence, settings.burn_in
        firsts = torch.arange(0, settings.horizon, length)
        cut = {
            name: part.unflatten(0, (len(firsts), length)).movedim(0, -2).flatten(-2) for name, part in parts.items()
        }
        warmed = firsts >= burn_in
        steps = (firsts + torch.arange(-burn_in, length)[:, None]).clamp(min=0)  # [burn_in + S, sequences of a lane]
        memories = tree_map(
            lambda leaf: leaf[torch.where(warmed, firsts - burn_in, firsts)].flatten(0, 1), walk.memories
        )
        observations, seen, starts = (part[steps].flatten(1, 2) for part in walk[:3])
        warmed = warmed.to(starts.device).repeat_interleave(walk.starts.shape[1])
        keys = self.shuffles.draw(Purpose.SHUFFLE, update, starts.shape[1], 1)[:, 0]
        order = torch.as_tensor(np.argsort(keys, kind="stable"), device=starts.device)
        samples = []
        for rows in order.chunk(settings.minibatches):
            sample = {name: part[..., rows].movedim(0, -2).flatten(-2) for name, part in cut.items()}
            began = tree_map(lambda leaf, rows=rows: leaf[rows], memories)
            taken = Walk(observations[:, rows], seen[:, rows], starts[:, rows], began)
            samples.append(Sequences(sample, taken, warmed[rows]))
        return samples

    def _differentiate(self, rates: Rates, batch: Sequences) -> Objective:
        """Write the parameters' gradients, and say what was found on the way."""
        by_actor, by_critic = self.parameters.gradients
        acted = self._through(0, batch.walk.observations, batch)
        judged = self._through(1, batch.walk.seen, batch)
        outputs, values = last_outputs(self.actor, acted.outputs), last_outputs(self.critic, judged.outputs)[0]
        found = objective(self.settings, self.head, outputs, values, batch.sample, rates)
        for network, gradients, trace, outer in (
            (self.actor, by_actor, acted, found.by_outputs),
            (self.critic, by_critic, judged, found.by_values),
        ):
            head_backward(network[-1:], gradients[-1:], [trace.outputs], outer)
            backward(self._core(network), gradients[:-1], trace, outer.mm(network[-1][0]))
        return found

    def _through(self, network: int, observations: Tensor, batch: Sequences) -> Trace:
        """The steps of sequences after burning in."""
        core, burn_in, starts = self._core(self.parameters.networks[network]), self.settings.burn_in, batch.walk.starts
        shown, memory = self.views.shown(network, observations), batch.walk.memories[network]
        if burn_in:
            trace = unroll(core, shown[:burn_in], memory, starts[:burn_in])
            memory = tuple(
                torch.where(batch.warmed[:, None], after[-1], before)
                for after, before in zip(trace.after, memory, strict=True)
            )
        return unroll(core, shown[burn_in:], memory, starts[burn_in:])

    def _core(self, network: Layers) -> Layers:
        """What the network computes with before its head; cells themselves stay in float32."""
        core = network[:-1]
        return [*computing(core[:-1], self.settings.autocast), core[-1]]

    def policy(self, greedy: bool) -> Policy:
        return self.built([self.views.folded(self.actor[0]), *self.actor[1:]], greedy)

    def layers(self, policy: Policy) -> Layers:
        """Those of the core, and the head's."""
        if not isinstance(policy, RecurrentPolicy):
            raise ValueError(f"training goes on from a RecurrentPolicy, got {policy}")
        check_takes(policy.core, self.shape)
        return [*policy.core, *self.head.resumed(policy.head, policy.units)]

    def built(self, layers: Layers, greedy: bool) -> Policy:
        *core, head = copied(layers, self.parameters.vector.device)
        linear = self.head.policy([head], greedy)
        assert isinstance(linear, NeuralPolicy | GaussianPolicy)
        return RecurrentPolicy(core, linear)

    @property
    def finite(self) -> bool:
        return bool(self.parameters.vector.isfinite().all())

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters.state_dict(),
            "scale": self.scale.state_dict(),
            "views": self.views.state_dict(),
            "places": [place.state_dict() for place in self.places],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.parameters.load_state_dict(state["parameters"])
        self.scale.load_state_dict(state["scale"])
        self.views.load_state_dict(state["views"])
        for place, saved in zip(self.places, state["places"], strict=True):
            place.load_state_dict(saved)


def _keep(starts: Tensor) -> Tensor | None:
    """[B, 1] 0 where an episode starts, else 1; None where none does."""
    return (~starts).to(torch.float32)[:, None] if starts.any() else None
