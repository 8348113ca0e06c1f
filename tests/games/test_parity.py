"""Published values of Bucket Brigade, reproduced with fresh episodes."""

import pytest

from games.bucket_brigade import SCENARIOS
from games.bucket_brigade.parity import PUBLISHED, UNITS, Comparison, compare, main

LONG = [  # episodes of hundreds of nights
    quantity
    for quantity in PUBLISHED
    if (quantity["rules"] == "engine" or quantity["scenario"] == "default_continuous") and quantity["max_nights"] > 100
]
SHORT = [quantity for quantity in PUBLISHED if quantity not in LONG]
OWN = [quantity for quantity in PUBLISHED if "fresh" in quantity]


def agrees(quantity: dict, episodes: int) -> None:
    row = compare(quantity, episodes, seed=0)
    assert row.ok, f"published {quantity['published']} ± {quantity['se']}, measured {row.measured} ± {row.se}"


@pytest.mark.parametrize("quantity", SHORT, ids=lambda quantity: quantity["quantity"])
def test_published_values(quantity):
    agrees(quantity, 2000)


@pytest.mark.papers
@pytest.mark.parametrize("quantity", LONG, ids=lambda quantity: quantity["quantity"])
def test_values_of_long_episodes(quantity):
    agrees(quantity, episodes=2000)


@pytest.mark.papers
@pytest.mark.parametrize("quantity", OWN, ids=lambda quantity: quantity["quantity"])
def test_values_that_need_their_own_number_of_episodes(quantity):
    agrees(quantity, quantity["fresh"])


def test_the_nash_payoffs_of_single_agents_average_to_their_profiles():
    for profile in ("FF|hero|hero|FF", "hero|FF|FF|FF"):
        rows = [row for row in PUBLISHED if row["quantity"].startswith(profile) and row.get("fresh")]
        means = [row["published"] for row in rows if row["unit"] == "mean agent per episode"]
        single = [row["published"] for row in rows if row["unit"] != "mean agent per episode"]
        assert means == pytest.approx([sum(single) / 4])


def test_every_scenario_has_a_value_and_every_value_a_source():
    assert {quantity["scenario"] for quantity in PUBLISHED} == set(SCENARIOS)
    assert all(quantity["source"] and quantity["se"] > 0 and quantity["unit"] in UNITS for quantity in PUBLISHED)
    assert len({quantity["quantity"] for quantity in PUBLISHED}) == len(PUBLISHED)


def test_the_command_reports_and_fails_where_a_value_disagrees(capsys, monkeypatch):
    assert main(episodes=200, only="random easy") == 0
    assert "2 values, 0 beyond" in capsys.readouterr().out
    wrong = PUBLISHED[0] | {"published": 0.0}
    assert not Comparison(wrong, 250.0, 1.0).ok
    monkeypatch.setattr("games.bucket_brigade.parity.PUBLISHED", [wrong])
    assert main(episodes=200) == 1
    assert "NO" in capsys.readouterr().out


def test_the_command_refuses_what_cannot_be(capsys):
    assert main(only="random esay") == 2
    assert "random easy" in capsys.readouterr().err
    assert main(episodes=1) == 2
    assert "at least 2 episodes" in capsys.readouterr().err
