"""Signalling games: what is heard when, and exact values beside other ways to find them."""

from ast import literal_eval
from itertools import islice, product

import numpy as np
import pyspiel
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from games import exact
from games.conformance import check_game
from games.game import Pictured
from games.lanes import GameLanes, tree_map
from games.openspiel import compiled
from games.play import play, states
from games.scripted import profile
from games.signaling import (
    Signaling,
    babbling,
    deviation_gains,
    information,
    is_equilibrium,
    optimal_profiles,
    optimum,
    policies,
    pooling,
    said,
    signalling_system,
    uniform_value,
    values,
)
from games.signaling.exact import babble
from tests.golden_cases import numbers, select

VARIANTS = {
    "many rounds": Signaling(states=2, rounds=3, memory=2, noise=0.3),
    "lasting": Signaling(rounds=3, lasting=True, delay=1, channel="shuffled", bias=0.1, actions=4),
    "many listeners": Signaling(listeners=2, length=2, silence=True, erasure=0.2, cost=0.1, prior=(0.5, 0.5, 0)),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_keep_every_rule_of_games(name):
    check_game(VARIANTS[name], lanes=2, steps=10, put=lambda array: torch.from_numpy(np.array(array)))


@pytest.mark.parametrize("case", select("lewis_signaling"))
def test_lewis_games(case):
    """[Lewis 1969; Huttegger 2007]; the case of more referents than messages."""
    given, wanted = dict(case["input"]), case["expected"]
    openspiels = given.pop("pyspiel", True)
    game, best = Signaling(**given), optimal_profiles(Signaling(**given))
    found = {"optimum": optimum(game), "n_optimal_profiles": best.number}
    found |= {"uniform_random": uniform_value(game), "babbling": babbling(game)}
    messages = len(game.medium.messages)
    found["n_profiles"] = messages**game.states * game.guesses**messages
    for name, value in wanted.items():
        assert found[name] == pytest.approx(float(numbers(value)), abs=case["tolerance"]), name
    assert best.value == pytest.approx(optimum(game), abs=case["tolerance"])
    if openspiels:
        eye = ",".join(map(str, np.eye(game.states, dtype=int).ravel()))
        sizes = {"num_states": game.states, "num_messages": game.messages, "payoffs": eye}
        tree = compiled(pyspiel.load_game("lewis_signaling", sizes), 1000)
        np.testing.assert_allclose(exact.expected_returns(tree, exact.uniform(tree)), uniform_value(game))
        for ours, theirs in zip(game.tree.nodes, tree.nodes, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@st.composite
def small_games(draw, **fixed):
    shares, sizes = st.sampled_from([0.0, 0.3]), st.integers(2, 3)
    parts = {"states": sizes, "messages": sizes, "actions": sizes, "listeners": st.integers(1, 2)}
    parts |= {"noise": shares, "erasure": shares, "cost": shares, "silence": st.booleans()}
    parts |= {"channel": st.sampled_from(["open", "open", "severed", "shuffled"])}
    chosen = {name: draw(part) for name, part in parts.items()} | fixed
    n, a = chosen["states"], chosen["actions"]
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    prior = generator.multinomial(10, np.ones(n) / n) / 10
    return Signaling(**chosen, prior=prior, payoffs=generator.integers(-3, 4, size=(2, n, a)))


def distributions(generator, *shape):
    return generator.dirichlet(np.ones(shape[1]), size=shape[0])


def in_tree(game, rule):
    """The strategy of the game tree that plays the distribution `rule(owner, what it knows)`."""
    tree = game.tree
    rows = [rule(owner, literal_eval(key)) for owner, key in zip(tree.information.owner, tree.keys, strict=True)]
    return np.concatenate(rows)


@given(small_games(), st.integers(0, 99))
def test_values_and_gains_are_those_of_the_game_tree(game, seed):
    generator, (messages, hearings) = np.random.default_rng(seed), game.medium.message_matrix.shape
    says, hears = distributions(generator, game.states, messages), distributions(generator, hearings, game.guesses)
    strategy = in_tree(game, lambda owner, knows: hears[knows["heard"][0]] if owner else says[knows["saw"][0]])
    roles = [0] + [1] * game.listeners
    np.testing.assert_allclose(exact.expected_returns(game.tree, strategy), values(game, says, hears)[roles], atol=1e-9)
    gains = deviation_gains(game, says, hears)[roles]
    np.testing.assert_allclose(exact.deviation_gains(game.tree, strategy), gains, atol=1e-9)


@given(small_games())
def test_babbling_is_an_equilibrium(game):
    strategies = babble(game)
    assert is_equilibrium(game, *strategies)
    assert pooling(game, strategies[0]) in ("pooling", "separating")  # if there is one referent only
    np.testing.assert_allclose(babbling(game), values(game, *strategies))


@given(small_games(messages=2, actions=2))
def test_the_optimum_is_the_best_of_all_pure_profiles(game):
    (messages, hearings), share = game.medium.message_matrix.shape, 1 / (1 + game.listeners)
    assume(game.guesses**hearings * messages**game.states <= 64)
    worths = []
    for says in product(np.eye(messages), repeat=game.states):
        for hears in product(np.eye(game.guesses), repeat=hearings):
            speaker, listener = values(game, says, hears)
            worths.append(share * speaker + (1 - share) * listener)
    assert optimum(game) == pytest.approx(max(worths))
    best = optimal_profiles(game)
    assert best.value == pytest.approx(max(worths))
    # Guesses at what can never be heard tell no profiles apart.
    unheard = (~game.medium.message_matrix.any(axis=0)).sum()
    assert best.number * game.guesses**unheard == np.isclose(worths, max(worths), rtol=0, atol=1e-9).sum()
    speaker, listener = values(game, np.eye(messages)[best.speaker], np.eye(game.guesses)[best.listener])
    assert share * speaker + (1 - share) * listener == pytest.approx(best.value)


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_a_lasting_referent_is_told_bit_by_bit(seed, delay):
    payoffs = np.random.default_rng(seed).normal(size=(4, 5))
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    game = Signaling(4, 2, 5, prior, payoffs, rounds=2 + delay, lasting=True, delay=delay)
    worths = []
    for plan in product(product(range(2), repeat=2), repeat=4):  # of every referent the two bits that are heard
        heard = [[()] * 4] * delay + [[bits[:number] for bits in plan] for number in (1, 2)]
        worths.append(sum(told(prior[:, None] * payoffs, row) for row in heard))
    assert optimum(game) == pytest.approx(max(worths))


def told(weights, heard):
    """What the best guesses earn where referents are known by what is heard."""
    cells = [[weights[i] for i, other in enumerate(heard) if other == one] for one in set(heard)]
    return sum(np.sum(cell, axis=0).max() for cell in cells)


def test_time_widens_a_bottleneck():
    lasting = [optimum(Signaling(16, 2, rounds=rounds, lasting=True)) for rounds in range(1, 6)]
    assert np.diff([0, *lasting]) == pytest.approx([1 / 8, 1 / 4, 1 / 2, 1, 1])
    assert optimum(Signaling(16, 2, rounds=4)) == pytest.approx(4 / 8)
    grid = {"states": 6, "messages": 2, "bias": 0.0, "lasting": True}  # is not known beforehand, but refines
    refined = np.diff([optimum(Signaling(rounds=rounds, **grid)) for rounds in (1, 2, 3, 4, 9)])
    assert refined[2:] == pytest.approx(0)  # all is told


def test_noise_wears_the_optimum_down_to_chance():
    found = [optimum(Signaling(noise=noise)) for noise in (0, 0.3, 0.6, 1)]
    assert found == pytest.approx([1, 0.8, 0.6, 1 / 3])
    assert optimum(Signaling(erasure=0.3)) == pytest.approx(0.7 + 0.3 / 3)
    for control in ("severed", "shuffled"):
        assert optimum(Signaling(channel=control)) == pytest.approx(1 / 3)
    # Silence is free: with two sounds and silence for three referents, the likeliest is passed over in silence.
    game = Signaling(silence=True, cost=0.1, prior=(0.6, 0.2, 0.2))
    assert optimum(game) == pytest.approx(1 - 0.4 * 0.1 / 2)
    assert optimal_profiles(game).speaker[0] == 0


def test_equilibria_of_lewis_games():
    """Signalling systems, partial pooling at 2/3, and pooling [Lewis 1969; Skyrms 2010, chapter 1]."""
    game, eye = Signaling(), np.eye(3)
    kinds = {}
    for maps in product(range(3), repeat=3):
        for guesses in product(range(3), repeat=3):
            says, hears = eye[list(maps)], eye[[0, *guesses]]
            if is_equilibrium(game, says, hears):
                kinds.setdefault(pooling(game, says), set()).add(round(3 * values(game, says, hears)[0], 9))
    assert kinds == {"separating": {3}, "partial pooling": {2}, "pooling": {1}}  # thirds


def test_a_likely_referent_makes_pooling_a_trap():
    """[Huttegger 2007]"""
    game = Signaling(2, 2, prior=(0.9, 0.1))
    says, hears = np.eye(2)[[0, 0]], np.eye(2)[[0, 0, 0]]
    assert is_equilibrium(game, says, hears)
    assert values(game, says, hears) == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(("bias", "most"), [(0.15, 3), (0.2, 2), (0.3, 2), (0.4, 1)])
def test_the_more_biased_the_less_is_told(bias, most):
    """[Crawford & Sobel 1982]: equilibria divide the referents, 1/3 apart, into fewer and fewer intervals."""
    game, eye, told_apart = Signaling(bias=bias), np.eye(3), set()
    for maps in product(range(3), repeat=3):
        for chosen in product(range(3), repeat=3):
            if is_equilibrium(game, eye[list(maps)], eye[[0, *chosen]]):
                told_apart.add(len({chosen[message] for message in maps}))
    assert max(told_apart) == most
    assert 1 in told_apart


def test_the_message_arrives_before_the_guess(xp):
    lanes = GameLanes(Signaling(states=4, messages=5), 64, put=xp.put)
    lanes.reset(0)
    zeros = xp.put(np.zeros(64, np.int64))
    referents = np.asarray(lanes.observe(0))[:, :4].argmax(axis=1)
    assert set(referents) == set(range(4))
    assert np.asarray(lanes.acting).tolist() == [[True, False]] * 64
    assert not np.asarray(lanes.observe(1))[:, :5].any()
    outcome = lanes.step((xp.put(referents + 1), zeros))
    assert not np.asarray(outcome.done).any()
    assert not np.asarray(outcome.rewards).any()
    assert np.asarray(lanes.acting).tolist() == [[False, True]] * 64
    heard = np.asarray(lanes.observe(1))[:, :5]
    np.testing.assert_array_equal(heard, np.eye(5)[referents + 1])
    outcome = lanes.step((zeros, xp.put(heard.argmax(axis=1) - 1)))
    assert np.asarray(outcome.terminated).all()
    assert (np.asarray(outcome.rewards) == 1).all()


@pytest.mark.parametrize("control", ["severed", "shuffled"])
def test_controls_tell_nothing(control):
    lanes = GameLanes(Signaling(channel=control), 3000)
    lanes.reset(0)
    referents = lanes.ended.referent
    lanes.step((referents, np.zeros(3000, np.int64)))
    counts = np.zeros((3, 4))
    np.add.at(counts, (referents, lanes.ended.line[:, 0, 0, 0]), 1)
    assert counts[:, 0].any() == (control == "severed")
    assert information(counts) < 0.01


def test_what_is_past_stays_visible():
    """Two referents, two messages, two guesses; three rounds."""
    shown = {False: [], True: []}
    for lasting, seen in shown.items():
        lanes = GameLanes(Signaling(2, 2, rounds=3, lasting=lasting), 1)
        lanes.reset(3)
        for said_, guess in ((0, 1), (1, 0)):
            lanes.step((np.array([said_]), np.array([0])))
            lanes.step((np.array([0]), np.array([guess])))
        referents = [int(referent) - 1 for referent in lanes.ended.truths[0]][:2]
        seen += [lanes.observe(0)[0].tolist(), lanes.observe(1)[0].tolist(), referents, int(lanes.ended.referent[0])]
    said_, heard, guesses = [0, 1, 1, 0], [0, 1, 1, 0, 0, 0], [1, 0, 0, 1]
    for lasting, (speaker, listener, referents, current) in shown.items():
        truths = [] if lasting else np.eye(2)[referents].ravel().tolist()
        left = np.float32(2 / 6)
        assert speaker == [*np.eye(2)[current], *said_, *truths, *guesses, left]
        assert listener == [*heard, *truths, *guesses, left]
    assert shown[True][2] == [shown[True][3]] * 2


def test_trees_of_several_rounds():
    for game in (Signaling(2, 2, rounds=2), Signaling(2, 2, rounds=2, lasting=True)):
        tree = game.tree
        np.testing.assert_allclose(exact.expected_returns(tree, exact.uniform(tree)), uniform_value(game))
        returns = play(game, [profile("uniform", game)], 2000, 0, ["play"]).returns
        assert returns.mean() == pytest.approx(uniform_value(game)[0], abs=0.1)
    # One bit for four referents, and once more: a listener who remembers knows.
    game = Signaling(4, 2, rounds=2, lasting=True)

    def by_bits(owner, knows):
        if owner == 0:
            return np.eye(2)[knows["saw"][0] >> len(knows["said"]) & 1]
        return np.eye(4)[sum(code - 1 << place for place, code in enumerate(knows["heard"]))]

    assert exact.expected_returns(game.tree, in_tree(game, by_bits)) == pytest.approx([1.5, 1.5])
    assert optimum(game) == pytest.approx(1.5)


@pytest.mark.parametrize("name", VARIANTS)
def test_profiles_earn_what_they_are_worth(name):
    game = VARIANTS[name]
    for profile_name in ("signalling_system", "babbling", "uniform"):
        returns = play(game, [profile(profile_name, game)], 4000, 0, [profile_name]).returns[0]
        worth = {"babbling": babbling, "uniform": uniform_value}.get(profile_name)
        if worth is None and game.lasting:
            continue
        wanted = worth(game) if worth else values(game, *signalling_system(game))
        error = returns.std(axis=0) / np.sqrt(len(returns))
        assert (abs(returns.mean(axis=0) - wanted[[0] + [1] * game.listeners]) <= 4 * error + 1e-6).all()


def test_information_is_mutual():
    game = Signaling(4, 4)
    for strategy, bits in ((np.eye(4), 2), (np.full((4, 4), 0.25), 0), (np.eye(4)[[0, 0, 1, 1]], 1)):
        assert information(game.referents[:, None] * strategy) == pytest.approx(bits)
        speaker, _ = policies(game, strategy, np.full((5, 4), 0.25))
        assert information(said(game, speaker, 5000, 0)) == pytest.approx(bits, abs=0.02)
    with pytest.raises(ValueError, match="table of joint"):
        information([[-1.0, 2.0]])


def test_a_batch_of_games_of_one_shape(xp):
    game = Signaling(2, 2)
    priors, pays = np.array([[1, 0], [0, 1]]), np.arange(16).reshape(2, 2, 2, 2)
    lanes = GameLanes(game, 2, game.params(prior=priors, payoffs=pays), put=xp.put)
    lanes.reset(0)
    moves = tuple(xp.put(np.array([0, 1])) for _ in range(2))
    lanes.step(moves)
    assert np.asarray(lanes.ended.referent).tolist() == [0, 1]
    assert np.asarray(lanes.step(moves).rewards).tolist() == [[0, 4], [11, 15]]


DRAWN = Signaling(rounds=2, listeners=2, noise=0.2)
*_, (PARAMS, STATE) = islice(states(DRAWN, profile("uniform", DRAWN), 0, "drawn"), 4)


def test_equal_states_give_equal_pictures_whatever_holds_them(xp):
    assert isinstance(DRAWN, Pictured)
    picture = DRAWN.frame(PARAMS, tree_map(np.copy, STATE))
    assert picture.shape == (480, 800, 3)
    assert picture.dtype == np.uint8
    np.testing.assert_array_equal(picture, DRAWN.frame(PARAMS, xp.freeze(tree_map(xp.put, STATE))))


@pytest.mark.parametrize("field", STATE._fields)
def test_everything_a_state_holds_can_be_seen(field):
    old = getattr(STATE, field)
    changed = STATE._replace(**{field: (old + 1) % 3 if field == "referent" else old % 3 + 1})
    assert (DRAWN.frame(PARAMS, changed) != DRAWN.frame(PARAMS, STATE)).any()


@pytest.mark.parametrize(
    "game", [Signaling(40, 40, rounds=12), Signaling(listeners=9, length=6, silence=True, channel="severed")]
)
def test_any_size_is_drawn_and_told(game):
    for params, state in states(game, profile("uniform", game), 0, "drawn"):
        assert game.describe(params, state)
        if int(state.step[0]) < 4 or game.terminated(params, state)[0]:
            assert game.frame(params, state).shape == (480, 800, 3)


def test_states_are_told_in_words():
    game = Signaling(length=2, erasure=1.0, rounds=2)
    told_ = [game.describe(*state) for state in states(game, profile("signalling_system", game), 0, "told")]
    assert told_[:3] == [
        "round 1 of 2: the speaker sees 1",
        "round 1 of 2: the speaker sees 1, says 0-1, heard as .-.",
        "round 1 of 2: guessed 0 of 1: +0, +0; the speaker sees 2 next",
    ]
    assert told_[4] == "round 2 of 2: guessed 0 of 2: +0, +0"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Signaling(states=0), "states must be a whole number of at least 1 and at most 4,096, got 0"),
        (lambda: Signaling(rounds=1.5), "rounds must be a whole number"),
        (lambda: Signaling(actions=0), "actions must be"),
        (lambda: Signaling(memory=2), "memory must be a whole number of at least 1 and at most 1, got 2"),
        (lambda: Signaling(prior=(0.5, 0.5)), "each of 3 referents"),
        (lambda: Signaling(prior=(0.5, 0.5, 0.5)), "sum to 1"),
        (lambda: Signaling(payoffs=np.ones((3, 2))), r"payoffs must be \[3, 3\] or \[2, 3, 3\], got shape \(3, 2\)"),
        (lambda: Signaling(payoffs=np.full((3, 3), np.nan)), "finite"),
        (lambda: Signaling(payoffs=np.ones((3, 3)), bias=0.1), "bias"),
        (lambda: Signaling(channel="sever"), "did you mean 'severed'"),
        (lambda: Signaling(noise=2), "noise must be a finite number"),
        (lambda: Signaling(messages=1, silence=True), "vocabulary must be"),
        (lambda: Signaling(delay=1), "a delay is for a lasting referent"),
        (lambda: Signaling(delay=2, rounds=2, lasting=True), "a delay is for a lasting referent"),
        (lambda: Signaling().params(prio=[1]), "did you mean 'prior'"),
        (lambda: Signaling(rounds=2, memory=1).tree, "memory of all 2 rounds"),
        (lambda: Signaling(9, 9, rounds=3).tree, "ends, more than"),
        (lambda: values(Signaling(), np.eye(3), np.eye(3)), r"a listener's strategy must be distributions \[4, 3\]"),
        (lambda: values(Signaling(rounds=2, lasting=True), np.eye(3), np.eye(4)[:, :3]), "do not suit a lasting"),
        (lambda: optimum(Signaling(10, 10, noise=0.1)), "too many to try"),
        (lambda: optimum(Signaling(20, 3, bias=0.1)), "can be divided in too many ways"),
        (lambda: optimum(Signaling(rounds=2, lasting=True, noise=0.1)), "exact and free channels only"),
        (lambda: optimum(Signaling(rounds=2, lasting=True, memory=1)), "who remember all 2 rounds"),
        (lambda: profile("babble", Signaling()), "did you mean 'babbling'"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
