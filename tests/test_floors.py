"""Who may import whom."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BELOW = {
    "games": set(),
    "metasolvers": set(),
    "marl": {"games", "metasolvers"},
    "analysis": {"metasolvers"},
    "experiments": {"games", "metasolvers", "marl", "analysis"},
    "counterplay": {"games", "metasolvers", "marl", "analysis", "experiments"},
    "papers": {"games", "metasolvers", "marl", "analysis", "experiments"},
}
WITHOUT_TORCH = {"games", "metasolvers", "analysis"}


def imported(path: Path) -> set[str]:
    """Top-level names of everything a file imports, at module level or inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("floor", BELOW)
def test_imports_go_down(floor):
    for path in (ROOT / floor).rglob("*.py"):
        above = imported(path) & (set(BELOW) - BELOW[floor] - {floor})
        assert not above, f"{path.relative_to(ROOT)} imports {above}, which its floor may not"
        if floor in WITHOUT_TORCH:
            assert "torch" not in imported(path), f"{path.relative_to(ROOT)} imports torch"
