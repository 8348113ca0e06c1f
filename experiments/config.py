"""What a run of PSRO is asked for."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

from marl.oracles.ppo import PPO

if TYPE_CHECKING:
    from games.game import Game, Playable


class Recorded(Protocol):
    """The options of a command that makes runs: a frozen dataclass, that explains them to its users."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    command: ClassVar[str]
    """Its name, after `counterplay`."""
    plays: ClassVar[str]
    """The games it plays."""
    extendable: ClassVar[tuple[str, ...]]
    """Options that may change when a run is gone on with."""

    @property
    def oracle(self) -> str:
        """Name of what trains, among `marl.oracles.ORACLES`."""

    @property
    def resume(self) -> bool: ...

    @property
    def folder(self) -> Path:
        """Where the run is, or will be."""

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of the files that options name and results depend on, by path."""

    def make_game(self) -> "Game | Playable":
        """The game that is played. Raises ValueError for one that there is not."""

    def played_as(self) -> str:
        """What is played, as it stands in the names of runs."""


class Config(Recorded, Protocol):
    """The options that all commands that run PSRO have."""

    further: ClassVar[tuple[str, ...]]
    """Commands to look at a finished run with, beside those for any run."""

    @property
    def iterations(self) -> int: ...
    @property
    def reward(self) -> Literal["own", "team"]: ...
    @property
    def warm_start(self) -> bool: ...
    @property
    def ppo(self) -> PPO: ...
    @property
    def meta_solver(self) -> str: ...
    @property
    def pipeline(self) -> int: ...
    @property
    def stop_at(self) -> float | None: ...
    @property
    def patience(self) -> int | None: ...
    @property
    def max_minutes(self) -> float | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def smoke(self) -> bool: ...

    def headline(self, iteration: int, responses: str | None) -> list[str]:
        """What was measured in the end, and how; `responses` tells how those were trained that the gap is from."""


Configured = TypeVar("Configured", bound=Config)
R = TypeVar("R", bound=Recorded)
