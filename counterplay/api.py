"""The public interface, listed from the code: `python -m counterplay.api > docs/api.md`."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

PUBLIC: dict[str, tuple[str, ...]] = {
    "games": ("GAMES", "make", "make_game", "parallel_env", "env", "env_id"),
    "games.game": ("Game", "Playable", "Pictured", "Talking", "Policy", "Lanes", "Outcome", "factors", "feature_box"),
    "games.normal_form": ("NormalForm", "matching_pennies", "rock_paper_scissors", "battle_of_the_sexes", "blotto"),
    "games.channel": ("Channel", "Placement", "broadcast"),
    "games.signaling": (
        *("Signaling", "values", "uniform_value", "babbling", "optimum", "optimal_profiles", "deviation_gains"),
        *("is_equilibrium", "pooling", "information"),
    ),
    "games.pong": ("Pong",),
    "games.pong.scripted": ("Follow",),
    "games.t_maze": ("TMaze",),
    "games.bandit": ("Bandit",),
    "games.control.cart_pole": ("CartPole",),
    "games.control.pendulum": ("Pendulum",),
    "games.control.mountain_car_continuous": ("MountainCarContinuous",),
    "games.lqr": ("LQR", "LinearPolicy", "lqr"),
    "games.wrappers": (
        *("WRAPPERS", "mixed_reward", "normalised", "moments", "Moments", "stacked", "agent_indicator", "flickering"),
        *("time_limit", "sticky_actions"),
    ),
    "games.external": ("external", "External", "BrokenContract"),
    "games.external.gymnasium": ("single_agent",),
    "games.openspiel": ("openspiel", "load", "walk"),
    "games.openspiel_stepped": ("Stepped",),
    "games.to_openspiel": ("register",),
    "games.openspiel_payoffs": ("to_matrix_game", "to_tensor_game", "from_openspiel"),
    "games.tree": ("Tree", "Nodes", "Information", "Builder"),
    "games.tree_game": ("TreeGame", "Sight"),
    "games.exact": (
        *("uniform", "check_strategy", "check_population", "profile", "plans", "reach"),
        *("behaviour_of_plan", "behaviour_of_mixture", "part_of_mixture"),
        *("expected_returns", "best_responses", "Response", "deviation_gains", "nash_conv", "exploitability"),
        *("payoff_table", "sequence_payoffs", "mixture_responses", "mixture_gains"),
        *("recommended_responses", "recommendation_gains", "least_exploitable", "free_opponent"),
        *("preference_response", "Preferred", "count_pure", "pure_plans", "check_enumerable"),
        *("zero_sum_equilibrium", "Equilibrium", "check_zero_sum", "cfr", "cfr_plus"),
        *("TabularPolicy", "tabulate", "observations"),
    ),
    "games.exact.openspiel": ("from_openspiel", "to_openspiel"),
    "games.exact.agreement": ("agreement", "Agreement"),
    "games.bucket_brigade": ("BucketBrigade", "SCENARIOS"),
    "games.bucket_brigade.scripted": ("POLICIES", "policy"),
    "games.bucket_brigade.optimum": ("team_optimum", "Optimum", "Plan"),
    "games.bucket_brigade.markov": (
        *("exact_returns", "best_response", "deviation_gains", "nash_conv", "optimal_team", "gap_closed"),
        *("Response", "OptimalTeam"),
    ),
    "games.bucket_brigade.beliefs": ("exact_payoffs", "mixture_response", "cce_gap", "MixtureResponse", "Gap"),
    "games.policies": ("Uniform", "draw", "draw_any", "draw_legal", "joint_probabilities"),
    "games.lanes": ("GameLanes", "lanes_of", "closing", "tree_map", "put_lanes", "to_numpy"),
    "games.stepping": ("SteppedLanes", "Source", "Episode"),
    "games.board": ("Board",),
    "games.versus": ("Versus", "Cast"),
    "games.play": ("play", "play_mixture", "states", "Episodes"),
    "games.film": ("save",),
    "games.noise": ("Noise", "Purpose", "unit_seed"),
    "games.conformance": ("check", "check_faces", "check_game", "check_lanes", "ConformanceError", "Report"),
    "metasolvers": (
        *("META_SOLVERS", "meta_solver", "Entry", "Law", "Certificate", "Concept", "NotConverged"),
        *("alpha_rank", "alpha_limit", "response_graph"),
        *("zero_sum_nash", "max_entropy_nash", "mixed_integer_nash", "logit_nash", "uniform"),
        *("max_welfare_ce", "max_welfare_cce", "max_gini_ce", "max_gini_cce", "max_entropy_ce", "max_entropy_cce"),
        *("regret_matching", "regret_matching_plus", "hedge", "fictitious_play", "replicator", "projected_replicator"),
        *("iterated_elimination", "rectified_nash", "softmax", "latest"),
        *(
            "nash_conv",
            "cce_gap",
            "ce_gap",
            "exploitability",
            "deviation_gains",
            "expected_payoffs",
            "marginal",
            "product",
        ),
        *("is_product", "independent"),
        *("check_payoffs", "check_sigma", "payoff_spread", "stationarity"),
        *("transition_matrix", "fixation_edges", "fixation_probability", "log_fixation_probability"),
    ),
    "metasolvers.dynamics": ("solve", "averaged", "averages", "Average", "policy_values"),
    "metasolvers.no_regret": (
        *("regret_matching_steps", "regret_matching_plus_steps", "hedge_steps", "fictitious_play_steps"),
    ),
    "metasolvers.replicator_dynamics": (
        *("replicator_field", "replicator_field_single", "replicator_path", "replicator_path_single"),
        *("projected_replicator_steps", "project_simplex"),
    ),
    "metasolvers.elimination": ("survivors", "dominated"),
    "metasolvers.heuristics": ("rectified_weights",),
    "metasolvers.bimatrix": (
        *("vertex_enumeration", "support_enumeration", "equilibrium_components", "pure_equilibria"),
    ),
    "metasolvers.quantal": ("logit_path", "quantal_response", "Point"),
    "metasolvers.gambit": ("gambit_nash",),
    "metasolvers.response_graphs": ("sink_components", "sink_distributions", "responses"),
    "metasolvers.single_population": (
        *("alpha_rank_single", "alpha_limit_single", "response_graph_single", "sink_components_single"),
        *("fixation_edges_single", "sorted_table"),
    ),
    "metasolvers.sweep": ("sweep", "sweep_single", "suggest_alpha", "suggest_alpha_single", "Sweep"),
    "metasolvers.sampled": ("alpha_rank_interval", "undecided_edges", "Undecided", "next_profile", "hoeffding_radius"),
    "metasolvers.symmetric": (
        *("check_groups", "check_symmetric", "exchangeable_groups", "symmetric_table", "symmetrised"),
        *("expand", "reduce"),
    ),
    "metasolvers.comparisons": (
        *("win_matrix", "wins_of_payoffs", "advantages", "advantages_of_wins", "win_probabilities", "Interval"),
        *("two_player", "check_wins", "check_antisymmetric"),
    ),
    "metasolvers.ratings": (
        *("elo_expected_score", "elo_update", "bradley_terry", "Ratings", "openskill_ratings", "Skills"),
    ),
    "metasolvers.nash_averaging": ("nash_averaging", "nash_averaging_tasks", "NashAverage", "TaskAverage"),
    "metasolvers.hodge": ("hodge", "Hodge", "disc_components", "Discs"),
    "metasolvers.diversity": ("effective_diversity", "expected_cardinality", "relative_population_performance"),
    "metasolvers.skill_games": ("FAMILIES", "skill_game", "divisions"),
    "metasolvers.symmetric_games": (
        *("symmetric_nash", "symmetric_regret", "strategy_payoffs", "symmetric_replicator_field"),
    ),
    "marl.oracles": ("ORACLES", "Oracle", "Learner"),
    "marl.oracles.a2c": ("A2C",),
    "marl.oracles.behavioural_cloning": ("BehaviouralCloning",),
    "marl.oracles.dqn": ("DQN",),
    "marl.oracles.exact": ("Exact", "Preference"),
    "marl.oracles.joint": ("JointTraining",),
    "marl.oracles.nfsp": ("NFSP",),
    "marl.oracles.ppo": ("PPO",),
    "marl.oracles.recurrent_ppo": ("RecurrentPPO",),
    "marl.oracles.sac": ("SAC",),
    "marl.oracles.sb3": ("SB3",),
    "marl.matchmaking": ("MATCHMAKERS",),
    "marl.pool": ("Pool",),
    "marl.buffers": ("Replay", "Reservoir"),
    "marl.prioritised": ("Prioritised",),
    "marl.demonstrations": ("Demonstrations", "demonstrate"),
    "marl.imitation": ("clone",),
    "marl.sb3.vec_env": ("VecEnvView", "vec_env"),
    "marl.exact": (
        *("ExactTable", "evaluate_exact", "exact_gap", "exact_ce_gap", "exact_nash_conv", "exact_returns"),
        *("anytime", "anytime_targets"),
    ),
    "marl.policies": ("NeuralPolicy",),
    "marl.gaussian": ("GaussianPolicy",),
    "marl.recurrent": ("RecurrentPolicy",),
    "marl.policy_files": ("save_policy", "load_policy"),
    "marl.population": (
        *("PayoffTable", "evaluate", "rollout", "Estimate", "Value", "mixture_value", "deviation_value"),
        *("FullGap", "full_gap"),
    ),
    "marl.recommendations": ("full_ce_gap",),
    "marl.psro": ("psro", "from_payoffs", "Snapshot", "best_response", "one_response_each", "learning_lanes"),
    "marl.targets": ("TARGETS", "Target", "mixture", "recommendations", "rectified"),
    "marl.verification": ("Verification", "verify", "responses", "at_least"),
    "marl.shared": ("SharedTable", "evaluate_shared", "check_exchangeable", "shared_responses"),
    "marl.workers": ("Unit", "Workers", "Here", "Processes", "workers_of", "WorkersDied"),
    "marl.checkpoint": ("PolicyStore", "save_snapshot", "load_snapshot", "finished_iterations"),
    "marl.state_files": ("save_state", "load_state"),
    "marl.training": ("Training",),
    "marl.atomic": ("BrokenCheckpoint",),
    "analysis.load": ("load_run", "Run", "Iteration"),
    "analysis.trainings": ("load_training", "Trained"),
    "analysis.robust": ("iqm", "interval", "Interval"),
    "analysis.curves": ("learning_curve",),
    "analysis.runs": ("list_runs", "glance", "Listed"),
    "analysis.tables": ("columns", "measures", "payoff_table", "meta_strategies", "policies", "learning_curves"),
    "analysis.figures": (
        *("draw", "payoff_matrices", "meta_strategy", "learning", "convergence", "response_graph"),
        *("payoff_matrix", "profile_graph", "policy_graph", "mass_against_alpha", "square_field", "simplex_field"),
        "population_plane",
    ),
    "analysis.report": ("write",),
}
"""Module -> what it offers; everything else may change without notice."""

HEAD = """# The public interface

What may be relied on, by module; `make api` writes this page from the code. Everything else may change without notice.
Shapes, units, errors and sources are in the docstrings: `python -m pydoc games.lanes`.
"""


def page() -> str:
    """The whole list in Markdown."""
    return "\n".join([HEAD, *(line for name in PUBLIC for line in _section(import_module(name)))])


def entries(module: ModuleType) -> dict[str, Any]:
    """What is public of a module, by name. Raises AttributeError for what it does not have."""
    return {name: getattr(module, name) for name in PUBLIC[module.__name__]}


def summary(value: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).rstrip(".:")


def _section(module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`\n"
    yield f"{summary(module)}.\n"
    for name, value in entries(module).items():
        yield f"- `{name}{_call(value)}`: {summary(value)}." if callable(value) else f"- `{name}`: {', '.join(value)}."
    yield ""


def _call(value: Any) -> str:
    """The parameters of a function, without their types; nothing for a class."""
    if not inspect.isfunction(value):
        return ""
    signature = inspect.signature(value)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


if __name__ == "__main__":
    print(page(), end="")
