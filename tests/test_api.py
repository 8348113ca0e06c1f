"""The list of the public interface is what the code has, and everything in it is explained."""

from importlib import import_module
from pathlib import Path

import pytest

from counterplay import api

ROOT = Path(__file__).parent.parent


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "api.md").read_text() == api.page(), "run make api"


@pytest.mark.parametrize("name", api.PUBLIC)
def test_everything_public_is_explained(name):
    module = import_module(name)
    assert module.__doc__
    for entry, value in api.entries(module).items():
        if not callable(value):  # a registry
            continue
        assert value.__doc__, entry
        assert not value.__doc__.startswith(entry + "("), f"{entry} has but the docstring that Python makes"


def test_no_sentence_of_the_page_breaks_off():
    for line in api.page().splitlines():
        assert not line.endswith(("et al.", "e.g.", ",", "1.", "..")), line
