"""Exact values of games beside OpenSpiel's: `counterplay exact`, or `counterplay exact kuhn_poker "goofspiel(...)"`."""

from typing import Annotated

import tyro

from counterplay.screen import Screen, bare_table
from games.exact import zero_sum_equilibrium
from games.exact.agreement import GAMES, LONG, TOLERANCE, Agreement, agreement
from games.openspiel import openspiel
from games.tree import Tree

LARGEST_PROGRAM = 20_000
"""Legal actions of all information states for which the value's linear program is solved: Leduc poker has 2,184."""

HEADERS = ("game", "seats", "nodes", "states", "uniform play", "NashConv", "value", "apart", "ms", "OpenSpiel", "times")


def main(games: Annotated[tuple[str, ...], tyro.conf.Positional] = (), long: bool = False, seed: int = 0) -> int:
    """Returns, best responses and NashConv of uniform play and of two random policies, beside OpenSpiel's.

    Shown: what uniform play brings the first player, its NashConv, the game's value where it is of two players and
    zero-sum, the largest difference to OpenSpiel over all values of all three policies, and the times of one NashConv.
    The exit code is 1 where a difference is above 1e-9.

    Args:
        games: Game strings of OpenSpiel; nineteen of all kinds by default.
        long: Five more, liars_dice, tic_tac_toe and leduc_poker(players=3) among them, which take OpenSpiel from ten
            seconds to the better part of an hour.
        seed: Of the random policies.
    """
    if seed < 0:
        raise ValueError(f"a seed is a non-negative integer, got {seed}")
    names = games or (*GAMES, *(LONG if long else ()))
    screen, rows = Screen(), []
    for name in names:
        openspiel(name)  # all of them, before the first is solved
    for name in names:
        with screen.status(f"OpenSpiel's values of {name}"):
            rows.append(agreement(name, seed))
    screen.print(bare_table(HEADERS, [_row(found) for found in rows]))
    wrong = [found.game for found in rows if not found.apart <= TOLERANCE]
    worst = max(found.apart for found in rows)
    screen.print(
        f"{len(rows)} games, {len(wrong)} further than {TOLERANCE} from OpenSpiel; largest difference {worst:.1e}"
    )
    return int(bool(wrong))


def _row(found: Agreement) -> tuple[str, ...]:
    tree = found.tree
    return (
        found.game,
        str(tree.players),
        f"{tree.num_nodes:,}",
        f"{len(tree.keys):,}",
        f"{round(found.returns[0], 6) + 0.0:+.6f}",
        f"{found.nash_conv:.6f}",
        _value(tree),
        f"{found.apart:.0e}",
        f"{found.seconds * 1e3:.2f}",
        f"{found.reference_seconds:.3f} s",
        f"{found.reference_seconds / found.seconds:,.0f}",
    )


def _value(tree: Tree) -> str:
    if tree.players != 2 or tree.num_slots > LARGEST_PROGRAM:
        return ""
    try:
        return f"{round(zero_sum_equilibrium(tree).value, 12) + 0.0:+.12f}"
    except ValueError:  # general-sum
        return ""
