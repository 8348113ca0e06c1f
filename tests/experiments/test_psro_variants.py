"""The PSRO family: every member either plays a game, and measures its gaps consistently, or refuses it at once."""

import shlex
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from analysis.load import load_run
from experiments.psro import main as any_game
from experiments.psro import parse as parse_any_game
from experiments.psro import planned as planned_any_game
from experiments.psro_bucket_brigade import main as bucket_brigade
from experiments.psro_openspiel import main, parse, planned
from experiments.values import Computed
from games.exact import TabularPolicy, mixture_gains, recommendation_gains
from marl.checkpoint import PolicyStore, finished_iterations, load_snapshot
from marl.exact import population_parts
from marl.psro import Snapshot
from marl.targets import TARGETS
from metasolvers import META_SOLVERS, Concept, Law, independent, is_product
from metasolvers.no_regret import SMALL_GAP
from tests.experiments.tiny import ALONE, contents, count_writes, interrupt_at

GAMES = {"three players": "kuhn_poker(players=3)", "general sum": "matrix_bos", "zero sum": "kuhn_poker"}
PPO = ["--oracle", "ppo", "--ppo.num-lanes", "8", "--ppo.hidden", "8", "--ppo.epochs", "1", "--ppo.minibatches", "1"]
SOLVERS = {name: ["--meta-solver", name] for name in (*META_SOLVERS, "anytime")}
TARGETED = {
    f"{solver} {name}": ["--meta-solver", solver, "--targets", name]
    for name in TARGETS
    for solver in ("zero_sum_nash", "max_gini_ce", "uniform")
    if name != "mixture"
}
VARIANTS = SOLVERS | TARGETED
VARIANTS["alpha-psro"] = ["--meta-solver", "alpha_rank", "--response", "preference"]
VARIANTS["pipeline"] = ["--meta-solver", "uniform", *PPO, "--ppo.steps", "256", "--pipeline", "2", *ALONE]
FEW = {"zero_sum_nash", "anytime", "alpha-psro", *TARGETED}
"""Those that are tried in the zero-sum game too: others' payoffs make no difference to."""

PROMISED = [
    name
    for name, entry in META_SOLVERS.items()
    if entry.concept in (Concept.CORRELATED, Concept.COARSE) and Law.CERTIFIED in entry.laws
]
"""Meta-solvers of (coarse) correlated equilibria."""


@pytest.fixture(autouse=True)
def quick(no_figures: None) -> None:
    """Figures take longer than the runs."""


def last_of(run: Path) -> Snapshot:
    folder = run / "snapshots"
    return load_snapshot(folder, finished_iterations(folder) - 1, PolicyStore(run / "policies"))


def gaps(run: Path, metric: str = "full_gap") -> list[dict]:
    return load_run(run).series(metric)


def takes(variant: str) -> str:
    """Which games it is for, by what registries say."""
    words = VARIANTS[variant]
    solver, targets = words[1], words[3] if "--targets" in words else "mixture"
    if solver == "anytime" or "zero_sum" in (META_SOLVERS[solver].takes, TARGETS[targets].takes):
        return "zero_sum"
    return META_SOLVERS[solver].takes


@pytest.mark.parametrize(
    ("kind", "variant"),
    [(kind, variant) for kind in GAMES for variant in VARIANTS if kind != "zero sum" or variant in FEW],
)
def test_it_plays_the_game_or_refuses_it_before_training(
    kind: str, variant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, game = tmp_path / "run", GAMES[kind]
    options = ["--game", game, *VARIANTS[variant], "--iterations", "2", "--run-dir", str(run)]
    wanted = {"any": set(GAMES), "two_player": {"general sum", "zero sum"}, "zero_sum": {"zero sum"}}[takes(variant)]
    if kind not in wanted:
        assert main(options) == 2
        assert "two players" in (told := capsys.readouterr().err) or "zero-sum" in told
        assert not run.exists()
        return
    assert main(options) == 0
    last, (*_, row) = last_of(run), gaps(run)
    rules = parse(options).make_game()
    parts, sigma = population_parts(rules, last.populations), last.sigma
    (*_, restricted), told = gaps(run, "restricted_gap"), row["concept"] == "CE gap"
    gains = recommendation_gains if told else mixture_gains
    assert row["value"] == pytest.approx(gains(rules.tree, parts, sigma).sum(), abs=1e-9)
    assert row["value"] >= restricted["value"] - 1e-9 >= -2e-9
    assert (row["concept"] == "NashConv") == is_product(sigma)
    solver = META_SOLVERS.get(VARIANTS[variant][1])
    assert told == (not is_product(sigma) and solver is not None and solver.concept is Concept.CORRELATED)
    alone = [found["value"] for found in gaps(run, "independent_gap") if found["iteration"] == last.iteration]
    if alone:
        assert solver is not None
        assert solver.concept not in (Concept.COARSE, Concept.CORRELATED, Concept.NASH)
        assert alone == pytest.approx([mixture_gains(rules.tree, parts, independent(sigma)).sum()], abs=1e-9)


CONVERGENT = {
    "double oracle": [],
    "zero_sum_nash recommendations": ["--targets", "recommendations"],
    "maximum entropy": ["--meta-solver", "max_entropy_nash"],
    "anytime double oracle": ["--meta-solver", "anytime"],
    "JPSRO(CCE)": ["--meta-solver", "max_gini_cce"],
    "JPSRO(CE)": ["--meta-solver", "max_gini_ce", "--targets", "recommendations"],
}


@pytest.mark.parametrize("variant", CONVERGENT)
def test_kuhn_poker_is_solved_where_theory_says_so(variant: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main([*CONVERGENT[variant], "--iterations", "40", "--run-dir", str(run)]) == 0
    assert gaps(run)[-1]["value"] <= 1e-6


@pytest.mark.parametrize(("solver", "targets"), [("max_gini_cce", "mixture"), ("max_gini_ce", "recommendations")])
def test_jpsro_solves_three_player_kuhn_poker(solver: str, targets: str, tmp_path: Path) -> None:
    """Marris et al. (2021): JPSRO(CCE) and JPSRO(CE) end in equilibria of the whole game, for any number of players."""
    run = tmp_path / "run"
    options = ["--game", GAMES["three players"], "--meta-solver", solver, "--targets", targets, "--iterations", "30"]
    assert main([*options, "--run-dir", str(run)]) == 0
    last = gaps(run)[-1]
    assert last["value"] <= 1e-6
    assert last["concept"] in ("NashConv", "CE gap" if targets == "recommendations" else "CCE gap")


@pytest.mark.parametrize("solver", PROMISED)
def test_jpsro_solves_a_game_of_common_and_conflicting_interest(solver: str, tmp_path: Path) -> None:
    """Chicken with a third action for each, in Gambit's format, with every meta-solver of a (coarse) correlated
    equilibrium.
    """
    file, run = tmp_path / "game.nfg", tmp_path / "run"
    pairs = "6 6  7 2  1 1   2 7  0 0  3 1   1 1  1 3  2 2"  # the first player's choice varies first
    file.write_text(f'NFG 1 R "chicken" {{ "first" "second" }} {{ 3 3 }}\n\n{pairs}\n')
    targets = "recommendations" if META_SOLVERS[solver].concept is Concept.CORRELATED else "mixture"
    options = ["--game", f"nfg_game(filename={file})", "--meta-solver", solver, "--targets", targets]
    assert main([*options, "--iterations", "9", "--run-dir", str(run)]) == 0
    learnt = META_SOLVERS[solver].certificate is SMALL_GAP
    assert gaps(run)[-1]["value"] <= (0.1 if learnt else 1e-6)


def test_the_ce_gap_that_is_found_by_play_is_no_more_than_there_is(tmp_path: Path, capsys) -> None:
    """Chicken with a third action for each, played rather than solved; its gap by hand, from the table of payoffs."""
    file, run = tmp_path / "game.nfg", tmp_path / "run"
    pairs = "6 6  7 2  0 0   2 7  0 0  5 1   0 0  1 5  0 0"  # the first player's choice varies first
    file.write_text(f'NFG 1 R "chicken" {{ "first" "second" }} {{ 3 3 }}\n\n{pairs}\n')
    game = f"openspiel:nfg_game(filename={file})"
    options = ["--game", game, "--meta-solver", "max_gini_ce", "--targets", "recommendations", "--oracle", "exact"]
    assert any_game([*options, "--iterations", "2", "--gap-episodes", "4000", "--run-dir", str(run), *ALONE]) == 0
    assert "lower bound on the CE gap, return per episode" in capsys.readouterr().out

    earned = np.array(pairs.split(), float).reshape(3, 3, 2).transpose(2, 1, 0)  # [N, first's, second's choice]
    last, row = last_of(run), gaps(run)[-1]
    plays = population_parts(parse_any_game(["--game", game]).make_game(), last.populations)  # [k_i, 3] a player
    exact = 0.0
    for own, other, table, joint in (
        (plays[0], plays[1], earned[0], last.sigma),
        (plays[1], plays[0], earned[1].T, last.sigma.T),
    ):
        met = joint @ other  # [k, 3] what the other plays where policy k is told, times how often it is
        left = table @ met.T  # [3, k] what every choice earns then
        exact += (left.max(axis=0) - (own.T * left).sum(axis=0)).sum()

    assert (row["iteration"], row["concept"], row["kind"]) == (2, "CE gap", "lower bound")
    assert 4 * row["standard_error"] < row["value"] <= exact + 4 * row["standard_error"]
    assert exact > 0.5


def test_the_anytime_gap_never_rises(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main(["--meta-solver", "anytime", "--run-dir", str(run)]) == 0
    found = [row["value"] for row in gaps(run)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(found))


SMALL = [*PPO, "--ppo.steps", "384", "--iterations", "3", "--warm-start", *ALONE]
RESUMED = {
    "pipeline": [*SMALL, "--pipeline", "3"],
    "rectified": [*SMALL, "--targets", "rectified"],
    "recommendations": [*CONVERGENT["JPSRO(CE)"], "--game", GAMES["three players"], "--iterations", "4"],
    "anytime": ["--meta-solver", "anytime", "--iterations", "3"],
    "patience": ["--meta-solver", "uniform", "--patience", "2"],
}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """A run of each kind that nothing interrupted, and how many files it made."""
    folder = tmp_path_factory.mktemp("straight")
    found = {}
    for kind, options in RESUMED.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("experiments.session.draw", lambda path: [])
            patch.setattr("experiments.session.write", lambda path: None)
            writes = count_writes(patch)
            assert main([*options, "--run-dir", str(folder / kind)]) == 0
        found[kind] = folder / kind, len(writes)
    return found


@pytest.mark.parametrize("share", [0.4, 0.8])
@pytest.mark.parametrize("kind", RESUMED)
def test_a_stopped_run_resumes_to_the_same_bits(
    kind: str,
    share: float,
    straight: dict[str, tuple[Path, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, (whole, writes) = tmp_path / "run", straight[kind]
    with monkeypatch.context() as patch:
        interrupt_at(int(share * writes), patch)
        assert main([*RESUMED[kind], "--run-dir", str(run)]) == 128 + signal.SIGTERM
    assert contents(run) != contents(whole)
    again = capsys.readouterr().err.split(" psro-openspiel ")[1]
    assert main([*shlex.split(again), *ALONE]) == 0
    assert contents(run) == contents(whole)


def test_levels_of_a_pipeline_go_on_until_they_are_the_lowest(straight: dict[str, tuple[Path, int]]) -> None:
    run, _ = straight["pipeline"]
    store = PolicyStore(run / "policies")
    for iteration in (1, 2, 3):
        for level in ("", "/1", "/2"):
            assert store.load(f"train/{iteration}/0{level}").curve[-1]["steps"] == 384 // 3
    names = {unit for mine in load_run(run).iterations[-1].policies for unit in mine}
    assert all(unit.count("/") == 2 for unit in names if unit.startswith("train"))
    told = [{key: row[key] for key in ("response", "level") if key in row} for row in gaps(run, "learner/return")]
    assert [part for part in ({}, {"level": 1}, {"level": 2}) if part in told] == [{}, {"level": 1}, {"level": 2}]
    assert not any("response" in part for part in told)


@pytest.mark.slow
def test_workers_change_nothing_in_a_pipeline(straight: dict[str, tuple[Path, int]], tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main([*RESUMED["pipeline"], "--workers", "2", "--run-dir", str(run)]) == 0
    assert contents(run) == contents(straight["pipeline"][0])


def test_copies_are_added_again_where_they_count(tmp_path: Path) -> None:
    """Fictitious play of the prisoner's dilemma counts how often everyone has defected."""
    run = tmp_path / "run"
    assert main(["--game", "matrix_pd", "--meta-solver", "uniform", "--iterations", "3", "--run-dir", str(run)]) == 0
    assert [len(population) for population in last_of(run).populations] == [4, 4]
    assert [row["value"] for row in gaps(run, "duplicates")] == [0, 0, 0]


def test_responses_that_differ_where_they_never_come_are_the_same() -> None:
    """The first player of Kuhn poker who always bets is never asked again."""
    game = parse([]).make_game()
    tree, mine = game.tree, game.tree.slots(0).tolist()
    first, again = (
        [s for s in tree.states(0) if (tree.information.parent[s] == tree.num_slots) == at] for at in (1, 0)
    )

    def playing(passes: int | None) -> TabularPolicy:
        """Who bets everywhere, but for one information state."""
        moves = {state: tree.information.offset[state] + (state != passes) for state in tree.states(0)}
        return TabularPolicy.of(game, 0, [float(slot in moves.values()) for slot in mine])

    bets = playing(None)
    assert Computed(game, "zero_sum_nash").find(0, bets, [playing(first[0]), playing(again[0])]) == 1
    assert Computed(game, "zero_sum_nash").find(0, bets, [playing(state) for state in first]) is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--response", "preference"], "heuristic: zero_sum_nash with preference-based responses"),
        (["--meta-solver", "response_graph"], "heuristic: response_graph with best responses by value"),
        (["--meta-solver", "response_graph", "--response", "preference"], None),
        ([], None),
    ],
)
def test_what_no_theory_is_of_is_said(
    options: list[str], told: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--game", "matrix_rps", "--iterations", "1", *options, "--run-dir", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert told in out if told else "heuristic" not in out


def test_nothing_new_ends_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alpha-rank's best responses by value to its own distribution come to be known ones in Kuhn poker."""
    run = tmp_path / "run"
    assert main(["--meta-solver", "alpha_rank", "--iterations", "50", "--run-dir", str(run)]) == 0
    out = capsys.readouterr().out
    assert "ended: all best responses were found before" in out
    assert "heuristic: alpha_rank with best responses by value" in out
    parts = population_parts(parse([]).make_game(), last_of(run).populations)
    assert all(len(np.unique(mine, axis=0)) == len(mine) for mine in parts)
    copies, gains = gaps(run, "duplicates")[-1], gaps(run, "response_gain")
    assert copies["value"] == len([row for row in gains if row["iteration"] == copies["iteration"]]) == 2


def test_patience_ends_a_run_that_can_be_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["--meta-solver", "uniform", "--patience", "1", "--run-dir", str(run)]) == 0
    assert "the gap in the whole game has not fallen in 1 iteration (--patience)" in capsys.readouterr().out
    found = [row["value"] for row in gaps(run)]
    assert found[-1] >= min(found[:-1])
    assert main(["--run-dir", str(run), "--resume"]) == 0
    assert len(gaps(run)) == len(found)
    assert main(["--run-dir", str(run), "--resume", "--patience", "3"]) == 0
    assert len(gaps(run)) > len(found)


@pytest.mark.parametrize("levels", [1, 3])
def test_smoke_gives_every_level_of_a_pipeline_its_tiny_budget(levels: int) -> None:
    given = ["--smoke", "--oracle", "ppo", "--pipeline", str(levels)]
    for game, parsed, plan in (("kuhn_poker", parse, planned), ("matching_pennies", parse_any_game, planned_any_game)):
        config = parsed([*given, "--game", game])
        assert plan(config).oracle.total_steps == config.ppo.total_steps // levels >= 512
    assert parse([*given, "--ppo.steps", "4096"]).ppo.steps == 4096


def test_a_run_out_of_time_goes_on_to_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    straight, run = tmp_path / "straight", tmp_path / "run"
    assert main(["--run-dir", str(straight)]) == 0
    assert main(["--run-dir", str(run), "--max-minutes", "0"]) == 0
    assert "ended: 0 minutes are over (--max-minutes)" in (out := capsys.readouterr().out)
    assert f"psro-openspiel --run-dir {run} --resume --iterations 100" in out
    assert len(gaps(run)) == 1
    assert main(["--run-dir", str(run), "--resume"]) == 0
    assert contents(run) == contents(straight)


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        (main, "--targets rectifed", "did you mean 'rectified'"),
        (main, "--pipeline 2", "no training to share out: leave out --pipeline, or use --oracle ppo"),
        (
            main,
            "--oracle ppo --pipeline 64 --ppo.steps 65536",
            "leaves every level 1,024 of the oracle's 65,536 steps an iteration, too few to train with: "
            "use --ppo.steps 262144 or more or --pipeline 16 at most",
        ),
        (main, "--oracle dqn --pipeline 64 --dqn.steps 4096", "use --dqn.steps 65536 or more or --pipeline 4 at most"),
        (main, "--oracle ppo --pipeline 2 --targets rectified", "use --targets mixture"),
        (main, "--oracle ppo --response preference", "use --oracle exact"),
        (main, "--game leduc_poker --meta-solver alpha_rank --response preference", "at most 100000"),
        (main, "--meta-solver anytime --targets rectified", "targets of its own"),
        (any_game, "--game battle_of_the_sexes --meta-solver zero_sum_nash", "random play pays the players"),
        (any_game, "--game battle_of_the_sexes --targets rectified", "use --targets mixture"),
        (any_game, "--game rock_paper_scissors --meta-solver anytime", "use `counterplay psro-openspiel`"),
        (any_game, "--game openspiel:kuhn_poker(players=3) --targets rectified", "two players; got 3"),
        (
            main,
            "--game kuhn_poker(players=3) --targets rectified",
            "targets rectified and zero_sum_nash need two players; got 3: use --targets mixture with --meta-solver "
            "alpha_rank, max_gini_cce or logit_nash, or --targets recommendations with --meta-solver max_gini_ce",
        ),
        (any_game, "--game bucket_brigade --oracle exact", "got BucketBrigade: play episodes of it instead"),
        (any_game, "--game openspiel_stepped:kuhn_poker --oracle exact", "got SteppedLanes: play episodes of it"),
        (bucket_brigade, "--meta-solver zero_sum_nash", "got 4: use --meta-solver alpha_rank, max_gini_cce or logit"),
        (bucket_brigade, "--targets rectified", "two players; got 4: use --targets mixture"),
        (bucket_brigade, "--pipeline 1000", "pipeline must be at least 1 and at most 64"),
    ],
)
def test_what_cannot_work_fails_at_once(
    command, options: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    try:
        code = command([*options.split(), "--run-dir", str(run)])
    except SystemExit as end:  # where an option alone is wrong
        code = end.code
    assert code == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not run.exists()
