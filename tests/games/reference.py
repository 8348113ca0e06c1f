"""Bucket Brigade once more, one lane and plain loops, straight from the rules: what the kernel must agree with."""

from dataclasses import dataclass, field

SAFE, BURNING, RUINED = "safe", "burning", "ruined"


@dataclass
class Reference:
    """One game. `cell` has the scenario's numbers; seat amounts are one number for all or one a seat."""

    cell: dict
    ends_when_quiet: bool
    opening_fires_pay: bool
    houses: list[str] = field(default_factory=list)
    nights: int = 0

    def start(self, uniforms: list[float]) -> None:
        self.houses = [BURNING if u < self.cell["rho"] else SAFE for u in uniforms]
        self.nights = 0

    def night(self, actions: list[tuple[int, int, int]], rescue: list[float], ignition: list[float]) -> list[float]:
        """Plays a night and returns every agent's reward; uniforms for every house, used where the rules draw one."""
        before = list(self.houses)
        for house, state in enumerate(before):
            if state == BURNING:
                workers = sum(1 for target, mode, _ in actions if mode == 1 and target == house)
                chance = 1 - (1 - self.cell["kappa"]) ** workers
                self.houses[house] = SAFE if rescue[house] < chance else RUINED
        for house, state in enumerate(list(self.houses)):
            if state == SAFE and ignition[house] < self.cell["rho"]:
                self.houses[house] = BURNING
        rewards = [self.reward(agent, action, before) for agent, action in enumerate(actions)]
        self.nights += 1
        return rewards

    def reward(self, agent: int, action: tuple[int, int, int], before: list[str]) -> float:
        agents, houses = self.cell["num_agents"], self.cell["num_houses"]
        reward = -self.cost(agent, action[0]) if action[1] == 1 else self.cell["rest_reward"]
        for house in range(houses):
            whose = "own" if house % agents == agent else "other"
            saved = before[house] == BURNING and self.houses[house] == SAFE
            if saved and (self.nights > 0 or self.opening_fires_pay):
                reward += self.amount(f"{whose}_gain", agent)
            if self.houses[house] == RUINED:
                reward -= self.amount(f"{whose}_loss", agent)
        reward += self.cell["team_gain"] * self.houses.count(SAFE) / houses
        reward -= self.cell["team_loss"] * self.houses.count(RUINED) / houses
        return reward

    def cost(self, agent: int, house: int) -> float:
        """Of working at a house: more for every step from home, whichever way round the ring is shorter."""
        houses = self.cell["num_houses"]
        home = self.cell["homes"][agent] if "homes" in self.cell else agent % houses
        steps = 0
        while house not in ((home + steps) % houses, (home - steps) % houses):
            steps += 1
        return self.cell["cost"] + self.cell.get("distance_cost", 0.0) * steps

    def amount(self, name: str, agent: int) -> float:
        amount = self.cell[name]
        return amount[agent] if isinstance(amount, tuple | list) else amount

    def over(self) -> bool:
        night_just_played = self.nights - 1
        if night_just_played < self.cell["min_nights"]:
            return False
        kinds = set(self.houses)
        return kinds in ({SAFE}, {RUINED}) or (self.ends_when_quiet and BURNING not in kinds)
