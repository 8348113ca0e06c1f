import pytest

from games.naming import parsed


@pytest.mark.parametrize(
    ("text", "name", "params"),
    [
        ("blotto", "blotto", {}),
        ("blotto()", "blotto", {}),
        ("blotto(soldiers=5, fields = 3)", "blotto", {"soldiers": 5, "fields": 3}),
        ("a.b:c(x=-1.5,y=[1,2],z=(True,None))", "a.b:c", {"x": -1.5, "y": [1, 2], "z": (True, None)}),
        ("g(scenario=rest_trap)", "g", {"scenario": "rest_trap"}),
        ("g(scenario='rest trap, (b=2)')", "g", {"scenario": "rest trap, (b=2)"}),
        ("g(f(a=1),b=2)", "g", {"game": "f(a=1)", "b": 2}),
        ("g('f:x',b=2)", "g", {"game": "f:x", "b": 2}),
        ("g(file=some-where/a.csv)", "g", {"file": "some-where/a.csv"}),
    ],
)
def test_names_carry_parameters(text, name, params):
    assert parsed(text) == (name, params)


@pytest.mark.parametrize(
    "text",
    [
        "g(",
        "g)(",
        "(a=1)",
        "g(1)",
        "g(a,b)",
        "g(a=1)(b=2)",
        "g(a=1",
        "g(**a)",
        "g(a=f(1))",
        "g(a=1/2)",
        "g(a=1,a=2)",
        "g(a=)",
    ],
)
def test_what_is_no_call_is_refused(text):
    with pytest.raises(ValueError, match=r"written name|by name, each once|a value is"):
        parsed(text)
