"""Classic control as Gymnasium 1.4 plays it, for thousands of lanes at once: what learners are compared on."""

from games.control.cart_pole import CartPole
from games.control.mountain_car_continuous import MountainCarContinuous
from games.control.pendulum import Pendulum

__all__ = ["CartPole", "MountainCarContinuous", "Pendulum"]
