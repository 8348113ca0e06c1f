"""What is told where somebody else's environment breaks its contract."""

from typing import Any

from games.faults import FAULTS


class BrokenContract(ValueError):
    """An environment broke a rule of PettingZoo's interface, or raised; `rule` is a name of `games.conformance.RULES`.

    `env`, `agent` (None where it is everyone's), `step` of the episode (0 is the reset) and `seed` of the episode tell
    where: `reset(seed=seed)` starts it again. What the environment raised is the `__cause__`.
    """

    def __init__(self, env: str, rule: str, message: str, agent: str | None, step: int, seed: int):
        super().__init__(env, rule, message, agent, step, seed)
        self.env, self.rule, self.message, self.agent, self.step, self.seed = env, rule, message, agent, step, seed

    def __str__(self) -> str:
        agent = "" if self.agent is None else f"agent {self.agent}, "
        where = f"{agent}step {self.step} of the episode with seed {self.seed}"
        return f"{self.env} breaks the rule {self.rule!r} of environments ({where}): {self.message}"


def closed(env: Any, name: str) -> None:
    """Close an environment called `name`. Raises BrokenContract from whatever it raises."""
    try:
        env.close()
    except FAULTS as error:
        raise BrokenContract(name, "plays", f"close() raised {error!r}", None, 0, 0) from error


class Fault(Exception):
    """Raised by what reads an environment's answers; the episode adds where it happened."""

    def __init__(self, rule: str, message: str, agent: Any = None):
        super().__init__(rule, message, agent)
        self.rule, self.message, self.agent = rule, message, agent
