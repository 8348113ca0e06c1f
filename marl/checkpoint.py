"""Policies and snapshots on disk, equal bit for bit when read back.

Everything is a whole folder with a manifest (`marl.atomic`); policies are safetensors and JSON, tables are npz without
objects: nothing is ever unpickled.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from safetensors import SafetensorError

from games.game import Policy
from marl.atomic import MANIFEST, BrokenCheckpoint, digest, read_json, to_json, verify, whole_folder, write_atomic
from marl.exact import ExactTable
from marl.policy_files import load_policy, save_policy
from marl.population import PayoffTable
from marl.psro import Payoffs, Snapshot
from marl.shared import SharedTable
from metasolvers import check_payoffs, check_sigma

TABLES: tuple[type[Payoffs], ...] = (SharedTable, PayoffTable, ExactTable)
"""The kinds of payoff tables; a file holds the first one whose fields are all there."""


class Stored(NamedTuple):
    """A finished best response: the policy, and what its learner reported on the way."""

    policy: Policy
    curve: list[dict[str, float]]


class PolicyStore:
    """Policies by the name of the unit of work that made them, e.g. `train/2/0`; one folder each."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __contains__(self, unit: str) -> bool:
        return self.path(unit).exists()

    def path(self, unit: str) -> Path:
        return self.folder / unit.replace("/", "-")

    def save(self, unit: str, policy: Policy, curve: list[dict[str, float]]) -> None:
        """Raises OSError where the disk refuses, a full one included."""
        with whole_folder(self.path(unit)) as folder:
            try:
                save_policy(policy, folder / "policy")
            except SafetensorError as error:
                raise OSError(f"cannot write {self.path(unit)}: {error}") from error
            write_atomic(folder / "curve.json", to_json(curve))

    def load(self, unit: str) -> Stored:
        """Raises BrokenCheckpoint for a policy that is missing or not as it was saved."""
        folder = self.path(unit)
        verify(folder)
        return Stored(load_policy(folder / "policy"), read_json(folder / "curve.json"))

    def seal(self, unit: str) -> str:
        """sha256 of the manifest of a stored policy, and so of everything in it."""
        return digest(self.path(unit) / MANIFEST)


def save_snapshot(
    folder: Path, snapshot: Snapshot, units: list[list[str]], store: PolicyStore, files: dict[str, bytes]
) -> None:
    """Write one iteration to `folder`/0007: payoffs.npz (table and sigma), snapshot.json, and `files`.

    `units[player]` names the unit in `store` of each of the player's policies.
    """
    with whole_folder(snapshot_path(folder, snapshot.iteration)) as path:
        table = snapshot.payoffs
        # What is no field of the table follows from them: it is there for whoever reads the file without this package.
        arrays: dict[str, Any] = {name: getattr(table, name) for name in ("mean", "standard_error", "episodes")}
        arrays |= {"sigma": snapshot.sigma} | table._asdict()
        np.savez(path / "payoffs.npz", **arrays)
        policies = [[{"unit": unit, "sha256": store.seal(unit)} for unit in names] for names in units]
        write_atomic(path / "snapshot.json", to_json({"iteration": snapshot.iteration, "policies": policies}))
        for name, data in files.items():
            write_atomic(path / name, data)


def load_snapshot(folder: Path, iteration: int, store: PolicyStore) -> Snapshot:
    """The snapshot of one iteration. Raises BrokenCheckpoint where anything of it is not as it was written."""
    path = snapshot_path(folder, iteration)
    verify(path)
    try:
        policies = read_json(path / "snapshot.json")["policies"]
        units = {stored["unit"]: stored for population in policies for stored in population}
        loaded = {unit: _measured(stored, store) for unit, stored in units.items()}
        populations = [[loaded[stored["unit"]] for stored in population] for population in policies]
        with open(path / "payoffs.npz", "rb") as file, np.load(file, allow_pickle=False) as arrays:
            table = _table(arrays)
            sigma = check_sigma(arrays["sigma"], check_payoffs(table.mean))
        if sigma.shape != tuple(len(population) for population in populations):
            raise ValueError(f"a table of {sigma.shape} policies")
    except BrokenCheckpoint:
        raise
    except (KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
        raise BrokenCheckpoint(f"{path} is not as this version writes it ({error}): use the one that did") from error
    return Snapshot(iteration, populations, table, sigma)


def snapshot_units(folder: Path, iteration: int) -> list[list[str]]:
    """By player, the units of its policies, in the snapshot of an iteration that `load_snapshot` reads."""
    policies = read_json(snapshot_path(folder, iteration) / "snapshot.json")["policies"]
    return [[stored["unit"] for stored in population] for population in policies]


def _table(arrays: Mapping[str, np.ndarray]) -> Payoffs:
    """Of the first kind in TABLES whose fields are all there. Raises ValueError, or KeyError, for a part of a table.

    Played payoffs that lost an array would look exact, but for their episodes.
    """
    for kind in TABLES:
        if all(name in arrays for name in kind._fields):
            table = kind(*(arrays[name] for name in kind._fields))
            if not np.array_equal(table.episodes, arrays["episodes"]):
                raise ValueError(f"payoffs.npz lacks arrays of payoffs that were played, it has {', '.join(arrays)}")
            return table
    raise ValueError(f"payoffs.npz lacks arrays of payoffs, it has {', '.join(arrays)}")


def _measured(stored: dict[str, str], store: PolicyStore) -> Policy:
    unit, path = stored["unit"], store.path(stored["unit"])
    if unit not in store:
        raise BrokenCheckpoint(f"{path} is missing: restore it from a copy of the run, or start a new run")
    policy = store.load(unit).policy
    if store.seal(unit) != stored["sha256"]:
        raise BrokenCheckpoint(f"{path} is not the policy that the payoffs were measured with")
    return policy


def finished_iterations(folder: Path) -> int:
    """How many snapshots 0, 1, ... are there. Raises BrokenCheckpoint for a gap in them."""
    found = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.exists() else []
    expected = [snapshot_path(folder, iteration).name for iteration in range(len(found))]
    if found != expected:
        raise BrokenCheckpoint(f"{folder} should hold {', '.join(expected)}, got {', '.join(found)}")
    return len(found)


def snapshot_path(folder: Path, iteration: int) -> Path:
    return folder / f"{iteration:04d}"
