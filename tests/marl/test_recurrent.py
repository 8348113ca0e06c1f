"""Recurrent networks against torch's and a loop over numbers; policies remember one episode each, in any lanes."""

import json
import math
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

import games
from games.game import factors
from games.lanes import GameLanes
from games.noise import Purpose
from games.play import play, play_mixture
from games.policies import Uniform
from games.versus import Cast, Versus
from marl.cells import CELLS
from marl.gaussian import GaussianPolicy
from marl.networks import Parameters, orthogonal_layers, policy_layers
from marl.policies import NeuralPolicy
from marl.policy_files import load_policy, save_policy
from marl.recurrent import RecurrentPolicy, backward, cell_name, fresh_memory, recurrent_core, step, unroll
from marl.workers import Processes, Unit

SPACES = [Discrete(5), MultiDiscrete([4, 2, 3]), Box(np.float32([-2, 0]), np.float32([2, 1]))]
KUHN = "openspiel:kuhn_poker"

every_cell = pytest.mark.parametrize("cell", CELLS)
every_torso = pytest.mark.parametrize("torso", [(), (6,), (6, 5)])


def some_core(cell, torso=(), features=4, units=8, seed=0):
    """With biases that matter."""
    generator = np.random.default_rng(seed)
    layers = recurrent_core((features,), torso, cell, units, 20, generator)
    return [(weight, bias + torch.tensor(generator.normal(size=bias.shape) / 3).float()) for weight, bias in layers]


def some_steps(core, steps=12, rows=7, share=0.2, seed=1):
    """Features, a memory that is not fresh, and starts of episodes."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(steps, rows, core[0][0].shape[1], generator=generator)
    memory = tuple(torch.randn(leaf.shape, generator=generator) for leaf in fresh_memory(core, rows))
    return features, memory, torch.rand(steps, rows, generator=generator) < share


def torch_outputs(cell, core, features, memory, starts):
    """[T, M, H] by torch.nn.LSTM and GRU, one step at a time, so that memories can be put back."""
    *torso, by_input, by_output = core
    names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
    weights = dict(zip(names, (*by_input, *by_output), strict=True))
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](by_input[0].shape[1], by_output[0].shape[1])
    outputs, now = [], tuple(leaf[None] for leaf in memory)
    for seen, start in zip(features, starts, strict=True):
        now = tuple(torch.where(start[None, :, None], 0.0, leaf) for leaf in now)
        for weight, bias in torso:
            seen = torch.relu(seen @ weight.T + bias)
        output, now = torch.func.functional_call(module, weights, (seen[None], now if cell == "lstm" else now[0]))
        now = now if cell == "lstm" else (now,)
        outputs.append(output[0])
    return torch.stack(outputs)


@every_cell
@every_torso
def test_outputs_and_gradients_are_those_of_torch(cell, torso):
    parameters = Parameters([some_core(cell, torso)], torch.device("cpu"))
    core, gradients = parameters.networks[0], parameters.gradients[0]
    steps = some_steps(core)
    leaves = [tuple(part.clone().requires_grad_() for part in pair) for pair in core]
    expected = torch_outputs(cell, leaves, *steps)
    trace = unroll(core, *steps)
    torch.testing.assert_close(trace.outputs.view_as(expected), expected)
    expected.square().sum().backward()
    backward(core, gradients, trace, 2 * trace.outputs)
    for pair, wanted in zip(gradients, leaves, strict=True):
        for part, leaf in zip(pair, wanted, strict=True):
            torch.testing.assert_close(part, leaf.grad, rtol=1e-4, atol=1e-4)


def sigmoid(number):
    return 1 / (1 + math.exp(-number))


def lstm_by_hand(products, recurrent, output, cell, units):
    """One row, number by number, as the textbook has it: c' = f c + i g, h' = o tanh(c')."""
    gates = [[products[gate * units + unit] for unit in range(units)] for gate in range(4)]
    for gate in range(4):
        for unit in range(units):
            weights, bias = recurrent[0][gate * units + unit], recurrent[1][gate * units + unit]
            gates[gate][unit] += bias + sum(weights[k] * output[k] for k in range(units))
    squashes = (sigmoid, sigmoid, math.tanh, sigmoid)
    i, f, g, o = ([squash(value) for value in row] for squash, row in zip(squashes, gates, strict=True))
    cell = [f[k] * cell[k] + i[k] * g[k] for k in range(units)]
    return [o[k] * math.tanh(cell[k]) for k in range(units)], cell


def gru_by_hand(products, recurrent, output, _, units):
    """h' = (1 - z) n + z h with n = tanh(W x + r (U h))."""
    dot = [recurrent[1][row] + sum(recurrent[0][row][k] * output[k] for k in range(units)) for row in range(3 * units)]
    r = [sigmoid(products[k] + dot[k]) for k in range(units)]
    z = [sigmoid(products[units + k] + dot[units + k]) for k in range(units)]
    n = [math.tanh(products[2 * units + k] + r[k] * dot[2 * units + k]) for k in range(units)]
    return [(1 - z[k]) * n[k] + z[k] * output[k] for k in range(units)], None


@pytest.mark.parametrize(("cell", "by_hand"), [("lstm", lstm_by_hand), ("gru", gru_by_hand)])
def test_a_loop_over_numbers_finds_the_same_outputs(cell, by_hand):
    core, units = some_core(cell, features=2, units=3), 3
    features, memory, starts = some_steps(core, steps=6, rows=2)
    trace = unroll(core, features, memory, starts)
    by_input, recurrent = ([part.double().tolist() for part in pair] for pair in core)
    for row in range(2):
        output, state = memory[0][row].tolist(), memory[-1][row].tolist()
        for index in range(6):
            if starts[index, row]:
                output, state = [0.0] * units, [0.0] * units
            seen = features[index, row].tolist()
            products = [
                bias + weights[0] * seen[0] + weights[1] * seen[1] for weights, bias in zip(*by_input, strict=True)
            ]
            output, state = by_hand(products, recurrent, output, state, units)
            assert trace.after[0][index, row].tolist() == pytest.approx(output, abs=1e-6)


@every_cell
def test_steps_one_by_one_are_the_unrolled_ones(cell):
    core = some_core(cell, (6,))
    features, memory, starts = some_steps(core, share=0.0)
    trace = unroll(core, features, memory, starts)
    for index, seen in enumerate(features):
        memory = step(core, seen, memory)
        for leaf, unrolled in zip(memory, trace.after, strict=True):
            torch.testing.assert_close(leaf, unrolled[index])


@every_cell
def test_memory_is_put_back_exactly_where_episodes_start(cell):
    """What comes after a start depends on nothing before it, not in the last bit; what comes without one does."""
    core = some_core(cell)
    features, memory, starts = some_steps(core, share=0.0)
    starts[5, ::2] = True
    first = unroll(core, features, memory, starts).after[0]
    other = unroll(core, features + (torch.arange(12) < 5)[:, None, None], memory, starts).after[0]
    assert torch.equal(first[5:, ::2], other[5:, ::2])
    assert (first[5:, 1::2] != other[5:, 1::2]).any(-1).all()
    assert torch.equal(first[5, ::2], unroll(core, features[5:], memory, starts[5:]).after[0][0, ::2])


@every_cell
def test_units_remember_for_one_to_span_steps_at_first(cell):
    """What is left of a memory of ones after 30 steps in which nothing happens."""
    left = []
    for span in (2, 200):
        core = recurrent_core((4,), (), cell, 64, span, np.random.default_rng(0))
        steps = torch.zeros(30, 1, 4)
        memory = tuple(leaf[None] for leaf in torch.ones(CELLS[cell].leaves, 64))
        trace = unroll([core[0], (0 * core[1][0], core[1][1])], steps, memory, torch.zeros(30, 1, dtype=torch.bool))
        left.append(trace.after[-1][-1].mean().item())
    assert left[0] < 1e-3
    assert left[1] > 0.5


@every_cell
def test_a_core_knows_its_cell(cell):
    core = some_core(cell, (6,))
    assert cell_name(core) == cell
    assert [leaf.shape for leaf in fresh_memory(core, 3)] == [(3, 8)] * CELLS[cell].leaves
    with pytest.raises(ValueError, match=r"ends in the two layers of a cell, lstm or gru, got weights \[\(6, 4\)\]"):
        cell_name(core[:1])
    with pytest.raises(ValueError, match="lstm or gru"):
        cell_name(orthogonal_layers((4, 8, 8), 1.0, np.random.default_rng(0)))


def some_policy(space, cell="lstm", torso=(), greedy=False, features=4):
    """Untrained, with weights large enough to have preferences."""
    generator = np.random.default_rng(7)
    if isinstance(space, Box):
        head = GaussianPolicy.of(orthogonal_layers((8, 2 * space.shape[0]), 3.0, generator), space, greedy)
    else:
        ((weight, bias),) = policy_layers(8, (), factors(space), generator)
        head = NeuralPolicy.of([(weight * 500, bias)], space, greedy)
    return RecurrentPolicy(some_core(cell, torso, features), head)


def some_batch(policy, space, rows=200):
    """Observations, masks, a memory of someone who has seen something, and noise."""
    generator = np.random.default_rng(3)
    masks = None
    if not isinstance(space, Box):
        masks = tuple(generator.random((rows, choices)) < 0.5 for choices in factors(space))
    memory = tuple(generator.normal(size=leaf.shape).astype(np.float32) for leaf in policy.start(rows))
    noise = generator.random((rows, policy.noise_size)).astype(np.float32)
    return generator.normal(size=(rows, 4)).astype(np.float32), masks, memory, noise


def equal(first, second):
    """Whether actions and memories are the same, bit for bit."""
    return all(map(np.array_equal, (first[0], *first[1]), (second[0], *second[1])))


@every_cell
@pytest.mark.parametrize("space", SPACES[:2], ids=str)
@pytest.mark.parametrize("greedy", [False, True])
def test_forbidden_actions_are_never_played(cell, space, greedy):
    policy = some_policy(space, cell, greedy=greedy)
    observation, legal, memory, noise = some_batch(policy, space)
    actions, _ = policy.act(observation, legal, memory, noise)
    for mask, column in zip(legal, actions.reshape(200, -1).T, strict=True):
        some = mask.any(axis=1)
        assert mask[some, column[some]].all()
        assert len(set(column)) > 1


@every_cell
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_numpy_and_torch_get_the_same_in_kind(cell, space):
    policy = some_policy(space, cell)
    observation, legal, memory, noise = some_batch(policy, space)
    for array in (observation, noise, *(legal or ()), *memory):
        array.setflags(write=False)
    actions, after = policy.act(observation, legal, memory, noise)
    masks = None if legal is None else tuple(map(torch.tensor, legal))
    same = policy.act(torch.tensor(observation), masks, tuple(map(torch.tensor, memory)), torch.tensor(noise))
    assert all(isinstance(array, np.ndarray) for array in (actions, *after))
    assert all(isinstance(array, torch.Tensor) for array in (same[0], *same[1]))
    assert actions.shape == (200, *space.shape)
    assert equal((actions, after), same)


@every_cell
@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("torso", [(), (6,)])
@pytest.mark.parametrize("way", ["files", "pickle", "device"])
def test_it_comes_back_bit_for_bit(cell, space, torso, way, tmp_path):
    policy = some_policy(space, cell, torso, greedy=bool(torso))
    if way == "files":
        save_policy(policy, tmp_path / "seat.0")
        again = load_policy(tmp_path / "seat.0")
    else:
        again = pickle.loads(pickle.dumps(policy)) if way == "pickle" else policy.to("cpu")
    assert repr(again) == repr(policy)
    batch = some_batch(policy, space)
    assert equal(policy.act(*batch), again.act(*batch))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"cell": "elman"}, "cell should be one of lstm, gru, got 'elman'"),
        ({"units": 9}, r"1\.weight should have shape \(36, 6\)"),
        ({"layers": []}, "layers should be at least 1 sizes"),
        ({"head": {}}, "policy should be of type str"),
        ({"head": {"policy": "Uniform", "fields": {"choices": [5], "flat": True}}}, "head does not fit"),
        ({"head": {"policy": "NeuralPolicy", "layers": [8, 4]}}, "choices"),
    ],
)
def test_malformed_files_are_named_with_the_key(change, complaint, tmp_path):
    save_policy(some_policy(SPACES[0], torso=(6,)), tmp_path / "broken")
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"broken.*{complaint}"):
        load_policy(tmp_path / "broken")


def test_heads_must_fit():
    core, generator = some_core("gru"), np.random.default_rng(0)
    for sizes in ((7, 5), (8, 8, 5)):
        head = NeuralPolicy.of(orthogonal_layers(sizes, 1.0, generator), Discrete(5))
        with pytest.raises(ValueError, match="one layer and 8 features"):
            RecurrentPolicy(core, head)
    with pytest.raises(ValueError, match="neural or Gaussian"):
        RecurrentPolicy(core, Uniform((5,), flat=True))


def guide():
    """An LSTM of two units, made by hand, that knows its way through the T-maze.

    The first one takes in the cue, 1 for left and -1 for right, and keeps it; the second one shows the junction.
    """
    by_input, bias = torch.zeros(8, 4), torch.zeros(8)  # rows: units 0 and 1 of the input, forget, candidate, output
    by_input[0, :2], bias[0] = 40.0, -20.0  # in with cues alone
    bias[1], bias[2], bias[3] = 20.0, 20.0, -20.0  # the first keeps all, the second nothing
    by_input[4, 0], by_input[4, 1], by_input[5, 3] = 5.0, -5.0, 5.0
    bias[6:] = 20.0
    weight = torch.tensor([[0.0, -9.0], [0.0, -20.0], [4.0, 9.0], [-4.0, 9.0]])
    head = NeuralPolicy.of([(weight, torch.tensor([5.0, -20.0, -5.0, -5.0]))], Discrete(4), greedy=True)
    return RecurrentPolicy([(by_input, bias), (torch.zeros(8, 2), torch.zeros(8))], head)


def judged(policy, unit):
    return play(games.make("t_maze", length=3), [[policy]], 40, 1, [unit]).returns


def test_a_memory_solves_the_t_maze_however_it_is_played():
    maze = games.make("t_maze", length=3)
    assert (judged(guide(), "alone") == maze.optimum).all()
    assert (play_mixture(maze, [[guide(), guide()]], np.array([0.5, 0.5]), 40, 1, "mixed").returns == 1).all()
    lanes = GameLanes(maze, 30)
    lanes.reset(0)
    cast = Cast(lanes, [[guide(), Uniform((4,), flat=True)]], np.array([0.6, 0.4]), [0])
    cast.start()
    guided = finished = 0
    for _ in range(100):  # episodes of 4 steps, and others of up to 16
        by_guide = cast.profile[:, 0] == 0
        outcome = lanes.step((cast.act()[0],))
        assert (outcome.rewards[outcome.done & by_guide] == 1).all()
        assert (outcome.rewards[~outcome.done & by_guide] == 0).all()
        guided, finished = guided + (outcome.done & by_guide).sum(), finished + outcome.done.sum()
        cast.recast(outcome.done)
    assert 100 < guided < finished


def test_other_processes_play_the_same():
    with Processes(1) as workers:
        told = dict(workers.run([Unit("there", partial(judged, guide(), "alone"))]))
    assert np.array_equal(told["there"], judged(guide(), "alone"))


def kuhn_mixture(number, put=np.asarray):
    """Kuhn poker as the first player sees it; the second is one of two memories, or plays uniformly."""
    game = games.make(KUHN)
    space, features = game.action_spaces[1], game.observation_spaces[1].shape[0]
    others = [some_policy(space, cell, features=features) for cell in CELLS] + [Uniform.of(space)]
    populations = [[Uniform.of(space)], others]
    return Versus(GameLanes(game, number, put=put), populations, np.array([[0.4, 0.4, 0.2]]), [0])


def moved(lanes):
    """What a step brings in which the learner plays at random."""
    uniform = Uniform.of(lanes.action_spaces[0])
    action, _ = uniform.act(None, lanes.legal(0), None, lanes.noise(Purpose.SEAT, uniform.noise_size))
    return lanes.step((action,))


def test_opponents_of_a_mixture_remember_their_own_episodes():
    """Each lane's memory is what its policy makes of its own steps in that lane's episode."""
    lanes, begun = kuhn_mixture(60), 0
    lanes.reset(3)
    players = lanes.cast.populations[1][:2]
    expected = [player.start(60) for player in players]
    for _ in range(12):
        profile, seen = lanes.cast.profile[:, 0], lanes.lanes.observe(1)
        for index, (player, memory) in enumerate(zip(players, expected, strict=True)):
            for lane in np.flatnonzero(profile == index):
                alone = tuple(leaf[[lane]] for leaf in memory)
                _, after = player.act(seen[[lane]], None, alone, np.zeros((1, 1), np.float32))
                for leaf, new in zip(memory, after, strict=True):
                    leaf[lane] = new
        done = moved(lanes).done
        begun += done.sum()
        found = iter(lanes.state_dict()["cast"]["memories"])
        for leaf in (leaf for memory in expected for leaf in memory):
            leaf[done] = 0
            np.testing.assert_allclose(next(found), leaf, atol=1e-5)
    assert begun > 120


@pytest.mark.parametrize("put", [np.asarray, torch.as_tensor])
def test_lanes_go_on_with_the_memories_of_their_opponents(put):
    straight, resumed = kuhn_mixture(60, put), kuhn_mixture(60, put)
    straight.reset(3)
    for _ in range(4):
        moved(straight)
    resumed.load_state_dict(straight.state_dict())
    for _ in range(5):
        assert all(map(np.array_equal, moved(resumed), moved(straight)))
    np.testing.assert_equal(resumed.state_dict(), straight.state_dict())
    assert any(memory.any() for memory in straight.state_dict()["cast"]["memories"])
