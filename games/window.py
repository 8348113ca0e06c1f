"""A window that shows pictures at a pace one can follow."""

from time import monotonic
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

POLL = 0.02
"""Seconds between looks at what the user does while a picture stands."""


class Window:
    """Opens with its first picture; once the user closes it, it stays closed and holds nobody up.

    Raises gymnasium's DependencyNotInstalled without pygame.
    """

    def __init__(self, title: str):
        try:
            import pygame
        except ImportError as error:
            raise DependencyNotInstalled(f"showing a window takes pygame ({error}): pip install pygame-ce") from None
        self.title, self.dismissed = title, False
        self._pygame = pygame
        self._surface: Any = None
        self._until = 0.0

    def __reduce__(self) -> tuple[type["Window"], tuple[str]]:
        return Window, (self.title,)  # a copy is a window of its own, which has yet to open

    def show(self, picture: np.ndarray, fps: float) -> None:
        """Put up a picture [height, width, 3] uint8 as soon as the last one has stood its 1 / fps seconds.

        Raises OSError where no window can be opened.
        """
        self._wait()
        if self.dismissed:
            return
        pygame, size = self._pygame, (picture.shape[1], picture.shape[0])
        if self._surface is None or not pygame.display.get_init():
            try:
                pygame.display.init()
                self._surface = pygame.display.set_mode(size)
            except pygame.error as error:
                raise OSError(
                    f"no window can be opened ({error}): without a screen, render ansi or rgb_array"
                ) from None
            pygame.display.set_caption(self.title)
        self._surface.blit(pygame.image.frombuffer(picture.tobytes(), size, "RGB"), (0, 0))
        pygame.display.flip()
        self._until = monotonic() + 1 / fps
        self._heed()

    def close(self) -> None:
        """Close the window once its last picture has stood its time; a later `show` opens it again."""
        self._wait()
        self._quit()
        self.dismissed = False

    def _wait(self) -> None:
        while self._surface is not None and (left := self._until - monotonic()) > 0:
            self._pygame.time.wait(round(1000 * min(POLL, left)))
            self._heed()

    def _heed(self) -> None:
        """Close if the user asked for it, by the window's button, Escape or Q."""
        pygame = self._pygame
        if not pygame.display.get_init():  # there is one display a process: another window of it was closed
            self._surface = None
            return
        for event in pygame.event.get():
            key = event.key if event.type == pygame.KEYDOWN else None
            if event.type == pygame.QUIT or key in (pygame.K_ESCAPE, pygame.K_q):
                self.dismissed = True
                self._quit()
                return

    def _quit(self) -> None:
        if self._surface is not None:
            self._surface = None
            self._pygame.display.quit()
