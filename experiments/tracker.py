"""Where metrics go while a run is going: its metrics.jsonl, and TensorBoard where it is installed."""

import shutil
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from experiments.run import RunFolder


class Tracker(Protocol):
    """Takes metrics, each a flat dict with `metric`, `value`, and `iteration`, `player`, `step` where they apply."""

    def write(self, rows: list[dict]) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish writing."""


class JsonLines:
    """All rows so far in `metrics.jsonl`."""

    def __init__(self, run: RunFolder):
        self.run, self.rows = run, list[dict]()

    def write(self, rows: list[dict]) -> None:
        self.rows += rows
        self.run.write_lines("metrics.jsonl", self.rows)

    def close(self) -> None:
        pass


def _without_trace(raised: threading.ExceptHookArgs) -> None:
    """The events' writing thread meets a full disk as everyone does, and need not say so again."""
    if not isinstance(raised.exc_value, OSError):
        threading.__excepthook__(raised)


class TensorBoard:
    """Event files; written afresh by every process, so that a resumed run holds no iteration twice."""

    def __init__(self, folder: Path):
        from torch.utils.tensorboard import SummaryWriter

        threading.excepthook = _without_trace
        shutil.rmtree(folder, ignore_errors=True)
        self.writer = SummaryWriter(str(folder))

    def write(self, rows: list[dict]) -> None:
        for row in rows:
            # A learner's curve is one chart per iteration and player; other metrics run over the iterations.
            learning = f"/{row['iteration']}" if {"step", "iteration"} <= row.keys() else ""
            player = f"/player_{row['player']}" if "player" in row else ""
            player += "".join(f"/{part}_{row[part]}" for part in ("response", "level") if part in row)
            play = f"/{row['play']}" if "play" in row else ""
            step = row.get("step", row.get("iteration"))
            self.writer.add_scalar(row["metric"] + learning + player + play, row["value"], step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


def trackers(run: RunFolder) -> list[Tracker]:
    """metrics.jsonl, and TensorBoard's events where the package is installed."""
    found: list[Tracker] = [JsonLines(run)]
    if find_spec("tensorboard"):
        found.append(TensorBoard(run.path / "events"))
    return found
