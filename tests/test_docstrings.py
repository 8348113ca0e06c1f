"""Examples in docstrings give what they say."""

import doctest
import pkgutil
from importlib import import_module

import pytest

PACKAGES = ("analysis", "counterplay", "experiments", "games", "marl", "metasolvers")


def modules() -> list[str]:
    """Every module of every package, but for those that run when they are imported."""
    found = []
    for package in PACKAGES:
        root = import_module(package)
        found += [package, *(module.name for module in pkgutil.walk_packages(root.__path__, f"{package}."))]
    return [name for name in found if not name.endswith("__main__") and ".notebooks" not in name]


EXAMPLES = [
    example
    for name in modules()
    for example in doctest.DocTestFinder(exclude_empty=True).find(import_module(name), name)
    if example.examples
]


def test_the_packages_have_examples():
    assert {example.name.partition(".")[0] for example in EXAMPLES} >= {"games", "marl", "metasolvers"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_gives_what_it_says(example):
    assert doctest.DocTestRunner().run(example).failed == 0
