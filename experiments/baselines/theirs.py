"""OpenSpiel's side of the comparison, in the way and with the settings of its examples.

Generators as in `ours`; NashConv is OpenSpiel's own. It prints as it goes, and draws from NumPy's global generator.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.baselines.games import Played
from experiments.baselines.measured import Measure, Tally


def cfr_plus(played: Played, seed: int, tally: Tally) -> Iterator[Measure]:
    """CFR+, in C++. What is measured is the solver as it is: its last line includes an iteration that the clock cut."""
    import pyspiel
    from open_spiel.python.algorithms.exploitability import nash_conv

    rules = played.rules()
    solver = pyspiel.CFRPlusSolver(rules)
    while True:
        solver.evaluate_and_update_policy()
        yield lambda: nash_conv(rules, solver.average_policy())


def alpha_rank(played: Played, seed: int, tally: Tally, alpha: float, population_size: int) -> Iterator[Measure]:
    """Alpha-rank of a normal form, once."""
    from open_spiel.python.egt import alpharank, utils

    from experiments.baselines.ours import marginals_gap
    from games.openspiel import load

    payoffs = utils.game_payoffs_array(load(played.given))
    shares = alpharank.compute(list(payoffs), m=population_size, alpha=alpha)[2]
    tally.found["sigma"] = [float(f"{share:.6g}") for share in shares]
    yield partial(marginals_gap, payoffs, np.maximum(shares, 0).reshape(payoffs.shape[1:]))


def psro(
    played: Played, seed: int, tally: Tally, oracle: str, meta_strategy_method: str, sims_per_entry: int, **agent: Any
) -> Iterator[Measure]:
    """`psro_v2` as python/examples/psro_v2_example.py runs it.

    Steps are decisions in the episodes that estimate payoffs, and steps of the environment in which oracles learn.
    """
    from open_spiel.python.algorithms.psro_v2.psro_v2 import PSROSolver

    rules = played.rules()
    np.random.seed(seed)  # noqa: NPY002 - what OpenSpiel draws from
    responses, first = _best_response(rules) if oracle == "BR" else _learnt(oracle, agent, rules, tally, seed)
    tally.steps = 0

    class Counted(PSROSolver):
        def sample_episodes(self, policies: Any, num_episodes: int) -> Any:
            return super().sample_episodes([partial(_counted, tally, policy) for policy in policies], num_episodes)

    solver = Counted(
        rules,
        responses,
        initial_policies=first,
        training_strategy_selector="probabilistic",
        rectifier="",
        sims_per_entry=sims_per_entry,
        number_policies_selected=1,
        meta_strategy_method=meta_strategy_method,
        prd_iterations=50_000,
        prd_gamma=1e-10,
        sample_from_marginals=True,
        symmetric_game=False,
    )
    while True:
        yield partial(_of_mixture, rules, solver.get_policies(), solver.get_meta_strategies())
        solver.iteration()


def _counted(tally: Tally, policy: Any, *state: Any) -> Any:
    """What a policy says of a state; that is a step."""
    assert tally.steps is not None
    tally.steps += 1
    return policy(*state)


def _best_response(rules: Any) -> tuple[Any, list[Any]]:
    """The exact oracle, and a uniform policy for every player."""
    from open_spiel.python.algorithms.psro_v2.best_response_oracle import BestResponseOracle
    from open_spiel.python.policy import TabularPolicy

    uniform = TabularPolicy(rules)
    oracle = BestResponseOracle(game=rules, policy=uniform)
    return oracle, [uniform.__copy__() for _ in range(rules.num_players())]


def _learnt(oracle: str, settings: dict[str, Any], rules: Any, tally: Tally, seed: int) -> tuple[Any, list[Any]]:
    """An oracle that learns, "DQN" or "PG", and a fresh network for every player."""
    from open_spiel.python.algorithms.psro_v2 import rl_policy
    from open_spiel.python.algorithms.psro_v2.rl_oracle import RLOracle

    env = _environment(rules, tally, seed)
    kind = {"DQN": rl_policy.DQNPolicy, "PG": rl_policy.PGPolicy}[oracle]
    size = {"DQN": "state_representation_size", "PG": "info_state_size"}[oracle]
    agent = dict(settings)
    episodes = agent.pop("number_training_episodes")
    agent |= {size: env.observation_spec()["info_state"][0], "num_actions": env.action_spec()["num_actions"]}
    first = [kind(env, player, **agent) for player in range(rules.num_players())]
    for policy in first:
        policy.freeze()
    return RLOracle(env, kind, agent, number_training_episodes=episodes, self_play_proportion=0.0, sigma=0.0), first


def nfsp(played: Played, seed: int, tally: Tally, **settings: Any) -> Iterator[Measure]:
    """NFSP in torch, as python/examples/nfsp_kuhn_pytorch.py and nfsp_leduc_pytorch.py run it."""
    from open_spiel.python.pytorch.nfsp import MODE, NFSP

    rules = played.rules()
    tally.steps = 0
    np.random.seed(seed)  # noqa: NPY002 - what OpenSpiel draws from
    env = _environment(rules, tally, seed)
    size, actions = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    players = range(rules.num_players())
    agents = [NFSP(player, size, actions, seed=100 * seed + player, **settings) for player in players]
    while True:
        yield partial(_of_agents, rules, agents, MODE.AVERAGE_POLICY)
        now = env.reset()
        while not now.last():
            now = env.step([agents[now.observations["current_player"]].step(now).action])
        for agent in agents:
            agent.step(now)


def _environment(rules: Any, tally: Tally, seed: int) -> Any:
    """An environment whose steps are counted."""
    from open_spiel.python.rl_environment import ChanceEventSampler, Environment

    class Counted(Environment):
        def step(self, actions: Any) -> Any:
            tally.steps = (tally.steps or 0) + 1
            return super().step(actions)

    return Counted(rules, chance_event_sampler=ChanceEventSampler(seed))


def _of_mixture(rules: Any, policies: Any, marginals: Any) -> float:
    """NashConv of everybody's mixture."""
    from open_spiel.python.algorithms.exploitability import nash_conv
    from open_spiel.python.algorithms.policy_aggregator import PolicyAggregator

    return nash_conv(rules, PolicyAggregator(rules).aggregate(range(rules.num_players()), policies, marginals))


def _of_agents(rules: Any, agents: Any, mode: Any) -> float:
    """NashConv of what agents play in a mode, asked once an information state."""
    from open_spiel.python.algorithms.exploitability import nash_conv
    from open_spiel.python.policy import tabular_policy_from_callable
    from open_spiel.python.rl_environment import TimeStep

    players = rules.num_players()

    def told(state: Any) -> dict[int, float]:
        player, legal = state.current_player(), state.legal_actions()
        seen: dict[str, Any] = {"info_state": [None] * players, "legal_actions": [None] * players}
        seen["current_player"] = player
        seen["info_state"][player], seen["legal_actions"][player] = state.information_state_tensor(player), legal
        with agents[player].temp_mode_as(mode):
            moment = TimeStep(observations=seen, rewards=None, discounts=None, step_type=None)
            probabilities = agents[player].step(moment, is_evaluation=True).probs
        return {action: probabilities[action] for action in legal}

    return nash_conv(rules, tabular_policy_from_callable(rules, told))
