"""Pictures of classic control, by night: the cart and its pole, the rod, the car in its valley."""

from math import cos, pi, sin

import numpy as np

from games.canvas import DIM, GREEN, INK, ORANGE, SKY_BLUE, WHITE, YELLOW, Canvas, Colour, Points, mixed

WIDTH, HEIGHT = 720, 420
GROUND, FAINT = mixed(DIM, INK, 0.55), mixed(DIM, INK, 0.75)


def cart_pole(x: float, angle: float, edge: float, tilt: float, steps: int, limit: int) -> np.ndarray:
    """[420, 720, 3] the cart on its rail, the pole, and how far both may go."""
    canvas = _titled("CART-POLE", f"Step {steps} of {limit}")
    scale, rail, pole = 290 / edge, 330.0, 190.0
    middle = WIDTH / 2
    for end in (-edge, edge):
        canvas.box(middle + end * scale - 3, rail - 26, middle + end * scale + 3, rail + 26, ORANGE, 3)
    canvas.line([(middle - edge * scale, rail), (middle + edge * scale, rail)], GROUND, 4)
    left = middle + min(max(x, -edge * 1.1), edge * 1.1) * scale
    top = rail - 24
    for lean in (-tilt, tilt):
        canvas.line([(left, top), (left + pole * sin(lean), top - pole * cos(lean))], FAINT, 2)
    fallen = abs(x) > edge or abs(angle) > tilt
    canvas.box(left - 44, top, left + 44, rail - 4, SKY_BLUE, 8)
    for wheel in (-26, 26):
        canvas.disc(left + wheel, rail - 3, 8, WHITE)
    tip = (left + pole * sin(angle), top - pole * cos(angle))
    canvas.line([(left, top), tip], ORANGE if fallen else YELLOW, 12)
    for place in ((left, top), tip):
        canvas.disc(*place, 6, ORANGE if fallen else YELLOW)
    canvas.disc(left, top, 4, INK)
    canvas.text(WIDTH / 2, HEIGHT - 34, f"x {x:+.2f} m    {np.degrees(angle):+.1f}°", 18, DIM)
    return canvas.pixels()


def pendulum(angle: float, speed: float, torque: float, strongest: float, steps: int, limit: int) -> np.ndarray:
    """[420, 720, 3] the rod, and an arc as long as the torque is strong."""
    canvas = _titled("PENDULUM", f"Step {steps} of {limit}")
    x, y, length = WIDTH / 2, HEIGHT / 2 + 16, 140.0
    canvas.ring(x, y, length, FAINT, 2)
    canvas.line([(x, y - length - 14), (x, y - length + 14)], GREEN, 4)
    tip = (x - length * sin(angle), y - length * cos(angle))  # angles grow counter-clockwise
    canvas.glow(*tip, 50, SKY_BLUE, 0.35)
    canvas.line([(x, y), tip], SKY_BLUE, 12)
    canvas.disc(*tip, 17, WHITE)
    canvas.disc(x, y, 9, DIM)
    if torque:
        turn = -torque / strongest * 0.75 * pi
        canvas.line(_arc(x, y, 52, turn), ORANGE, 6)
        _head(canvas, x + 52 * sin(turn), y - 52 * cos(turn), turn + (pi / 2 if turn > 0 else -pi / 2), ORANGE)
    canvas.text(WIDTH / 2, HEIGHT - 20, f"speed {speed:+.2f} rad/s    torque {torque:+.2f} N m", 18, DIM)
    return canvas.pixels()


def mountain_car(x: float, speed: float, force: float, ends: tuple[float, float, float], steps: str) -> np.ndarray:
    """[420, 720, 3] the car on the hillside; `ends` are the valley's left and right and the goal."""
    canvas = _titled("MOUNTAIN CAR", steps)
    left, right, goal = ends

    def place(along: float) -> tuple[float, float]:
        return 40 + (along - left) / (right - left) * (WIDTH - 80), HEIGHT - 60 - 115 * (sin(3 * along) + 1)

    hill = [place(along) for along in np.linspace(left, right, 121)]
    canvas.polygon([(40, HEIGHT - 46), *hill, (WIDTH - 40, HEIGHT - 46)], mixed(DIM, INK, 0.8))
    canvas.line(hill, GROUND, 4)
    pole_x, pole_y = place(goal)
    canvas.line([(pole_x, pole_y), (pole_x, pole_y - 58)], GREEN, 4)
    canvas.polygon([(pole_x, pole_y - 58), (pole_x + 34, pole_y - 48), (pole_x, pole_y - 36)], GREEN)
    _car(canvas, *place(x), slope=115 * 3 * cos(3 * x) * (right - left) / (WIDTH - 80), force=force)
    canvas.text(WIDTH / 2, HEIGHT - 22, f"speed {speed:+.4f}    force {force:+.2f}", 18, DIM)
    return canvas.pixels()


def _titled(title: str, steps: str) -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(30, 36, title, 15, DIM, "lm", bold=True)
    canvas.text(WIDTH - 30, 36, steps, 20, anchor="rm")
    return canvas


def _arc(x: float, y: float, radius: float, turn: float) -> Points:
    """From straight up, clockwise for a positive turn in radians."""
    return [(x + radius * sin(part), y - radius * cos(part)) for part in np.linspace(0, turn, 25)]


def _head(canvas: Canvas, x: float, y: float, heading: float, colour: Colour) -> None:
    """An arrow's head; `heading` in radians clockwise from up."""
    corners = [(14, heading), (10, heading + 0.75 * pi), (10, heading - 0.75 * pi)]
    canvas.polygon([(x + far * sin(turn), y - far * cos(turn)) for far, turn in corners], colour)


def _car(canvas: Canvas, x: float, y: float, slope: float, force: float) -> None:
    """Its wheels on (x, y), along a hillside of this slope; an arrow as long as the force is strong."""
    size = (1 + slope * slope) ** 0.5
    ahead, up = (1 / size, -slope / size), (-slope / size, -1 / size)

    def at(along: float, above: float) -> tuple[float, float]:
        return x + along * ahead[0] + above * up[0], y + along * ahead[1] + above * up[1]

    canvas.polygon([at(-30, 9), at(30, 9), at(30, 22), at(16, 24), at(10, 36), at(-18, 36), at(-30, 24)], SKY_BLUE)
    for wheel in (-18, 18):
        canvas.disc(*at(wheel, 9), 9, WHITE)
        canvas.disc(*at(wheel, 9), 4, INK)
    if force:
        side = 1 if force > 0 else -1
        start, end = at(36 * side, 16), at(36 * side + 60 * force, 16)
        canvas.line([start, end], ORANGE, 5)
        _head(canvas, *end, heading=np.arctan2(side * ahead[0], -side * ahead[1]), colour=ORANGE)
