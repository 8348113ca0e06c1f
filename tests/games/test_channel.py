"""Channels by themselves, and where games say that their messages are."""

import json
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import games
from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.layouts import LAYOUTS
from games.channel import CONTROLS, Channel, broadcast, one_hot
from games.conformance.kernels import KERNEL_RULES, Batch
from games.conformance.rules import Broken
from games.game import Talking
from games.lanes import GameLanes
from games.signaling import Signaling

TALKING = {name: games.make(name) for name in games.GAMES if isinstance(games.make(name), Talking)}
TALKING |= {
    f"bucket_brigade {layout} {two_phase}": BucketBrigade(
        "v2_minimal", observation=layout, two_phase=two_phase, num_agents=3, num_houses=4
    )
    for layout in LAYOUTS
    for two_phase in (False, True)
}
TALKING["signaling with two listeners"] = Signaling(listeners=2, length=2, silence=True, rounds=3, noise=0.1)


@pytest.mark.parametrize("name", TALKING)
def test_messages_are_where_channels_say(name):
    assert KERNEL_RULES["channels"](Batch(TALKING[name])) is None


class Misplaced(Signaling):
    """Its placement has `changed` fields."""

    changed: ClassVar[dict] = {}

    @property
    def channels(self):
        (placement,) = super().channels
        return (placement._replace(**self.changed),)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"factors": {1: (0,)}}, r"must be spoken by \(0,\)"),
        ({"factors": {0: (0, 1)}}, r"must be said by \(3,\) choices, got \(3, 0\)"),
        ({"columns": {1: {1: ((0, 3),)}}}, r"must be heard of \(0,\), got columns of \[1\]"),
        ({"columns": {1: {0: ((0, 2),)}}}, "in 3 columns a speaker"),
        ({"columns": {1: {0: ((0, 3), (2, 5))}}}, "in columns of its own"),
    ],
)
def test_messages_elsewhere_break_the_rule(changed, told, monkeypatch):
    monkeypatch.setattr(Misplaced, "changed", changed)
    with pytest.raises(Broken, match=told):
        KERNEL_RULES["channels"](Batch(Misplaced()))


def test_metadata_lists_channels_in_plain_values():
    for face in (games.parallel_env("signaling", length=2), games.env("signaling", length=2)):
        (told,) = face.metadata["channels"]
        assert json.loads(json.dumps(told)) == told
        assert told["speakers"] == {"speaker_0": [0, 1]}
        assert told["hearers"] == {"listener_0": {"speaker_0": [[0, 6]]}}
        assert (told["name"], told["vocabulary"], told["control"]) == ("message", 3, "open")
    told = games.parallel_env("bucket_brigade", two_phase=True).metadata["channels"]
    assert json.loads(json.dumps(told)) == told
    assert [channel["name"] for channel in told] == ["signals", "announced"]
    assert "channels" not in games.parallel_env("rock_paper_scissors").metadata


@pytest.mark.parametrize("two_phase", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bucket_brigades_bits_are_heard_where_it_says(layout, two_phase):
    game = TALKING[f"bucket_brigade {layout} {two_phase}"]
    lanes, generator = GameLanes(game, 16), np.random.default_rng(0)
    lanes.reset(0)
    last = {}
    for step in range(6):
        actions = tuple(generator.integers(space.nvec, size=(16, 3)) for space in game.action_spaces)
        # Nights of two phases announce first.
        last["announced" if two_phase and step % 2 == 0 else "signals"] = actions
        assert not lanes.step(actions).done.any()
        for placement in game.channels:
            channel = placement.channel
            for hearer, spans in placement.columns.items() if placement.name in last else ():
                said = [last[placement.name][seat][:, list(placement.factors[seat])] for seat in channel.speakers]
                noise = np.zeros((16, channel.noise_size), np.float32)
                line = channel.send(channel.table(), channel.start(noise), np.stack(said, axis=1), noise)
                heard, seen = channel.heard(line, hearer), lanes.observe(hearer)
                for place, copies in enumerate(spans.values()):
                    for start, stop in copies:
                        np.testing.assert_array_equal(seen[:, start:stop], heard[:, place : place + 1])


def channels(**fixed):
    """Channels from one speaker to one hearer."""
    share = st.sampled_from([0.0, 0.25, 0.6, 1.0])
    parts = {"vocabulary": st.integers(2, 4), "length": st.integers(1, 3), "silence": st.booleans(), "noise": share}
    parts |= {"erasure": share, "control": st.sampled_from(CONTROLS)}
    return st.builds(Channel, **parts | {name: st.just(value) for name, value in fixed.items()})


@given(channels(length=1))
def test_symbols_are_heard_as_often_as_the_matrix_says(channel):
    ticks = 2000
    uniforms = ((np.arange(ticks) + 0.5) / ticks).astype(np.float32)[:, None][:, : channel.noise_size]
    np.testing.assert_allclose(channel.matrix.sum(axis=1), 1)
    for symbol, row in enumerate(channel.matrix):
        codes = channel.transmit(channel.table(), np.full((ticks, 1, 1), symbol), uniforms)
        shares = np.bincount(codes.ravel(), minlength=len(row)) / ticks
        np.testing.assert_allclose(shares, row, atol=1 / ticks)
        assert not shares[row == 0].any()


@given(channels())
def test_messages_are_distorted_symbol_by_symbol(channel):
    says, hears = channel.messages, channel.hearings
    expected = np.prod(channel.matrix[says[:, None, :], hears[None, :, :]], axis=2)
    np.testing.assert_allclose(channel.message_matrix, expected, atol=1e-12)
    np.testing.assert_allclose(channel.message_costs, channel.costs(says[:, None])[:, 0])


def test_matrices_known_by_hand():
    np.testing.assert_allclose(Channel(noise=0.4, erasure=0.5).matrix, [[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]])
    np.testing.assert_allclose(Channel(silence=True, noise=0.4, erasure=0.5).matrix, [[0.9, 0.1], [0.6, 0.4]])
    assert Channel(noise=0.4, control="severed").matrix.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert Channel(noise=0.4, control="shuffled").matrix.tolist() == [[0, 0.5, 0.5], [0, 0.5, 0.5]]
    assert Channel(silence=True, control="shuffled").matrix.tolist() == [[0.5, 0.5], [0.5, 0.5]]


@given(st.integers(0, 3), st.integers(1, 3), st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_messages_come_late_and_stay(delay, memory, symbols):
    channel = Channel(vocabulary=3, delay=delay, memory=memory)
    noise = np.zeros((1, 0), np.float32)
    line = channel.start(noise)
    for number, symbol in enumerate(symbols, 1):
        line = channel.send(channel.table(), line, np.array([[[symbol]]]), noise)
        through = [symbols[place] + 1 for place in range(number - delay - 1, -1, -1)]
        wanted = (through + [0] * memory)[:memory]
        assert channel.codes(line)[0, 0, :, 0].tolist() == wanted
        np.testing.assert_array_equal(channel.heard(line, 1), one_hot(np.array([wanted]), 3))


def test_targeted_messages_reach_whom_they_are_for():
    channel = Channel({0: [1, 2], 2: [0]}, vocabulary=3, silence=True)
    assert channel.speakers == (0, 2)
    assert [channel.audible(seat) for seat in range(3)] == [(2,), (0,), (0,)]
    noise = np.zeros((2, 0), np.float32)
    line = channel.send(channel.table(), channel.start(noise), np.array([[[1], [2]], [[0], [1]]]), noise)
    assert channel.heard(line, 0).tolist() == [[0, 1], [1, 0]]
    assert channel.heard(line, 1).tolist() == channel.heard(line, 2).tolist() == [[1, 0], [0, 0]]
    everyone = Channel(broadcast([0, 2], range(3)), vocabulary=3, silence=True)
    line = everyone.send(everyone.table(), everyone.start(noise), np.array([[[1], [2]], [[0], [1]]]), noise)
    assert everyone.heard(line, 1).tolist() == [[1, 0, 0, 1], [0, 0, 1, 0]]
    assert [everyone.columns(seat) for seat in range(4)] == [4, 4, 4, 0]


def test_symbols_cost_and_silence_is_free():
    sent = np.array([[[0, 2]], [[0, 0]]])
    assert Channel(length=2, vocabulary=3, cost=0.5).costs(sent).tolist() == [[1], [1]]
    assert Channel(length=2, vocabulary=3, cost=0.5, silence=True).costs(sent).tolist() == [[0.5], [0]]


def test_lanes_may_have_tables_of_their_own(xp):
    clear, none = Channel(vocabulary=3, noise=0.2), Channel(vocabulary=3, noise=0.2, control="severed")
    tables, sent = np.concatenate([clear.table(), none.table()]), np.array([[[2]], [[2]]])
    noise = np.full((2, 1), 0.99, np.float32)
    put = (xp.freeze(xp.put(array)) for array in (tables, sent, noise))
    assert np.asarray(clear.transmit(*put)).tolist() == [[[3]], [[0]]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Channel(vocabulary=0), "vocabulary must be a whole number of at least 1 and at most"),
        (lambda: Channel(vocabulary=1, silence=True), "at least 2"),
        (lambda: Channel(length=1.5), "length must be a whole number"),
        (lambda: Channel(delay=-1), "delay"),
        (lambda: Channel(memory=0), "memory"),
        (lambda: Channel(noise=1.1), "noise must be a finite number of at least 0 and at most 1, got 1.1"),
        (lambda: Channel(erasure=float("nan")), "erasure must be a finite number"),
        (lambda: Channel(cost=-1), "cost must be a finite number of at least 0"),
        (lambda: Channel(control="suffled"), "did you mean 'shuffled'"),
        (lambda: Channel({}), "hearers must give"),
        (lambda: Channel({0: []}), "hearers must give"),
        (lambda: Channel([(0, (1,)), (0, (2,))]), "hearers must give"),
        (lambda: Channel(vocabulary=100, length=9).messages, "too many to list"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
