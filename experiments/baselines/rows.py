"""The rows of the comparison: whose algorithm, on which games, with which settings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from analysis.comparison import OURS, PEER
from experiments.baselines import ours, theirs
from experiments.baselines.games import GAMES
from experiments.baselines.measured import Measure
from experiments.psro_openspiel import LITTLE
from marl.oracles import DQN, Exact

SEEDS = (0, 1, 2)
EVERYWHERE = tuple(GAMES)
ZERO_SUM = tuple(name for name, game in GAMES.items() if game.zero_sum)
OTHERS = tuple(name for name in GAMES if name not in ZERO_SUM)
NORMAL_FORMS = tuple(name for name, game in GAMES.items() if game.normal_form)
SHIPPED = ("matching_pennies", "kuhn", "leduc")
"""Where OpenSpiel's oracles that learn are tried: they have not finished an iteration in two minutes of Kuhn poker."""


@dataclass(frozen=True)
class Row:
    """One side of a comparison: the algorithm's name is what pairs the two."""

    algorithm: str
    whose: str
    make: Callable[..., Iterator[Measure]]
    modules: tuple[str, ...]
    """Imported before the clock starts."""
    games: tuple[str, ...] = EVERYWHERE
    settings: dict[str, Any] = field(default_factory=dict)
    learned: bool = False
    """Whether seeds matter."""
    patience: float = 1.0
    """Times the seconds of the game that it may take by default."""
    longer: dict[str, float] = field(default_factory=dict)
    """On these games so many times as long."""

    @property
    def seeds(self) -> tuple[int, ...]:
        return SEEDS if self.learned else SEEDS[:1]

    def seconds(self, game: str) -> float:
        """Of the processor, that it may take on a game by default."""
        return GAMES[game].seconds * self.patience * self.longer.get(game, 1.0)


LOOP = ("pyspiel", "marl.psro", "metasolvers")
PSRO_V2 = ("open_spiel.python.algorithms.psro_v2.psro_v2", "open_spiel.python.algorithms.policy_aggregator")
BEST_RESPONSES = (*PSRO_V2, "open_spiel.python.algorithms.psro_v2.best_response_oracle")
RL_ORACLES = (*PSRO_V2, "open_spiel.python.algorithms.psro_v2.rl_policy")
EXPLOITABILITY = "open_spiel.python.algorithms.exploitability"
SOME_STEPS = DQN(
    steps=32_768,
    num_lanes=128,
    horizon=4,
    gradient_steps=16,
    minibatch=256,
    learning_rate=3e-3,
    gamma=1.0,
    epsilon_end=0.2,
    target_rate=0.05,
    hidden=(64,),
)
"""A best response in a few seconds."""
LAYERS = [256] * 4
SHIPPED_PG = {
    "loss_str": "qpg",
    "loss_class": False,
    "hidden_layers_sizes": LAYERS,
    "entropy_cost": 0.001,
    "critic_learning_rate": 1e-2,
    "pi_learning_rate": 1e-3,
    "num_critic_before_pi": 8,
    "optimizer_str": "adam",
    "number_training_episodes": 10_000,
}
SHIPPED_DQN = {
    "hidden_layers_sizes": LAYERS,
    "batch_size": 32,
    "learning_rate": 1e-2,
    "update_target_network_every": 1000,
    "learn_every": 10,
    "optimizer_str": "adam",
    "number_training_episodes": 10_000,
}
"""What psro_v2_example.py has by default."""
SHIPPED_NFSP = {
    "hidden_layers_sizes": [128],
    "replay_buffer_capacity": 200_000,
    "reservoir_buffer_capacity": 2_000_000,
    "min_buffer_size_to_learn": 1000,
    "anticipatory_param": 0.1,
    "batch_size": 128,
    "learn_every": 64,
    "rl_learning_rate": 0.01,
    "sl_learning_rate": 0.01,
    "optimizer_str": "sgd",
    "loss_str": "mse",
    "update_target_network_every": 19_200,
    "discount_factor": 1.0,
    "epsilon_decay_duration": 20_000_000,
    "epsilon_start": 0.06,
    "epsilon_end": 0.001,
}
"""What nfsp_leduc_pytorch.py has by default."""
ALPHA = {"alpha": 1.0, "population_size": 50}


def _learned(
    algorithm: str, name: str, oracle: Any, shipped: str, agent: dict[str, Any], longer: dict[str, float]
) -> dict[str, Row]:
    """PSRO with an oracle that learns: ours in all games, OpenSpiel's in some."""
    solvers = {"": ("zero_sum_nash", ZERO_SUM), "_alpha_rank": ("alpha_rank", OTHERS)}
    rows = {
        f"ours_psro_{name}{ending}": Row(
            algorithm,
            OURS,
            ours.psro,
            LOOP,
            games,
            {"oracle": oracle, "meta_solver": solver},
            learned=True,
            longer=longer,
        )
        for ending, (solver, games) in solvers.items()
    }
    settings = {"oracle": shipped, "meta_strategy_method": "nash", "sims_per_entry": 1000, **agent}
    peer = Row(algorithm, PEER, theirs.psro, RL_ORACLES, SHIPPED, settings, learned=True, patience=2.0)
    return {**rows, f"openspiel_psro_{shipped.lower()}": peer}


def _exact(algorithm: str, name: str, solver: str, method: str, games: tuple[str, ...]) -> dict[str, Row]:
    """PSRO with exact best responses; OpenSpiel's payoffs are estimates, so that its seeds matter."""
    return {
        f"ours_{name}": Row(algorithm, OURS, ours.psro, LOOP, games, {"oracle": Exact(), "meta_solver": solver}),
        f"openspiel_{name}": Row(
            algorithm,
            PEER,
            theirs.psro,
            BEST_RESPONSES,
            games,
            {"oracle": "BR", "meta_strategy_method": method, "sims_per_entry": 1000},
            learned=True,
        ),
    }


ROWS: dict[str, Row] = {
    **_exact("double oracle", "double_oracle", "zero_sum_nash", "nash", ZERO_SUM),
    **_exact("PSRO, exact responses, alpha-rank", "psro_alpha_rank", "alpha_rank", "alpharank", OTHERS),
    **_exact("PSRO, exact responses, PRD", "psro_prd", "projected_replicator", "prd", OTHERS),
    **_learned("PSRO, PPO beside PG", "ppo", LITTLE, "PG", SHIPPED_PG, {}),
    **_learned("PSRO, DQN", "dqn", SOME_STEPS, "DQN", SHIPPED_DQN, {"leduc": 5.0}),
    "ours_nfsp": Row("NFSP", OURS, ours.nfsp, ("pyspiel", "torch", "marl.exact", "marl.oracles.nfsp"), learned=True),
    "openspiel_nfsp": Row(
        "NFSP",
        PEER,
        theirs.nfsp,
        ("torch._dynamo", "open_spiel.python.pytorch.nfsp", EXPLOITABILITY),  # the first as torch's optimisers do
        settings=SHIPPED_NFSP,
        learned=True,
    ),
    "ours_cfr_plus": Row("CFR+", OURS, ours.cfr_plus, ("pyspiel", "games.exact"), patience=0.25),
    "openspiel_cfr_plus": Row("CFR+", PEER, theirs.cfr_plus, ("pyspiel", EXPLOITABILITY), patience=0.25),
    "ours_alpha_rank": Row("alpha-rank", OURS, ours.alpha_rank, ("pyspiel", "metasolvers"), NORMAL_FORMS, ALPHA),
    "openspiel_alpha_rank": Row(
        "alpha-rank", PEER, theirs.alpha_rank, ("open_spiel.python.egt.alpharank",), NORMAL_FORMS, ALPHA
    ),
}
