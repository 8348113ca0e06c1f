"""Neural fictitious self-play: who meets whom, what is averaged, and how near to equilibrium that comes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from games import make
from games.exact import TabularPolicy, best_responses, part_of_mixture, tabulate, uniform
from games.lanes import GameLanes
from games.normal_form import rock_paper_scissors
from games.policies import Uniform
from marl.anticipation import Anticipation
from marl.exact import evaluate_exact, exact_gap
from marl.nfsp import Average
from marl.oracles import DQN, NFSP, PPO, RecurrentPPO
from marl.state_files import load_state, save_state
from tests.marl.small_games import Fixed

KUHN = make("openspiel:kuhn_poker")
LITTLE = DQN(steps=4096, num_lanes=32, horizon=8, gradient_steps=4, minibatch=64, learning_starts=512, hidden=(16,))
QUICK = NFSP(dqn=LITTLE, ppo=PPO(steps=4096, num_lanes=32, horizon=8, minibatches=2, hidden=(16,)), hidden=(16,))


def learner(settings, game, seed=0, **others):
    return settings.learner(GameLanes(game, settings.num_lanes), range(len(game.agents)), seed, **others)


def nash_conv(policies):
    populations = [[policy] for _, policy in sorted(policies.items())]
    payoffs = evaluate_exact(KUHN, populations)
    return exact_gap(KUHN, populations, payoffs, np.ones((1, 1))).total.value


def pure(player, choice):
    """Always makes its last legal choice, or its first."""
    states = KUHN.tree.states(player)
    offset = KUHN.tree.information.offset
    rows = [np.eye(size)[choice] for size in np.diff(offset)[states]]
    return TabularPolicy.of(KUHN, player, np.concatenate(rows))


class Played:
    """Lanes of rock, paper, scissors in which learners play rock, responses paper and averages scissors."""

    def __init__(self, lanes, eta):
        self.seen, self.chosen = [], []
        game = rock_paper_scissors()
        inner = GameLanes(game, lanes)
        step = inner.step

        def watched(actions):
            self.chosen.append(np.stack(actions, axis=1))
            return step(actions)

        inner.step = watched
        self.lanes = Anticipation(inner, eta, lambda *told: self.seen.append(told))
        self.lanes.responses = [Fixed((0, 1, 0))] * 2
        self.lanes.averages = [Fixed((0, 0, 1))] * 2
        self.lanes.reset(0, "train")

    def step(self):
        learns = self.lanes.acting
        self.seen.clear()
        self.lanes.step((np.zeros(self.lanes.num_lanes, np.int64),) * 2)
        return learns, self.chosen[-1]


def test_in_every_episode_one_seat_learns_and_the_others_anticipate():
    """The others' responses are played in a share eta of the episodes; 5 standard errors around it."""
    lanes, eta, steps = 500, 0.3, 40
    played, first, responses = Played(lanes, eta), 0, 0
    for _ in range(steps):
        learns, chosen = played.step()
        assert np.array_equal(learns.sum(axis=1), np.ones(lanes))
        assert (chosen[learns] == 0).all()
        others = chosen[~learns]
        assert set(np.unique(others)) <= {1, 2}
        first, responses = first + learns[:, 0].sum(), responses + (others == 1).sum()
    episodes = lanes * steps
    assert abs(first / episodes - 0.5) < 5 * np.sqrt(0.25 / episodes)
    assert abs(responses / episodes - eta) < 5 * np.sqrt(eta * (1 - eta) / episodes)


def test_returns_are_of_the_episodes_in_which_a_seat_learns():
    """Rock beats scissors there; what the others' averages earn does not count."""
    played = Played(100, 0.0)
    for _ in range(5):
        played.step()
    assert played.lanes.returns.mean()[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("eta", "plays"), [(0.0, 2), (1.0, 1)])
def test_at_the_ends_of_eta_the_others_always_play_one_of_both(eta, plays):
    learns, chosen = Played(50, eta).step()
    assert (chosen[~learns] == plays).all()


def test_what_is_remembered_is_what_responses_choose_where_their_seat_learns():
    played = Played(50, 0.3)
    learns, _ = played.step()
    for seat, (which, _, _, response, rows) in enumerate(played.seen):
        assert which == seat
        assert np.array_equal(rows, learns[:, seat])
        assert (response == 1).all()


def test_roles_last_for_an_episode():
    lanes = Anticipation(GameLanes(KUHN, 200), 0.5, lambda *told: None)
    lanes.responses = lanes.averages = [pure(0, 0), pure(1, 0)]
    lanes.reset(0, "train")
    for _ in range(20):
        learns = lanes.alive.copy()
        acting, outcome = lanes.acting, lanes.step(tuple(np.zeros(200, np.int64) for _ in range(2)))
        assert not (acting & ~learns).any()
        going_on = ~outcome.done
        assert np.array_equal(lanes.alive[going_on], learns[going_on])
    assert not np.array_equal(lanes.alive, learns)


@pytest.mark.parametrize("player", [0, 1])
def test_an_average_plays_like_drawing_a_response_before_the_game(player):
    """Kuhn's theorem: responses count in a state by how likely their own moves come there."""
    parts = [tabulate(KUHN, pure(player, choice), player) for choice in (0, -1)]
    mixed = part_of_mixture(KUHN.tree, player, parts, [0.25, 0.75])
    settings = replace(QUICK, dqn=replace(LITTLE, steps=32_768), minibatch=256)
    lanes = GameLanes(KUHN, 256)
    lanes.reset(0, "average")
    average = Average(settings, lanes, player, player, 0, "cpu", None)
    for round_ in range(8):
        anticipation = Anticipation(
            lanes,
            0.0,
            lambda seat, seen, legal, chosen, rows: (
                average.remember(seen, legal, chosen, rows) if seat == player else None
            ),
        )
        anticipation.averages = [Uniform.of(space) for space in KUHN.action_spaces]
        anticipation.responses = [pure(seat, 0 if round_ % 4 == 0 else -1) for seat in (0, 1)]
        anticipation.reset(round_, "average")
        for _ in range(12):
            anticipation.step(
                tuple(
                    anticipation.responses[seat].act(
                        lanes.observe(seat), lanes.legal(seat), None, np.zeros((256, 1), np.float32)
                    )[0]
                    for seat in (0, 1)
                )
            )
    for _ in range(100):
        average.improve(1e-2)
    found = tabulate(KUHN, average.policy(), player)
    assert np.abs(found - mixed).max() < 0.1


def test_supervised_steps_grow_with_the_reservoir():
    """Over a training, `coverage` draws of every decision, were the reservoir always as large as it is on average."""
    settings = replace(QUICK, minibatch=32, coverage=30.0)
    training, sizes = learner(settings, KUHN), []
    while not training.finished:
        sizes.append(training.update()["reservoir/0"])
    average = training.averages[0]
    assert average.steps == pytest.approx(settings.coverage * np.mean(sizes) / settings.minibatch, abs=len(sizes))
    assert average.steps > 2 * len(sizes)


@pytest.mark.parametrize("response", ["dqn", "ppo"])
@pytest.mark.parametrize("game", ["openspiel:kuhn_poker(players=3)", "bucket_brigade", "signaling"])
def test_it_goes_on_where_it_was_saved(response, game, tmp_path):
    """Three players and masks, four with factored actions, and unlike seats; both buffers among what is saved."""
    settings, rules = replace(QUICK, response=response), make(game)
    straight, resumed = learner(settings, rules, 3), learner(settings, rules, 3)
    for _ in range(3):
        straight.update()
    save_state(tmp_path / "state", straight.state_dict(), {})
    resumed.load_state_dict(load_state(tmp_path / "state"))
    for _ in range(2):
        np.testing.assert_equal(resumed.update(), straight.update())
    for seat, policy in straight.policies.items():
        for ours, theirs in zip(resumed.policies[seat].layers, policy.layers, strict=True):
            assert all(map(torch.equal, ours, theirs))


def test_policies_are_the_averages_and_stay_as_they_are():
    training = learner(QUICK, KUHN)
    training.update()
    before = {seat: tabulate(KUHN, policy, seat) for seat, policy in training.policies.items()}
    kept = training.policies
    for _ in range(8):
        training.update()
    assert all(np.array_equal(tabulate(KUHN, kept[seat], seat), part) for seat, part in before.items())
    assert any((tabulate(KUHN, training.policies[seat], seat) != part).any() for seat, part in before.items())
    for seat, policy in training.policies.items():
        part = tabulate(KUHN, policy, seat)
        assert ((part > 0) & (part < 1)).all()


def test_averages_start_from_policies():
    first = learner(QUICK, KUHN)
    for _ in range(4):
        first.update()
    second = learner(QUICK, KUHN, start=first.policies)
    for seat, policy in first.policies.items():
        assert np.array_equal(tabulate(KUHN, second.policies[seat], seat), tabulate(KUHN, policy, seat))


def test_losses_are_told_beside_that_of_who_knows_nothing():
    training = learner(QUICK, make("bucket_brigade"))
    for _ in range(6):
        told = training.update()
    for seat in range(4):
        assert told[f"average_uniform_loss/{seat}"] == pytest.approx(np.log(40), rel=1e-5)
        assert told[f"average_loss/{seat}"] < told[f"average_uniform_loss/{seat}"]


def test_weights_that_are_no_longer_finite_are_told():
    training = learner(QUICK, KUHN)
    training.update()
    training.averages[1].imitator.parameters.vector[0] = torch.nan
    with pytest.raises(FloatingPointError, match="seat 1 diverged in update 2, after 512 steps"):
        training.update()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"response": "sac"}, "unknown response 'sac'"),
        ({"dqn": PPO()}, "dqn must be settings of DQN"),
        ({"ppo": RecurrentPPO()}, "ppo must be settings of PPO"),
        ({"eta": 1.5}, "eta"),
        ({"coverage": 0.0}, r"coverage must be greater than 0 and at most 1e\+06, got 0.0"),
        ({"coverage": -1.0}, r"coverage must be greater than 0 and at most 1e\+06, got -1.0"),
        ({"learning_rate": float("nan")}, r"learning_rate must be greater than 0 and at most 1e\+06, got nan"),
        ({"coverage": 1e6, "minibatch": 1}, "supervised steps an update, of 1 of .* decisions each: at most"),
        ({"capacity": 0}, "capacity"),
        ({"hidden": (0,)}, "units"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        replace(QUICK, **settings)


def test_games_and_policies_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="NFSP averages choices, but"):
        learner(QUICK, make("pendulum"))
    with pytest.raises(ValueError, match="features"):
        learner(QUICK, KUHN, start={0: learner(QUICK, rock_paper_scissors()).policies[0]})


def test_it_comes_nearer_to_equilibrium_than_any_response():
    """Uniform play's NashConv in Kuhn poker is 0.917; a pure best response to it is no equilibrium either."""
    response = best_responses(KUHN.tree, uniform(KUHN.tree))
    pures = {seat: TabularPolicy.of(KUHN, seat, found.part) for seat, found in enumerate(response)}
    settings = NFSP(dqn=replace(NFSP().dqn, steps=60_000, learning_starts=2048))
    averages = settings.train(GameLanes(KUHN, settings.num_lanes), (0, 1), 0)
    assert nash_conv(averages) < 0.5 * min(0.917, nash_conv(pures))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_approaches_equilibrium(seed):
    settings = NFSP(dqn=replace(NFSP().dqn, steps=1_000_000))
    assert nash_conv(settings.train(GameLanes(KUHN, settings.num_lanes), (0, 1), seed)) <= 0.1


@pytest.mark.parametrize("game", ["openspiel:kuhn_poker", "bucket_brigade"])
def test_lanes_of_torch_train_alike(game):
    """Which is what those on a GPU are made of."""
    rules = make(game)
    of_torch = QUICK.learner(GameLanes(rules, 32, put=torch.as_tensor), range(len(rules.agents)), 3)
    np.testing.assert_equal(of_torch.update(), learner(QUICK, rules, 3).update())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("response", ["dqn", "ppo"])
def test_lanes_and_learner_may_live_on_cuda(response):
    rules = make("bucket_brigade")
    on_cuda = GameLanes(rules, 32, put=lambda array: torch.as_tensor(array, device="cuda"))
    training = replace(QUICK, response=response).learner(on_cuda, range(4), 3, device="cuda")
    told = [training.update() for _ in range(3)]
    assert all(np.isfinite(told[-1][f"average_loss/{seat}"]) for seat in range(4))
    assert training.policies[1].device.type == "cuda"
