"""The conformance suite over the registry, and over environments and games that break one rule each."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from pettingzoo import ParallelEnv
from pettingzoo.utils import parallel_to_aec

import games
from games.conformance import GAME_RULES, RULES, ConformanceError, check, check_faces, check_game
from games.conformance.__main__ import main
from games.conformance.moments import AEC_RULES
from games.conformance.runs import Case
from games.conformance.suite import verdicts
from games.conformance.table import BRIEF
from games.envs import AECFace, ParallelFace
from tests.games.broken_envs import BROKEN, PaysNaN, Raises, SeesDoubles, Sound, SoundAEC, TakesAnyNumber
from tests.games.broken_games import BROKEN_GAMES, BROKEN_LANES
from tests.games.spiel import CONFORMING
from tests.games.turns import Bids, Turns

FACES = {"parallel": games.parallel_env, "aec": games.env}
GAMES = (*games.GAMES, *CONFORMING)
MODES = ("ansi", "rgb_array")


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def pictures(env) -> tuple[str, ...]:
    """The render modes that open no window."""
    return tuple(mode for mode in env.metadata["render_modes"] if mode != "human")


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", GAMES)
def test_every_face_of_every_game_keeps_every_rule(name, face):
    """One of them in another process too: what iterates over a set there is the game, which they share."""
    make = partial(FACES[face], name, **BRIEF.get(name, {}))
    report = check(make, 3, render_modes=pictures(make()), skip=[] if face == "aec" else ["processes"])
    assert set(report.unchecked) <= {
        "continues",
        *(("selection", "last", "cumulative", "dead_steps", "processes") * (face != "aec")),
    }


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", GAMES)
def test_faces_that_are_cut_short_keep_every_rule(name, face):
    check(partial(FACES[face], name, max_cycles=2), 3, skip=["processes"])


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", GAMES)
def test_both_faces_of_every_game_play_the_same_episodes(name):
    faces = (partial(face, name, **BRIEF.get(name, {})) for face in (games.env, games.parallel_env))
    check_faces(*faces)
    check_faces(partial(games.env, name, max_cycles=2), partial(games.parallel_env, name, max_cycles=2))


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", GAMES)
def test_every_kernel_and_its_lanes_keep_every_rule(name):
    found = check_game(games.make(name), put=tensor)
    assert set(found.rules) | {"channels"} == set(GAME_RULES)
    assert found.unchecked.keys() <= {"channels"}  # of games whose agents talk


def test_turns_and_masks_keep_every_rule():
    aec, parallel = (partial(face, Turns(), "turns_v0") for face in (AECFace, ParallelFace))
    for make in (aec, parallel):
        assert "continues" in check(make, 3, render_modes=["ansi"], skip=["processes"]).rules
    check_faces(aec, parallel)
    check_faces(partial(AECFace, Unmasked(), "turns_v0"), partial(ParallelFace, Unmasked(), "turns_v0"))
    check_game(Turns(), put=tensor)


def test_the_models_keep_every_rule():
    assert check(SoundAEC, render_modes=MODES).rules == tuple(RULES)
    assert set(check(Sound, render_modes=MODES, skip=["processes"]).unchecked) == {"processes", *AEC_RULES}


def test_pettingzoos_wrapper_hands_out_what_it_keeps_and_refuses_late():
    """PettingZoo 1.27: it returns its own arrays, and passes actions on only once everyone has chosen."""
    found = verdicts(Case(lambda: parallel_to_aec(Sound()), 5, 0, 500))
    assert {verdict.rule for verdict in found if verdict.broken} == {"ignores_writes", "rejects_actions"}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_catches_what_breaks_it_and_the_others_do_not(rule):
    with pytest.raises(ConformanceError, match=f"rule '{rule}' is broken") as caught:
        check(BROKEN[rule], render_modes=MODES, skip=[] if rule == "processes" else ["processes"])
    assert caught.value.rule == rule
    if rule != "plays":
        assert rule not in check(BROKEN[rule], render_modes=MODES, skip={"processes", rule}).rules


@pytest.mark.parametrize("rule", BROKEN_GAMES)
def test_every_rule_of_games_catches_what_breaks_it_and_the_others_do_not(rule):
    with pytest.raises(ConformanceError, match=f"rule '{rule}' is broken"):
        check_game(BROKEN_GAMES[rule](), put=tensor)
    check_game(BROKEN_GAMES[rule](), skip=[rule])


@pytest.mark.parametrize("rule", BROKEN_LANES)
def test_every_rule_of_lanes_catches_what_breaks_it_and_the_others_do_not(rule, monkeypatch):
    monkeypatch.setattr("games.conformance.lanes.GameLanes", BROKEN_LANES[rule])
    with pytest.raises(ConformanceError, match=f"rule '{rule}' is broken"):
        check_game(Turns())
    check_game(Turns(), skip=[rule])


def test_every_rule_has_something_that_breaks_it():
    assert set(BROKEN) == set(RULES)
    assert {*BROKEN_GAMES, *BROKEN_LANES} == set(GAME_RULES)
    assert all({**RULES, **GAME_RULES}.values())


def test_faces_that_differ_are_told_apart():
    other = partial(games.parallel_env, "normal_form", payoffs=np.ones((2, 2, 2)))
    with pytest.raises(ConformanceError, match=r"'faces' is broken \(agent player_0, episode 0, step 1\): rewards"):
        check_faces(partial(games.env, "normal_form"), other)
    with pytest.raises(ConformanceError, match=r"agent player_0, .* infos must be the same"):
        check_faces(partial(AECFace, Swapped(), "turns_v0"), partial(ParallelFace, Unmasked(), "turns_v0"))
    with pytest.raises(ConformanceError, match=r"must ask player_0, .* it asks \['player_1'\]"):
        check_faces(partial(AsksBackwards, Turns(), "turns_v0"), partial(ParallelFace, Turns(), "turns_v0"))


def test_turns_with_continuous_actions_keep_every_rule():
    aec, parallel = (partial(face, Bids(), "bids_v0") for face in (AECFace, ParallelFace))
    for make in (aec, parallel):
        assert "rejects_actions" in check(make, 3, skip=["processes"]).rules
    check_faces(aec, parallel)
    check_game(Bids(), put=tensor)


class Unmasked(Turns):
    """Nothing but whose turn it is tells what is legal."""

    def legal(self, params, state, seat):
        return None


class Swapped(Unmasked):
    def acting(self, params, state):
        return ~super().acting(params, state)


class AsksBackwards(AECFace):
    def _next_step(self):
        super()._next_step()
        self.agent_selection = self.possible_agents[1 - self.possible_agents.index(self.agent_selection)]


def test_an_error_tells_rule_agent_episode_and_step():
    with pytest.raises(ConformanceError) as caught:
        check(BROKEN["rewards"], skip=["processes"])
    error = caught.value
    assert (error.rule, error.agent, error.episode, error.step) == ("rewards", "ann", 0, 2)
    assert "(agent ann, episode 0, step 2): a reward must be finite, got nan" in str(error)


class BreaksThree(PaysNaN, SeesDoubles, TakesAnyNumber):
    pass


def surveyed(env) -> tuple[list, int]:
    """Every verdict, and how many environments were made for them."""
    made = []

    def make():
        made.append(env())
        return made[-1]

    return list(verdicts(Case(make, 3, 0, 50), ["processes"])), len(made)


def test_one_survey_finds_every_broken_rule():
    (told, made), (sound, enough) = surveyed(BreaksThree), surveyed(Sound)
    assert {verdict.rule for verdict in told} == {verdict.rule for verdict in sound} == set(RULES)
    assert made <= enough
    broken = {verdict.rule: verdict.broken for verdict in told if verdict.broken}
    assert list(broken) == ["observations", "rewards", "rejects_actions"]  # as they showed
    assert [(error.episode, error.step) for error in broken.values()] == [(0, 0), (0, 2), (None, None)]
    with pytest.raises(ConformanceError, match="rule 'observations' is broken"):
        check(BreaksThree, skip=["processes"])


def test_what_an_environment_raises_is_told_and_kept():
    with pytest.raises(ConformanceError, match="episode 0, step 3") as caught:
        check(Raises)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        check(Raises, skip=["plays"])


def test_global_generators_are_put_back():
    np.random.seed(7)  # noqa: NPY002
    check(BROKEN["global_generators"], skip=["global_generators", "processes"])
    after = np.random.random()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    assert after == np.random.random()  # noqa: NPY002


def test_invalid_arguments_are_refused():
    for skip, message in ((["reward"], "unknown rule 'reward'; did you mean 'rewards'"), ("rewards", "collection")):
        with pytest.raises(ValueError, match=message):
            check(Sound, skip=skip)
    with pytest.raises(ValueError, match="episodes and max_steps >= 1"):
        check(Sound, episodes=0)
    with pytest.raises(ValueError, match="AECEnv or ParallelEnv, got dict"):
        check(dict)
    with pytest.raises(ValueError, match="did you mean 'Sound'"):
        check("tests.games.broken_envs:Sond")
    with pytest.raises(ValueError, match="cannot import"):
        check("no.such.module:env")
    with pytest.raises(ValueError, match="module:function"):
        check("games")
    with pytest.raises(ValueError, match="lanes and steps >= 2"):
        check_game(Turns(), lanes=1)
    with pytest.raises(ValueError, match=r"games\.game\.Game, with all its members; got dict"):
        check_game({})


def test_an_environment_without_possible_agents_is_told_so():
    with pytest.raises(ConformanceError, match="possible_agents must list everyone"):
        check(ParallelEnv)


class ExitsInASpace(Sound):
    def observation_space(self, agent):
        sys.exit(0)


class HasNoSpace(Sound):
    def action_space(self, agent):
        return None


class ExitsWhenMade(Sound):
    def __init__(self, render_mode=None):
        sys.exit(0)


class ExitsInAStep(Sound):
    def step(self, actions):
        sys.exit(0)


class ExitsAtAWrongAction(Sound):
    def checked(self, agent, action):
        if not self.actions.contains(action):
            sys.exit(0)


@pytest.mark.parametrize(
    ("env", "rule", "message"),
    [
        (ExitsWhenMade, "plays", r"env_fn\(\) raised SystemExit\(0\)"),
        (ExitsInASpace, "plays", r"observation_space\('ann'\) raised SystemExit"),
        (HasNoSpace, "plays", r"action_space\('ann'\) must be a Gymnasium space, got None"),
        (ExitsInAStep, "plays", r"episode 0, step 1\): a step .* raised SystemExit\(0\)"),
        (ExitsAtAWrongAction, "rejects_actions", r"raised SystemExit\(0\)"),
    ],
)
def test_exits_and_missing_spaces_break_a_rule(env, rule, message):
    with pytest.raises(ConformanceError, match=message) as caught:
        check(env, skip=["processes"])
    assert caught.value.rule == rule


@pytest.mark.parametrize("module", ["generated_agents_parallel_v0", "generated_agents_env_v0"])
def test_pettingzoos_generated_agents_have_no_fixed_ones(module):
    path = f"pettingzoo.test.example_envs.{module}:{'parallel_env' if 'parallel' in module else 'env'}"
    with pytest.raises(ConformanceError, match="possible_agents"):
        check(path)


def test_the_command_prints_a_table_and_fails_where_a_rule_is_broken(capsys):
    assert main("tests.games.broken_envs:SoundAEC", render_modes=MODES, skip=("processes",)) == 0
    told = capsys.readouterr().out
    assert "25 rules passed, 0 broken in 5 episodes of 40 steps in all" in told
    assert main("tests.games.broken_envs:PaysNaN", skip=("processes",)) == 1
    told = capsys.readouterr().out
    assert "rewards            BROKEN" in told
    assert "over               passed" in told
    assert "(agent ann, episode 0, step 2)" in told
    assert main("tests.games.broken_envs:Raises") == 1
    assert "0 rules passed, 1 broken" in capsys.readouterr().out
    assert main("tests.games.turns:Turns") == 0
    assert "lane_wise          passed" in capsys.readouterr().out


def test_the_command_refuses_what_is_invalid(capsys):
    assert main("tests.games.broken_envs:Sond") == 2
    assert main("tests.games.broken_envs:Sound", skip=("reward",)) == 2
    assert main("games:parallel_env") == 2  # which needs the name of a game
    told = capsys.readouterr().err
    for part in ("did you mean 'Sound'", "did you mean 'rewards'", "parallel_env() missing"):
        assert part in told


def test_the_command_outlives_an_exit(capsys):
    here = "tests.games.test_conformance"
    assert main(f"{here}:ExitsInAStep") == 1
    assert "plays              BROKEN" in capsys.readouterr().out
    for args in ({"made_by": f"{here}:ExitsWhenMade"}, {"made_by": f"{here}:ExitsInAStep", "skip": ("plays",)}):
        assert main(**args) == 2
        assert capsys.readouterr().err == f"error: {args['made_by']} raised SystemExit(0)\n"


def test_the_command_is_one():
    command = [sys.executable, "-m", "games.conformance", "tests.games.broken_envs:PaysNaN", "--skip", "processes"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
