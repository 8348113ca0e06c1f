"""What is published about PSRO, and the command that checks it."""

import json
import tomllib

import numpy as np
import pytest
from matplotlib.testing.compare import compare_images

from games import exact
from papers.psro_2017.figures import picture
from papers.psro_2017.loops import GENERALISED, snapshots
from papers.psro_2017.reproduce import FIGURE, HERE, QUANTITIES, SOLVERS, Row, main, page, row, tree_game

DOCUMENT = tomllib.loads((HERE / "published.toml").read_text())
RESULTS = json.loads((HERE / "results.json").read_text())
QUICK = [claim for claim in DOCUMENT["claim"] if claim["game"] == "kuhn" and claim["iterations"] <= 20]
KUHN = tree_game("openspiel:kuhn_poker")


def committed():
    """The rows that README.md shows."""
    return [Row(**{name: value for name, value in found.items() if name != "ok"}) for found in RESULTS["claims"]]


@pytest.mark.parametrize("claim", QUICK, ids=lambda claim: f"{claim['quantity']}-{claim['meta_solver']}")
def test_claims_about_kuhn_poker(claim):
    found = row(DOCUMENT, claim)
    assert found.ok, found.cells()


@pytest.mark.parametrize("algorithm", GENERALISED)
def test_with_another_meta_solver_psro_is_another_algorithm(algorithm):
    wrong = {"fictitious play": "latest", "double oracle": "uniform", "iterated best response": "uniform"}[algorithm]
    assert GENERALISED[algorithm](KUHN.tree, list(snapshots(KUHN, wrong, 6))) > 0.05


@pytest.mark.parametrize("algorithm", GENERALISED)
def test_what_is_no_best_response_is_noticed(algorithm):
    solver = {solves: solver for solver, solves in SOLVERS.items()}[algorithm]
    run = list(snapshots(KUHN, solver, 3))
    parts, sigma = run[-1]
    other = [np.concatenate([own[:-1], 1 - own[-1:]]) for own in parts]  # the other action everywhere
    assert GENERALISED[algorithm](KUHN.tree, [*run[:-1], (other, sigma)]) > 0.05


def test_no_pure_strategies_of_kuhn_poker_are_nearer_to_an_equilibrium():
    pure = [exact.pure_plans(KUHN.tree, player).astype(float) for player in range(2)]
    first, second = (pure[0] @ (paid @ pure[1].T) for paid in exact.sequence_payoffs(KUHN.tree))
    gains = first.max(axis=0) - first + second.max(axis=1, keepdims=True) - second
    (claim,) = [claim for claim in DOCUMENT["claim"] if claim["quantity"] == "least_nash_conv"]
    assert gains.min() == pytest.approx(claim["published"], abs=1e-12)
    assert gains.shape == (27, 64)


def test_the_page_shows_the_results_of_the_claims_published():
    assert page(DOCUMENT, committed(), RESULTS["nash_conv"]) in (HERE / "README.md").read_text()
    assert all(found["ok"] for found in RESULTS["claims"])
    stated = [(claim["published"], claim["tolerance"], claim["kind"], claim["source"]) for claim in DOCUMENT["claim"]]
    assert stated == [(found.published, found.tolerance, found.kind, found.source) for found in committed()]
    assert {claim["source"] for claim in DOCUMENT["claim"]} == set(DOCUMENT["sources"])
    assert {claim["quantity"] for claim in DOCUMENT["claim"]} == set(QUANTITIES)


def test_the_figure_is_of_the_results():
    titles = {name: game["title"] for name, game in DOCUMENT["games"].items()}
    figure = picture(RESULTS["nash_conv"], titles, SOLVERS)
    assert [axis.get_title() for axis in figure.axes] == ["Kuhn poker", "Leduc poker"]
    for axis, curves in zip(figure.axes, RESULTS["nash_conv"].values(), strict=True):
        for line, (solver, values) in zip(axis.lines, curves.items(), strict=True):
            assert line.get_label() == f"{solver}: {SOLVERS[solver]}"
            drawn = {i: value for i, value in enumerate(values) if i > 0 and value >= 1e-3}
            assert dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) == drawn
    assert (HERE / FIGURE).stat().st_size < 60_000


def test_a_claim_that_does_not_hold_is_missed():
    (found, *_) = committed()
    assert not found._replace(ours=0.1).ok
    assert found._replace(ours=0.1, bound="below").ok
    assert not found._replace(ours=-0.1, bound="below").ok
    assert found._replace(ours=0.1).cells()[4] == "MISS"


@pytest.mark.parametrize(
    ("change", "message"),
    [({"quantity": "aparts"}, "did you mean 'apart'"), ({"algorithm": "double oracles"}, "'double oracle'")],
)
def test_misspelt_claims(change, message):
    with pytest.raises(ValueError, match=message):
        row(DOCUMENT, DOCUMENT["claim"][0] | change)


@pytest.mark.papers
def test_the_command_finds_what_is_committed(tmp_path, capsys):
    assert main(folder=tmp_path) == 0
    assert f"{len(DOCUMENT['claim'])} claims: 0 missed" in capsys.readouterr().out
    found = json.loads((tmp_path / "results.json").read_text())
    for game, curves in RESULTS["nash_conv"].items():
        for solver, values in curves.items():
            np.testing.assert_allclose(found["nash_conv"][game][solver][:10], values[:10], rtol=1e-4, atol=1e-6)
    assert compare_images(HERE / FIGURE, tmp_path / FIGURE, tol=10) is None
