"""Other people's PettingZoo environments in lanes."""

import pickle
import sys
import warnings
from functools import partial
from threading import Lock

import numpy as np
import pettingzoo
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text

import games
from games.board import Board
from games.conformance import LANES, check_lanes
from games.external import BrokenContract, external
from games.game import Playable
from tests.games.broken_envs import Raises, Sound, SoundAEC
from tests.games.external_envs import FAULTS, ComesAndGoes, MasksLate, SeesNaN
from tests.golden_cases import select

KAZ = "tests.games.external_envs:retreat"
SMALL_TAG = {"num_adversaries": 1, "num_obstacles": 1, "max_cycles": 5}

HORDE = {"max_zombies": 20, "max_cycles": 20, "spawn_delay": 1, "num_archers": 1, "num_knights": 1}

FIVE = {
    "connect_four": (external("classic/connect_four_v3"), 40),
    "rps": (external("pettingzoo.classic.rps_v2", max_cycles=4), 12),
    "speaker and listener": (external("mpe2.simple_speaker_listener_v4", max_cycles=4, api="aec"), 20),
    "knights, archers and zombies": (external(KAZ), 12),
    "adversaries and prey": (external("mpe2.simple_tag_v3", **SMALL_TAG), 12),
}
"""Masks and turns, chance moves at once, communication in turns, agents who die, agents who differ; steps."""


@pytest.mark.parametrize("name", FIVE)
def test_five_environments_keep_every_rule_of_lanes(name):
    played, steps = FIVE[name]
    report = check_lanes(played, lanes=2, steps=steps, skip=["workers"])  # which takes its time
    assert (*report.rules, "workers") == tuple(LANES)


def test_agents_of_knights_archers_zombies_die_before_their_episode_ends():
    lanes = external(KAZ).lanes(1)
    lanes.reset(0)
    run, wait = np.zeros(1, np.int64), np.ones(1, np.int64)
    for _ in range(5):
        outcome = lanes.step((run, wait, wait))
    assert lanes.alive.tolist() == [[False, True, True]]
    assert outcome.terminated.tolist() == [[True, False, False]]
    outcome = lanes.step((run, wait, wait))
    assert (outcome.terminated | outcome.truncated).all()
    assert outcome.truncated.tolist() == [[False, True, True]]  # max_cycles=6


def idle(env, lanes=1, seed=0, **options):
    """Choice 0, until something happens; 100 steps at most."""
    played = external(env, **options).lanes(lanes)
    played.reset(seed)
    for _ in range(100):
        played.step(tuple(np.zeros(lanes, np.int64) for _ in played.agents))


@pytest.mark.parametrize(("env", "rule", "agent", "says"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS])
def test_an_environment_that_breaks_its_contract_is_told_where(env, rule, agent, says):
    with pytest.raises(BrokenContract, match=says) as caught:
        idle(env)
    error = caught.value
    assert (error.rule, error.agent, error.env) == (rule, agent, "sound_v0")
    assert f"step {error.step} of the episode with seed {error.seed}" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.rule, copy.step) == (str(error), rule, error.step)


def test_the_step_and_the_seed_of_an_error_lead_to_it():
    with pytest.raises(BrokenContract) as caught:
        idle(SeesNaN, lanes=2, seed=3)
    env = SeesNaN()
    env.reset(seed=caught.value.seed)
    for _ in range(caught.value.step):
        observations = env.step(dict.fromkeys(env.agents, 0))[0]
    assert np.isnan(observations[caught.value.agent]).any()


def test_what_an_environment_raises_is_the_cause():
    with pytest.raises(BrokenContract) as caught:
        idle(Raises)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_masks_that_come_late_are_taken_where_they_are_announced():
    lanes = external(MasksLate, masks=True).lanes(1)
    lanes.reset(0)
    assert lanes.legal(0)[0].tolist() == [[True, True, True]]


def test_observations_outside_their_space_are_refused_where_that_is_asked():
    class Outside(Sound):
        def seen(self, agent):
            return super().seen(agent) + 1

    external(Outside).lanes(1).reset(0)
    with pytest.raises(BrokenContract, match="must be within Box"):
        external(Outside, strict=True).lanes(1).reset(0)


def test_illegal_actions_are_refused_before_the_environment_sees_them():
    lanes = games.make("connect_four").lanes(2)
    lanes.reset(0)
    full, waits = np.array([3, 0]), np.zeros(2, np.int64)
    for _ in range(3):
        lanes.step((full, waits + 99))  # whoever waits may do as it likes
        lanes.step((waits, full))
    with pytest.raises(
        ValueError, match=r"player_0 must act within Discrete\(7\), got 3 in lane 0; legal now: \[0, 1, 2, 4"
    ):
        lanes.step((full, waits))
    with pytest.raises(ValueError, match=r"player_0 must act within .* got -1 in lane 1"):
        lanes.step((np.array([0, -1]), waits))
    tag = external("mpe2.simple_tag_v3", continuous_actions=True, **SMALL_TAG).lanes(1)
    tag.reset(0)
    with pytest.raises(ValueError, match=r"agent_0 must act within Box.*, got \[2"):
        tag.step((np.zeros((1, 5), np.float32), np.full((1, 5), 2, np.float32)))


def play(episode, row, action) -> tuple[np.ndarray, int]:
    """Sums of rewards of one episode, and its steps; `action(seat, step)` chooses among the legal ones."""
    total, steps = np.zeros(len(row.alive)), 0
    row.done[0] = False
    while not row.done[0]:
        row.rewards[:] = 0
        chosen = [action(row, seat, steps) for seat in range(len(row.alive))]
        episode.play(chosen, row)
        total += row.rewards
        steps += 1
    return total, steps


def told_by_last(env, action) -> dict:
    """Sums of what `last` tells each agent, in a plain loop over an AEC environment."""
    total, steps = dict.fromkeys(env.possible_agents, 0.0), 0
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        total[agent] += reward
        if terminated or truncated:
            env.step(None)
        else:
            mask = observation.get("action_mask") if isinstance(observation, dict) else None
            env.step(action(env.possible_agents.index(agent), steps, mask))
            steps += 1
    return total


def any_legal(seed, choices):
    def choose(seat, step, mask):
        allowed = np.arange(choices) if mask is None else np.flatnonzero(mask)
        return int(np.random.default_rng([seed, step]).choice(allowed)) if len(allowed) else 0

    return choose


def attack(seed, choices):
    return lambda seat, step, mask: 4


@pytest.mark.parametrize(
    ("name", "params", "player"),
    [
        ("rps_v2", {"max_cycles": 3}, any_legal),
        ("connect_four_v3", {}, any_legal),
        ("knights_archers_zombies_v11", HORDE, attack),
        ("mpe2.simple_tag_v3", SMALL_TAG, any_legal),
        ("mpe2.simple_world_comm_v3", {"max_cycles": 3}, any_legal),
        ("tests.games.external_envs:PaysWhoIsOver", {}, any_legal),
    ],
)
def test_turns_pay_exactly_what_agents_are_told(name, params, player):
    played = external(name, "auto" if ":" in name else "aec", **params)
    paid = []
    for seed in range(3):
        choose = player(seed, min(space.n for space in played.action_spaces))
        episode, row = played.episode(), Board.of(played, 1).row(0)
        episode.begin(seed, row)
        actions = partial(_with_mask, choose)
        paid.append(play(episode, row, actions)[0])
        env = played.make()
        env.reset(seed=seed)
        np.testing.assert_allclose(paid[-1], list(told_by_last(env, choose).values()), rtol=1e-6)
    assert np.any(paid)


def _with_mask(choose, row, seat, step):
    return choose(seat, step, None if row.legal[seat] is None else row.legal[seat][0])


@pytest.mark.parametrize("name", ["mpe2.simple_tag_v3", "mpe2.simple_reference_v3"])
def test_both_apis_pay_the_same(name):
    totals = []
    for api in ("parallel", "aec"):
        played = external(name, api, max_cycles=4)
        episode, row = played.episode(), Board.of(played, 1).row(0)
        episode.begin(7, row)
        steps = 1 if api == "parallel" else len(played.agents)  # a round
        totals.append(play(episode, row, partial(_by_round, steps))[0])
    np.testing.assert_array_equal(*totals)


def _by_round(steps, row, seat, step):
    return (seat + step // steps) % 5


@pytest.mark.parametrize("case", select("pettingzoo"))
def test_rock_paper_scissors_pays_as_published(case):
    for api in ("parallel", "aec"):
        lanes = external("pettingzoo.classic.rps_v2", api).lanes(1)
        for one, two, *wanted in case["expected"]["rps_rewards"]:
            lanes.reset(0)
            actions = (np.array([one]), np.array([two]))
            rewards = sum(lanes.step(actions).rewards for _ in range(1 if api == "parallel" else 2))
            assert rewards.tolist() == [wanted]


def test_agents_come_and_go_and_are_cut_short_apart_from_ending():
    lanes = external(ComesAndGoes).lanes(1)
    lanes.reset(0)
    lives, rewards, terminated, truncated, finals = [], [], [], [], []
    for _ in range(5):
        lives.append(lanes.alive[0].tolist())
        outcome = lanes.step((np.zeros(1, np.int64),) * 3)
        rewards.append(outcome.rewards[0].tolist())
        terminated.append(outcome.terminated[0].tolist())
        truncated.append(outcome.truncated[0].tolist())
        finals.append([float(lanes.final_observations(seat)[0, 0]) for seat in range(3)])
    assert lives == [[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert rewards == [[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert truncated == [[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert terminated == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 1]]  # Carl's episode is over too
    assert finals == [[2, 0, 0], [3, 3, 0], [4, 4, 0], [0, 5, 0], [0, 6, 0]]
    assert outcome.done.tolist() == [True]
    assert lanes.observe(0).tolist() == [[1.0]]


def test_a_time_limit_of_ours_cuts_everyone_short():
    lanes = external(Sound, max_steps=2).lanes(1)
    lanes.reset(0)
    actions = (np.zeros(1, np.int64),) * 2
    assert not lanes.step(actions).done.any()
    outcome = lanes.step(actions)
    assert outcome.done.all()
    assert outcome.truncated.all()
    assert not outcome.terminated.any()
    assert lanes.final_observations(0)[0, 0] == np.float32(0.2)
    turns = external(SoundAEC, max_steps=3).lanes(1)
    turns.reset(0)
    assert [turns.step(actions).done.tolist() for _ in range(3)] == [[False], [False], [True]]


def test_binned_actions_play_what_the_continuous_ones_play():
    played = [external("mpe2.simple_tag_v3", continuous_actions=True, bins=bins, **SMALL_TAG) for bins in (None, 3)]
    assert [str(one.action_spaces[0]) for one in played] == [
        "Box(0.0, 1.0, (5,), float32)",
        "MultiDiscrete([3 3 3 3 3])",
    ]
    shown = []
    for one, action in zip(played, (np.float32(0.5), 1), strict=True):
        lanes = one.lanes(1)
        lanes.reset(0)
        lanes.step((np.full((1, 5), action),) * 2)
        shown.append(lanes.observe(0))
    np.testing.assert_array_equal(*shown)


def test_an_environment_may_be_given_itself():
    env = pettingzoo.make("aec", "classic/connect_four_v3")
    lanes = external(env).lanes(2)  # of copies
    lanes.reset(0)
    lanes.step((np.array([0, 1]), np.zeros(2, np.int64)))
    assert lanes.observe(1).sum(axis=1).tolist() == [1, 1]
    with pytest.raises(AttributeError):
        _ = env.agents  # it was not touched
    with pytest.raises(ValueError, match="takes no parameters, got max_cycles"):
        external(env, max_cycles=3)


class HoldsALock(Sound):
    def __init__(self):
        super().__init__()
        self.lock = Lock()


def test_an_environment_that_cannot_be_copied_serves_one_lane():
    played = external(HoldsALock())
    lanes = played.lanes(1)
    lanes.reset(0)
    with pytest.raises(ValueError, match=r"cannot be copied .* give a factory"):
        played.lanes(1)
    lanes.close()
    played.lanes(1).reset(0)
    with pytest.raises(ValueError, match="give a factory"):
        played.lanes(2)


def test_an_external_environment_is_a_value():
    one, other = (external("mpe2.simple_tag_v3", max_cycles=5) for _ in range(2))
    assert isinstance(one, Playable)
    assert one == other == pickle.loads(pickle.dumps(one))
    assert len({one, other, pickle.loads(pickle.dumps(one))}) == 1
    assert one != external("mpe2.simple_tag_v3", max_cycles=6)
    assert one != external("mpe2.simple_tag_v3", "aec", max_cycles=5)
    assert one == external("mpe2.simple_tag_v3", workers=2, max_cycles=5)  # plays the same
    assert repr(one) == "external('mpe2.simple_tag_v3', max_cycles=5)"
    assert external(partial(Sound, render_mode="ansi")).make().render_mode == "ansi"
    assert external(Sound).make(render_mode="ansi").render_mode == "ansi"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            lambda: external("classic/conect_four_v3"),
            "registry 'classic/conect_four_v3'; did you mean 'classic/connect_fo",
        ),
        (lambda: external("classic/connect_four_v3", "parallel"), "parallel environment of PettingZoo's registry"),
        (lambda: external("mpe2.simple_tg_v3"), "module of mpe2 'simple_tg_v3'; did you mean 'simple_tag_v3'"),
        (lambda: external("mpe2.simple_tag_v3.foo"), "unknown module of mpe2.simple_tag_v3 'foo'"),
        (lambda: external("tests.games.broken_envs"), r"must have a function parallel_env or env; it has"),
        (lambda: external("tests.games.broken_envs:Sond"), "did you mean 'Sound'"),
        (
            lambda: external("mpe2.simple_tag_v3", max_cycle=3),
            "parameter of the environment 'max_cycle'; did you mean 'max_cy",
        ),
        (lambda: external("rps_v2", num_action=3), "did you mean 'num_actions'"),
        (
            lambda: external("no_such_package.env"),
            "there is no module no_such_package here",
        ),
        (lambda: external("pettingzoo:foo"), "unknown environment of PettingZoo 'foo'"),
        (lambda: external(3), "given by name, by a factory, or as .* got int"),
        (lambda: external(dict), "must be a PettingZoo ParallelEnv or AECEnv, got dict"),
        (lambda: external(Sound, "aec"), "must be a PettingZoo AECEnv, got Sound; .* parallel_to_aec"),
        (lambda: external(Sound, "parrallel"), "unknown api 'parrallel'; did you mean 'parallel'"),
        (lambda: external(Sound, images="kep"), "unknown images 'kep'; did you mean 'keep'"),
        (lambda: external(Sound, bins=1), "bins must be None or a whole number from 2 to 65536, got 1"),
        (lambda: external(Sound, bins=2**16 + 1), "from 2 to 65536, got 65537"),
        (lambda: external(Sound, timeout=3), "give workers as well, got timeout=3"),
        (lambda: external(Sound, workers=1, timeout="3"), "timeout must be None or seconds, more than 0, got '3'"),
        (lambda: external("classic/rps_v2", num_actions=2), r"cannot be made: classic/rps_v2 raised AssertionError"),
        (lambda: external("classic/go_v5", board_size=-1), r"cannot be made: classic/go_v5 raised ValueError"),
        (lambda: external("games:parallel_env"), r"cannot be made: games:parallel_env raised TypeError"),
        (lambda: external(HasNoName), r"HasNoName breaks the rule 'plays' .* raised ZeroDivisionError"),
        (lambda: external(CountsItsAgents), r"rule 'agents' .* raised TypeError"),
        (lambda: external(DoesNotClose), r"sound_v0 breaks the rule 'plays' .*close\(\) raised ZeroDivisionError"),
        (lambda: external(NothingToChoose), r"sound_v0, agent ann: an action space must have something to choose"),
        (lambda: external(Sound, max_steps=0), "max_steps must be None or a whole number, at least 1, got 0"),
        (lambda: external(Sound, workers=-1), "workers must be a whole number"),
        (lambda: external(Speaks), "sound_v0, agent ann: observations must be Box"),
        (lambda: external(Leaps), "sound_v0, agent ann: actions must be bounded"),
        (lambda: external(MasksLeaps), "sound_v0, agent ann: action masks are for discrete actions"),
        (lambda: games.parallel_env("connect_four"), "is somebody's environment, with an interface of its own"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(given, says):
    with pytest.raises(ValueError, match=says):
        given()


class Speaks(Sound):
    observation_box = Text(5)


class Leaps(Sound):
    actions = Box(-np.inf, np.inf, (2,))

    def info(self, agent):
        return {}


class HasNoName(Sound):
    def __str__(self):
        return str(1 / 0)


class CountsItsAgents(Sound):
    possible_agents = 3


class DoesNotClose(Sound):
    def close(self):
        raise ZeroDivisionError


class NothingToChoose(Leaps):
    actions = Dict({})


class MasksLeaps(Leaps):
    actions = Box(-1, 1, (2,))

    def info(self, agent):
        return {"action_mask": np.ones(2, np.int8)}


@pytest.mark.parametrize(
    ("name", "package"), [("pygame", "pygame-ce"), ("rlcard", "rlcard"), ("multi_agent_ale_py", "multi-agent-ale-py")]
)
def test_missing_packages_are_named_with_what_to_install(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "tests.games.needs", raising=False)
    module = {"pygame": "mpe2.simple_push.simple_push", "rlcard": "classic/leduc_holdem_v4"}.get(name, "atari/pong_v3")
    for loaded in [one for one in sys.modules if one.startswith("mpe2")]:
        monkeypatch.delitem(sys.modules, loaded)
    with pytest.raises(ValueError, match=f"needs {name}, which is not installed: pip install {package}$"):
        external(module)


def test_names_make_environments_where_no_game_of_ours_has_them():
    for name in ("connect_four", "connect_four_v3", "classic/connect_four_v3", "pettingzoo:classic/connect_four"):
        assert games.make(name).agents == ("player_0", "player_1")
    tag = games.make("mpe2.simple_tag_v3(max_cycles=25,num_good=2)")
    assert tag == external("mpe2.simple_tag_v3", max_cycles=25, num_good=2)
    assert games.make("tests.games.broken_envs:Sound", api="parallel").agents == ("ann", "bob")
    assert games.make("games.pong:Pong", points=2) == games.make("pong", points=2)
    with pytest.raises(ValueError, match="unknown game 'connect_fuor'; did you mean 'connect_four'"):
        games.make("connect_fuor")
    with pytest.raises(ValueError, match="max_cycles twice"):
        games.make("rps_v2(max_cycles=3)", max_cycles=4)


def test_modules_that_pettingzoo_calls_old_are_taken_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        external("pettingzoo.classic.rps_v2")


def test_an_environment_is_closed_with_its_lanes():
    class Closes(Sound):
        open = 0

        def __init__(self):
            super().__init__()
            Closes.open += 1

        def close(self):
            Closes.open -= 1

    lanes = external(Closes).lanes(3)
    assert Closes.open == 3
    lanes.close()
    assert Closes.open == 0


def test_the_mask_is_no_part_of_what_is_seen():
    class Shows(Sound):
        observation_box = Dict({"observation": Box(0, 1, (3,)), "action_mask": Box(0, 1, (3,), np.int8)})

        def seen(self, agent):
            return {"observation": super().seen(agent), "action_mask": super().info(agent)["action_mask"]}

        def info(self, agent):
            return {"action_mask": self.seen(agent)["action_mask"]} if self.time else {"action_mask": None}

    lanes = external(Shows).lanes(1)
    lanes.reset(0)
    assert lanes.observation_spaces[0] == Box(0, 1, (3,))
    assert lanes.legal(0)[0].tolist() == [[True, True, False]]
    assert isinstance(lanes.action_spaces[0], Discrete)
