import inspect
import subprocess
import sys

import pettingzoo
import pytest

import games
from games.bucket_brigade import BucketBrigade
from games.game import Game
from games.spelling import unknown
from games.wrappers import flickering, stacked


@pytest.mark.parametrize("name", games.GAMES)
def test_every_game_is_made_by_name_and_known_to_pettingzoo(name):
    assert isinstance(games.make(name), Game)
    assert str(games.parallel_env(name)) == str(games.env(name)) == f"{name}_v0"
    assert isinstance(pettingzoo.make("parallel", games.env_id(name)), pettingzoo.ParallelEnv)
    assert isinstance(pettingzoo.make("aec", games.env_id(name)), pettingzoo.AECEnv)


@pytest.mark.parametrize("name", games.GAMES)
def test_every_game_says_what_it_is(name):
    """As `counterplay games NAME` shows it."""
    lines = inspect.getdoc(games.GAMES[name]).splitlines()
    said = [line.partition(":")[0] for line in lines if ":" in line and not line.startswith((" ", ">"))]
    wanted = {"Players", "Observations", "Actions", "Rewards", "Horizon", "Chance", "References"}
    assert wanted <= set(said), f"{name} says nothing of {wanted - set(said)}"


def test_parameters_reach_the_game():
    assert games.make("bucket_brigade", scenario="hard", kappa=0.7) == BucketBrigade("hard", kappa=0.7)
    env = pettingzoo.make("parallel", "counterplay/bucket-brigade-v0", scenario="v2_minimal")
    assert env.action_space("agent_3").nvec.tolist() == [2, 2, 2]


def test_unknown_names_suggest_near_ones():
    with pytest.raises(ValueError, match="unknown game 'bucket_brigad'; did you mean 'bucket_brigade'"):
        games.make("bucket_brigad")
    with pytest.raises(ValueError, match="unknown parameter of bucket_brigade 'scenaro'; did you mean 'scenario'"):
        games.parallel_env("bucket_brigade", scenaro="hard")
    with pytest.raises(ValueError, match="did you mean 'rounds'"):
        games.env("matching_pennies", round=3)
    assert str(unknown("thing", "zzz", ["b", "a"])) == "unknown thing 'zzz'; known: a, b"
    assert str(unknown("thing", "zzz", [])) == "unknown thing 'zzz'; there are none"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("openspeil:leduc_poker", "unknown prefix of names 'openspeil'; did you mean 'openspiel'"),
        ("gymnasum:CartPole-v1", "did you mean 'gymnasium'"),
        ("pettingzo:connect_four", "did you mean 'pettingzoo'"),
        (":x", "something before its colon"),
        ("openspiel_steppd", "did you mean 'openspiel_stepped'"),
        ("openspiel_stepped", r"openspiel_stepped cannot be made with {}: .*missing"),
        ("CartPole-v1", "did you mean 'gymnasium:CartPole-v1'"),
        ("leduc_poker", "did you mean 'openspiel:leduc_poker'"),
        ("mpe2", "did you mean .*'mpe2.simple_tag_v3'"),
        ("pongg", "did you mean 'pong' or 'pong_v3'"),
        ("stacked", r"name it first, as in stacked\(t_maze\)"),
        ("stacked(t_maze,frame=3)", "unknown parameter of stacked 'frame'; did you mean 'frames'"),
        ("stacked(connect_four)", "connect_four is no game of pure functions"),
    ],
)
def test_wrong_names_are_told_what_was_meant(name, told):
    with pytest.raises(ValueError, match=told):
        games.make(name)


def test_wrappers_go_by_name():
    game = games.make("stacked(flickering(t_maze,p=0.25),frames=3)")
    assert game == stacked(flickering(games.make("t_maze"), p=0.25), frames=3)
    assert games.make("stacked", game="t_maze", frames=3) == stacked(games.make("t_maze"), frames=3)


@pytest.mark.parametrize("face", [games.parallel_env, games.env])
def test_faces_take_games_themselves(face):
    env = face(stacked(games.make("t_maze"), frames=3))
    assert (str(env), env.observation_space(env.possible_agents[0]).shape) == ("Stacked_v0", (12,))
    with pytest.raises(ValueError, match="a game that is made takes no parameters, got length"):
        face(games.make("t_maze"), length=3)
    with pytest.raises(ValueError, match="gymnasium:CartPole-v1 is somebody's environment"):
        face("gymnasium:CartPole-v1")


def test_games_needs_neither_torch_nor_openspiel_nor_others_environments_nor_our_other_packages():
    others = ["torch", "pyspiel", "pygame", "mpe2", "games.external"]
    ours = [*others, "counterplay", "experiments", "analysis", "marl", "metasolvers"]
    modules = "games, games.play, games.versus, games.bucket_brigade.parity"
    code = f"import sys, {modules}; print([name for name in {ours} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
