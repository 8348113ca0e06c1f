"""Published values of Bucket Brigade, and values of other implementations, reproduced with fresh episodes."""

import pytest

from games.bucket_brigade import SCENARIOS
from games.bucket_brigade.parity import REFERENCES, UNITS, Comparison, compare, main, samples

LONG = [  # episodes of hundreds of nights
    quantity
    for quantity in REFERENCES
    if (quantity["rules"] == "engine" or quantity["scenario"] == "default_continuous") and quantity["max_nights"] > 100
]
SHORT = [quantity for quantity in REFERENCES if quantity not in LONG]
OWN = [quantity for quantity in REFERENCES if "fresh" in quantity]


def by_sample(rows: list[dict]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sample", samples(rows), ids=lambda sample: sample[0]["quantity"])


def agrees(sample: list[dict], episodes: int) -> None:
    for row in compare(sample, episodes, seed=0):
        reference, se = row.quantity["reference"], row.quantity["se"]
        assert row.ok, f"{row.quantity['quantity']}: reference {reference} ± {se}, ours {row.ours} ± {row.se}"


@pytest.mark.covered_elsewhere
@by_sample(SHORT)
def test_reference_values(sample):
    agrees(sample, 2000)


@pytest.mark.papers
@by_sample(LONG)
def test_values_of_long_episodes(sample):
    agrees(sample, 2000)


@pytest.mark.papers
@by_sample(OWN)
def test_values_that_need_their_own_number_of_episodes(sample):
    agrees(sample, sample[0]["fresh"])


def test_the_nash_payoffs_of_single_agents_average_to_their_profiles():
    of_agents = [rows for rows in samples(OWN) if any(row["unit"].startswith("agent") for row in rows)]
    assert len(of_agents) == 2
    for rows in of_agents:
        means = [row["reference"] for row in rows if row["unit"] == "mean agent per episode"]
        single = [row["reference"] for row in rows if row["unit"] != "mean agent per episode"]
        assert means == pytest.approx([sum(single) / 4])


def test_every_scenario_has_a_value_and_every_value_a_source():
    assert {quantity["scenario"] for quantity in REFERENCES} == set(SCENARIOS)
    assert all(quantity["source"] and quantity["se"] > 0 and quantity["unit"] in UNITS for quantity in REFERENCES)
    assert len({quantity["quantity"] for quantity in REFERENCES}) == len(REFERENCES)


def test_what_is_called_published_names_the_file_that_published_it():
    for quantity in REFERENCES:
        assert quantity["source"].endswith((".py", ".json")) == (quantity["kind"] == "published")
        assert quantity["kind"] in ("published", "measured")


def test_the_command_reports_and_fails_where_a_value_disagrees(capsys, monkeypatch):
    assert main(episodes=200, only="random easy") == 0
    told = capsys.readouterr().out
    assert "2 values, 0 beyond" in told
    assert "1 published, 1 measured" in told
    wrong = REFERENCES[0] | {"reference": 0.0}
    assert not Comparison(wrong, 250.0, 1.0).ok
    monkeypatch.setattr("games.bucket_brigade.parity.REFERENCES", [wrong])
    assert main(episodes=200) == 1
    assert "NO" in capsys.readouterr().out


@pytest.mark.covered_elsewhere
def test_what_is_left_out_changes_no_other_value(capsys, monkeypatch):
    rows = [quantity | {"fresh": 50} for quantity in OWN]
    monkeypatch.setattr("games.bucket_brigade.parity.REFERENCES", rows)
    main()
    table = capsys.readouterr().out
    main(only=rows[-1]["quantity"])
    assert capsys.readouterr().out.splitlines()[1] in table


def test_the_command_refuses_what_is_invalid(capsys):
    assert main(only="random esay") == 2
    assert "random easy" in capsys.readouterr().err
    assert main(episodes=1) == 2
    assert "at least 2 episodes" in capsys.readouterr().err
