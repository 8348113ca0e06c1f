"""Films of pictures: a GIF or MP4 from frames."""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
from gymnasium.error import DependencyNotInstalled
from PIL import Image

HOLD = 2.0
"""Seconds that the last picture stands."""
COLOURS = 256
SAMPLES = 6
"""Pictures that a GIF's palette is taken from."""

Frames = Iterable[np.ndarray]


def save(frames: Frames, path: str | os.PathLike, fps: float = 2.0) -> None:
    """Write pictures [height, width, 3] uint8 of one size as a film, a .gif that loops or an .mp4.

    The file is there as a whole or not at all; a .gif's pictures are held in memory until then.
    Raises ValueError for another suffix, for no pictures or others than these and for fps out of [0.1, 100], OSError
    where the file cannot be written, gymnasium's DependencyNotInstalled for .mp4 without imageio-ffmpeg.
    """
    path = Path(path)
    writer = writer_for(path)
    check_fps(fps)
    frames = _checked(frames)
    first = next(frames, None)
    if first is None:
        raise ValueError(f"a film needs at least one picture, got none for {path}")
    with _whole(path) as temporary:
        writer(chain([first], frames), temporary, fps)


def check_fps(fps: float) -> None:
    """Raises ValueError for a pace that is none, or too slow or too fast to follow."""
    if not 0.1 <= fps <= 100:
        raise ValueError(f"fps must lie in [0.1, 100], got {fps}")


def _checked(frames: Frames) -> Iterator[np.ndarray]:
    """The pictures. Raises ValueError at the first that is none, or of another size than the first of all."""
    size = None
    for frame in frames:
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise ValueError(f"pictures must be uint8 [height, width, 3], got {frame.dtype} {list(frame.shape)}")
        size = size or frame.shape
        if frame.shape != size:
            raise ValueError(f"a film's pictures must be of one size, got {list(size)} and {list(frame.shape)}")
        yield frame


def writer_for(path: Path) -> Callable[[Frames, Path, float], None]:
    """What writes films of the path's suffix; raises as `save` does where there can be no such file."""
    if path.suffix not in WRITERS:
        raise ValueError(f"a film's name must end in {' or '.join(WRITERS)}, got {path.name!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to save {path.name} in")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: save the film under another name")
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise OSError(f"{path.name} cannot be saved in {path.parent}: {error.strerror}") from None
    if path.suffix == ".mp4":
        _ffmpeg()
    return WRITERS[path.suffix]


def _save_gif(frames: Frames, path: Path, fps: float) -> None:
    # One palette for all, and no dithering: what stays the same costs nothing.
    images = [Image.fromarray(frame) for frame in frames]
    palette = _montage(images[:: max(1, len(images) // SAMPLES)]).quantize(COLOURS)
    images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    stands = round(1000 / fps)
    durations = [stands] * (len(images) - 1) + [max(stands, round(1000 * HOLD))]
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)


def _montage(images: list[Image.Image]) -> Image.Image:
    """All pictures in one."""
    return Image.fromarray(np.concatenate([np.asarray(image) for image in images]))


def _save_mp4(frames: Frames, path: Path, fps: float) -> None:
    frames = iter(frames)
    first = next(frames)
    pictures = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{first.shape[1]}x{first.shape[0]}", "-r", f"{fps:g}"]
    # Video players want even sides.
    shown = f"pad=ceil(iw/2)*2:ceil(ih/2)*2,tpad=stop_mode=clone:stop_duration={max(0.0, HOLD - 1 / fps)}"
    film = ["-vf", shown, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(path)]
    command = [_ffmpeg(), "-y", "-v", "error", *pictures, "-i", "-", *film]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            for frame in chain([first], frames):
                process.stdin.write(np.ascontiguousarray(frame).data)
        except BrokenPipeError:
            pass  # ffmpeg says below why it ended
        except BaseException:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()
            raise
        _, complaints = process.communicate()
    if process.returncode:
        raise OSError(f"ffmpeg could not write {path}: {complaints.decode(errors='replace').strip()}")


def _ffmpeg() -> str:
    """Path of the program."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError as error:
        raise DependencyNotInstalled(
            f"an .mp4 takes imageio-ffmpeg ({error}): pip install imageio-ffmpeg, or save a .gif"
        ) from None
    return get_ffmpeg_exe()


WRITERS = {".gif": _save_gif, ".mp4": _save_mp4}


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file to write, which becomes `path` when the block ends well and vanishes when it does not."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
