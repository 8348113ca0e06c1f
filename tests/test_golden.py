"""Every golden case is held against something here."""

from importlib import import_module
from pathlib import Path

from tests.golden_cases import CASES, SELECTED

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = {"xdo-leduc-claim", "rl-masked-cartpole-negative"}
"""Sentences without a number that could be tested."""


def test_every_golden_case_is_tested() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "golden_cases" in path.read_text() and path != Path(__file__):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    wanted = {case["id"] for case in CASES} - CLAIMS
    assert not wanted - SELECTED
