"""Trees of games: built by hand, and refused where they cannot be."""

import pickle

import numpy as np
import pytest

from games import exact, make
from games.tree import CHANCE, TERMINAL, Builder

CARDS = (("low", 0.25), ("high", 0.75))


def guessing(signals: bool) -> Builder:
    """Chance draws a card; the first player, who sees it, says one of two words; the second guesses the card.

    A right guess pays both players 1. Without `signals` the second player does not hear the word.
    """
    builder = Builder(2)
    builder.node(CHANCE, 0, 2)
    for card, (name, probability) in enumerate(CARDS):
        speaker = builder.node(0, 1, 2, probability)
        builder.inform(speaker, name, (3, 5))
        for word in "ab":
            listener = builder.node(1, 2, 2)
            builder.inform(listener, word if signals else "?", (0, 1))
            for guess in range(2):
                builder.pay(builder.node(TERMINAL, 3, 0), np.full(2, float(guess == card)))
    return builder


def test_nodes_come_level_by_level_and_know_their_own_moves():
    tree = guessing(signals=True).tree()
    assert (tree.players, tree.num_nodes, tree.num_slots, tree.num_actions) == (2, 15, 8, 6)
    assert tree.nodes.levels.tolist() == [0, 1, 3, 7, 15]
    assert tree.nodes.player.tolist() == [CHANCE, 0, 0, 1, 1, 1, 1] + [TERMINAL] * 8
    assert tree.parents.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert tree.keys == ("low", "high", "a", "b")
    assert tree.information.actions.tolist() == [3, 5, 3, 5, 0, 1, 0, 1]
    assert tree.last[:, 14].tolist() == [3, 7]  # the second word about the high card, the second guess after it
    assert tree.chance_reach[[1, 2, 14]].tolist() == [0.25, 0.75, 0.75]
    assert tree.depth_first[:6].tolist() == [0, 1, 3, 7, 8, 4]
    assert tree.rank[0].tolist() == [-1, -1, -1, 0, -1, 1]


def test_words_help_whoever_may_hear_them():
    """Guessing the likelier card pays 3/4; a word for each card pays 1 [by hand]."""
    heard, unheard = (guessing(signals).tree() for signals in (True, False))
    assert [response.value for response in exact.best_responses(unheard, exact.uniform(unheard))] == [0.5, 0.75]
    telling = np.array([1, 0, 0, 1, 1, 0, 0, 1.0])
    assert exact.expected_returns(heard, telling).tolist() == [1, 1]
    assert exact.nash_conv(heard, telling) == 0


def test_rewards_on_the_way_count():
    builder = Builder(1)
    for depth in range(3):
        node = builder.node(0, depth, 2)
        builder.inform(node, f"day {depth}", (0, 1))
        builder.pay(builder.node(TERMINAL, depth + 1, 0), np.array([10.0]))
        if depth == 2:
            builder.pay(builder.node(TERMINAL, 3, 0), np.array([12.0]))
        else:
            builder.pay(node, np.array([float(depth)]))
    # Days are won by waiting; whoever stops gets 10.
    tree = builder.tree()
    assert exact.best_responses(tree, exact.uniform(tree))[0].value == 13
    assert exact.expected_returns(tree, exact.uniform(tree)) == pytest.approx(
        [10 / 2 + (1 + 10) / 4 + (1 + 10 + 1 + 12) / 8]
    )


def forgetful() -> Builder:
    """A player moves twice, and cannot tell at the second move what the first one was."""
    builder = Builder(1)
    builder.inform(builder.node(0, 0, 2), "first", (0, 1))
    for first in range(2):
        builder.inform(builder.node(0, 1, 2), "second", (0, 1))
        for second in range(2):
            builder.pay(builder.node(TERMINAL, 2, 0), np.array([float(first == second)]))
    return builder


def test_players_who_forget_are_refused_or_reminded():
    with pytest.raises(ValueError, match=r"perfect recall, but player 0 forgets its own moves: .* 'second'"):
        forgetful().tree()
    reminded = forgetful().tree(remember=True)
    assert reminded.keys == ("first", "second", "second")
    assert exact.best_responses(reminded, exact.uniform(reminded))[0].value == 1


def test_a_name_has_the_same_legal_actions_everywhere():
    builder = Builder(1)
    builder.inform(builder.node(0, 0, 2), "here", (0, 1))
    with pytest.raises(ValueError, match=r"player 0 must have the same .* 'here', got \(0, 1\) and \(0, 2\)"):
        builder.inform(builder.node(0, 1, 2), "here", (0, 2))


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel(num_cards=3)", "leduc_poker", "sheriff"])
def test_information_states_come_in_the_order_of_own_moves(name):
    """What the sweeps rest on."""
    tree = make(f"openspiel:{name}").tree
    information, nodes = tree.information, tree.nodes
    moving = np.flatnonzero(nodes.player >= 0)
    assert (information.owner[nodes.information[moving]] == nodes.player[moving]).all()
    assert (tree.last[nodes.player[moving], moving] == information.parent[nodes.information[moving]]).all()
    assert (np.diff(nodes.first)[moving] == np.diff(information.offset)[nodes.information[moving]]).all()
    for depth, (begin, end) in enumerate(zip(information.levels[:-1], information.levels[1:], strict=True)):
        parents = information.parent[begin:end]
        assert (np.diff(parents) >= 0).all()
        if depth == 0:
            assert (parents == tree.num_slots).all()
        else:
            above = tree.state_of[parents]
            assert ((information.levels[depth - 1] <= above) & (above < begin)).all()
            assert (information.owner[above] == information.owner[begin:end]).all()


def test_trees_can_be_sent_to_workers():
    tree = make("openspiel:kuhn_poker").tree
    exact.nash_conv(tree, exact.uniform(tree))
    again = pickle.loads(pickle.dumps(tree))
    assert exact.nash_conv(again, exact.uniform(again)) == exact.nash_conv(tree, exact.uniform(tree))


def no_root(builder):
    pass


def child_missing(builder):
    builder.node(CHANCE, 0, 2)
    builder.node(TERMINAL, 1, 0, 1.0)


def chance_too_small(builder):
    builder.node(CHANCE, 0, 2)
    for _ in range(2):
        builder.node(TERMINAL, 1, 0, 0.3)


def too_deep(builder):
    builder.node(CHANCE, 0, 1)
    builder.node(TERMINAL, 7, 0)


def second_root(builder):
    builder.node(TERMINAL, 0, 0)
    builder.node(TERMINAL, 0, 0)


def uninformed(builder):
    builder.node(0, 0, 1)
    builder.node(TERMINAL, 1, 0)


def no_such_player(builder):
    builder.node(5, 0, 1)
    builder.node(TERMINAL, 1, 0)


def paid_twice(builder):
    for _ in range(2):
        builder.pay(builder.node(TERMINAL, 0, 0) if not len(builder) else 0, np.zeros(2))


def paid_one(builder):
    builder.pay(builder.node(TERMINAL, 0, 0), np.zeros(1))


@pytest.mark.parametrize(
    ("make_tree", "said"),
    [
        (no_root, "at least one node"),
        (child_missing, "node 0 lacks 1 of its children"),
        (chance_too_small, r"chance at node 0 must have probabilities of sum 1, got 0\.6"),
        (too_deep, "node 1 comes at depth 7, where depth 1 is to come"),
        (second_root, "node 1 comes at depth 0, where nothing more is to come"),
        (uninformed, r"node 0 of player 0 needs inform\(\)"),
        (no_such_player, "node 0 has player 5"),
        (paid_twice, "pays each of 2 players once"),
        (paid_one, r"got shape \(1,\)"),
    ],
)
def test_what_is_no_tree_is_refused(make_tree, said):
    def built():
        builder = Builder(2)
        make_tree(builder)
        return builder.tree()

    with pytest.raises(ValueError, match=said):
        built()
