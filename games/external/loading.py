"""PettingZoo environments by name: ids of its registry, modules, and functions in modules."""

import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import pettingzoo
from pettingzoo import AECEnv, ParallelEnv

from games.faults import FAULTS
from games.spelling import unknown

PREFIX = "pettingzoo:"
"""What names may begin with, to say that they are PettingZoo's."""

ENTRIES = {"parallel": "parallel_env", "aec": "env"}
"""What modules call their environments of both kinds."""

INSTALL = {
    "ale_py": "ale-py",
    "mpe2": "mpe2",
    "pygame": "pygame-ce",  # the maintained one
    "pyspiel": "open_spiel",
    "multi_agent_ale_py": "multi-agent-ale-py",
}
"""Module -> the package that has it: where the names differ, and of environments that are often asked for."""


def is_name(name: str) -> bool:
    """Whether a name is meant to be a PettingZoo environment's: one with a prefix, a path, or of its registry."""
    return bool(re.search(r"[./:]", name)) or name in short_ids()


def short_ids() -> dict[str, str]:
    """Names without namespace, with and without version -> id of PettingZoo's registry; newest versions last.

    Left out are names that two namespaces have, and games of ours.
    """
    found: dict[str, set[str]] = {}
    for spec in sorted({**pettingzoo.aec_registry, **pettingzoo.parallel_registry}.values(), key=_version):
        if spec.namespace != "counterplay":
            found.setdefault(f"{spec.name}_v{spec.version}", set()).add(spec.id)
            newest = {id_ for id_ in found.get(spec.name, set()) if not id_.startswith(f"{spec.namespace}/")}
            found[spec.name] = newest | {spec.id}
    return {name: next(iter(ids)) for name, ids in found.items() if len(ids) == 1}


def _version(spec: Any) -> int:
    return spec.version or 0


class NotMade(ValueError):
    """An environment cannot be made; what it raised is the `__cause__`."""


class Entry(NamedTuple):
    """What makes an environment, its name, and the module where it is at home, if that is known."""

    make: Callable[..., AECEnv | ParallelEnv]
    name: str
    home: ModuleType | None = None

    def __call__(self, params: dict[str, Any]) -> AECEnv | ParallelEnv:
        """An environment. Raises ValueError for parameters it lacks, with near matches where they are known, and from
        whatever it raises.
        """
        try:
            return self.make(**params)
        except NotMade:  # by a factory that has loaded it by name
            raise
        except FAULTS as error:
            found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            known = self._parameters() if found and found[1] in params else []
            if found and known and found[1] not in known:
                raise unknown("parameter of the environment", found[1], known) from error
            missing = error.name if isinstance(error, ImportError) else None  # some import what they need only now
            advice = f": {_pip(missing)}" if missing else ""
            raise NotMade(f"the environment cannot be made: {self.name} raised {error!r}{advice}") from error

    def _parameters(self) -> list[str]:
        """Names of parameters; where all are passed on, those of `raw_env`, as PettingZoo calls what is not wrapped."""
        for function in (self.make, getattr(self.home, "raw_env", None)):
            parameters = inspect.signature(function).parameters.values() if function else []
            if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
                return [parameter.name for parameter in parameters]
        return []


def load(name: str, api: str = "auto") -> Entry:
    """The environment called `name`; for `api` "auto" the Parallel one, where there are both.

    Raises ValueError, with near matches, for names that are unknown or have no such api, and with what to install for
    packages that are missing.
    """
    name = name.removeprefix(PREFIX).strip()
    if ":" in name:
        module_name, _, function = name.partition(":")
        module = imported(module_name)
        if not hasattr(module, function):
            raise unknown(f"name in {module_name}", function, _public(module))
        return Entry(getattr(module, function), name, module)
    if "/" in name or name in short_ids():
        return _registered(short_ids().get(name, name), api)
    if "." not in name:
        raise unknown("environment of PettingZoo", name, short_ids())
    module = imported(name)
    wanted = [entry for kind, entry in ENTRIES.items() if api in ("auto", kind)]
    for entry in wanted:
        if hasattr(module, entry):
            return Entry(getattr(module, entry), name, module)
    raise ValueError(f"{name} must have a function {' or '.join(wanted)}; it has {', '.join(_public(module))}")


def _registered(name: str, api: str) -> Entry:
    id_ = re.sub(r"_v(?=\d+$)", "-v", name)
    registries = {"parallel": pettingzoo.parallel_registry, "aec": pettingzoo.aec_registry}
    wanted = {kind: registry for kind, registry in registries.items() if api in ("auto", kind)}
    for kind, registry in wanted.items():
        versions = sorted((spec for spec in registry.values() if f"{spec.namespace}/{spec.name}" == id_), key=_version)
        spec = registry.get(id_) or (versions[-1] if versions else None)
        if spec is not None:
            # PettingZoo's own error names a whole extra, not the package that is missing.
            home = imported(spec.entry_point.partition(":")[0]) if isinstance(spec.entry_point, str) else None
            return Entry(partial(pettingzoo.make, kind, spec), name, home)
    there = {id_.replace("-v", "_v") for registry in wanted.values() for id_ in registry}
    raise unknown(f"{'' if api == 'auto' else api + ' '}environment of PettingZoo's registry", name, there)


def imported(name: str) -> Any:
    """The module. Raises ValueError with near matches, or with what to install."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
        warnings.filterwarnings("ignore", module="pygame|pkg_resources")
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing = error.name or name
            if missing != name and not name.startswith(f"{missing}."):
                raise ValueError(f"{name} needs {missing}, which is not installed: {_pip(missing)}") from error
        except ImportError as error:
            raise ValueError(f"{name} cannot be imported: {error}") from error
    parent, _, child = name.rpartition(".")
    if not parent or not _importable(parent):
        top = name.partition(".")[0]
        if _importable(top):
            return imported(parent)  # whose own parents say what they have
        if top in INSTALL:
            raise ValueError(f"{name} {f'needs {top}, which ' if name != top else ''}is not installed: {_pip(top)}")
        raise ValueError(
            f"there is no module {top} here: if it is yours, name its folder in PYTHONPATH; else install what has it"
        )
    raise unknown(f"module of {parent}", child, [found.name for found in pkgutil.iter_modules(_path(parent))])


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


def _path(package: str) -> Iterable[str]:
    return getattr(import_module(package), "__path__", [])


def _pip(module: str) -> str:
    return f"pip install {INSTALL.get(module.partition('.')[0], module.partition('.')[0])}"


def _public(module: Any) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]
