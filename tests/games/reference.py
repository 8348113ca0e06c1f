"""Bucket Brigade once more, one lane and plain loops, straight from the rules: what the kernel must agree with."""

from dataclasses import dataclass, field

SAFE, BURNING, RUINED = "safe", "burning", "ruined"

Action = tuple[int, int, int]


@dataclass
class Reference:
    """One game. `cell` has the scenario's numbers; seat amounts are one number for all or one a seat.

    Uniforms come for every house, and are used where the rules draw one. `actions` are those that last counted.
    """

    cell: dict
    ends_when_quiet: bool
    opening_fires_pay: bool
    spreads_in_place: bool
    adjacent_only: bool = False
    houses: list[str] = field(default_factory=list)
    meters: list[float] = field(default_factory=list)
    remembered: list[str] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    nights: int = 0

    @property
    def continuous(self) -> bool:
        return self.cell.get("extinguish") == "continuous"

    def start(self, uniforms: list[float]) -> None:
        self.houses = [BURNING if u < self.cell["rho"] else SAFE for u in uniforms]
        self.meters = [0.0] * len(self.houses)
        self.nights = 0

    def night(self, actions: list[Action], uniforms: list[float]) -> list[float]:
        """Plays a night and returns every agent's reward.

        uniforms: rescue and ignition of every house, or spread to the left, to the right, and ignition.
        """
        size = len(self.houses)
        ignition = uniforms[-size:]
        self.actions = [self.valid(agent, action) for agent, action in enumerate(actions)]
        # Who does not pay for opening fires compares the first night with a ring on which nothing burnt.
        self.remembered = list(self.houses) if self.nights > 0 or self.opening_fires_pay else [SAFE] * size
        if self.continuous:
            self.suppress()
            self.spread(uniforms[:size], uniforms[size : 2 * size])
        else:
            self.rescue(uniforms[:size])
        for house in range(size):
            if self.houses[house] == SAFE and ignition[house] < self.cell["rho"]:
                self.houses[house], self.meters[house] = BURNING, 0.0
        self.nights += 1
        return [self.reward(agent) for agent in range(len(actions))]

    def valid(self, agent: int, action: Action) -> Action:
        home = self.home(agent)
        return (home, *action[1:]) if self.adjacent_only and self.steps(home, action[0]) > 1 else action

    def workers(self, house: int) -> int:
        return sum(1 for target, mode, _ in self.actions if mode == 1 and target == house)

    def rescue(self, uniforms: list[float]) -> None:
        for house, state in enumerate(self.houses):
            if state == BURNING:
                chance = 1 - (1 - self.cell["kappa"]) ** self.workers(house)
                self.houses[house] = SAFE if uniforms[house] < chance else RUINED

    def suppress(self) -> None:
        for house, state in enumerate(self.houses):
            if state == BURNING:
                self.meters[house] += self.workers(house) * self.cell["suppression"]
                if self.meters[house] >= 1:
                    self.houses[house], self.meters[house] = SAFE, 0.0

    def spread(self, left: list[float], right: list[float]) -> None:
        size = len(self.houses)
        fires = self.houses if self.spreads_in_place else list(self.houses)
        for house in range(size):
            if fires[house] == BURNING:
                for neighbour, uniform in (((house - 1) % size, left[house]), ((house + 1) % size, right[house])):
                    if fires[neighbour] == SAFE and uniform < self.cell["beta"]:
                        self.houses[neighbour] = BURNING

    def reward(self, agent: int) -> float:
        agents, houses = self.cell["num_agents"], self.cell["num_houses"]
        target, mode, _ = self.actions[agent]
        reward = -self.cost(agent, target) if mode == 1 else self.cell["rest_reward"]
        for house in range(houses):
            whose = "own" if house % agents == agent else "other"
            if self.remembered[house] == BURNING and self.houses[house] == SAFE:
                reward += self.amount(f"{whose}_gain", agent)
            if self.houses[house] == RUINED:
                reward -= self.amount(f"{whose}_loss", agent)
        reward += self.cell["team_gain"] * self.houses.count(SAFE) / houses
        reward -= self.cell["team_loss"] * self.houses.count(RUINED) / houses
        return reward + self.shaping(agent)

    def shaping(self, agent: int) -> float:
        target, mode, _ = self.actions[agent]
        extra = self.cell.get("progress_shaping", 0) * (self.houses.count(SAFE) - self.remembered.count(SAFE))
        if mode == 1 and self.houses[target] == SAFE:
            if self.remembered[target] == BURNING:
                extra += self.cell.get("rescue_shaping", 0) / self.workers(target)
            if self.remembered[target] == SAFE:
                extra += self.cell.get("presence_shaping", 0)
        later = 0 if self.over() else self.welfare(self.houses)
        discounted = self.cell.get("potential_discount", 1) * later
        return extra + self.cell.get("potential_shaping", 0) * (discounted - self.welfare(self.remembered))

    def welfare(self, houses: list[str]) -> float:
        lost = houses.count(RUINED) + 0.5 * houses.count(BURNING)
        return (self.cell["team_gain"] * houses.count(SAFE) - self.cell["team_loss"] * lost) / len(houses)

    def home(self, agent: int) -> int:
        return self.cell["homes"][agent] if "homes" in self.cell else agent % self.cell["num_houses"]

    def steps(self, home: int, house: int) -> int:
        """From one house to another, whichever way round the ring is shorter."""
        steps = 0
        while house not in ((home + steps) % self.cell["num_houses"], (home - steps) % self.cell["num_houses"]):
            steps += 1
        return steps

    def cost(self, agent: int, house: int) -> float:
        return self.cell["cost"] + self.cell.get("distance_cost", 0.0) * self.steps(self.home(agent), house)

    def amount(self, name: str, agent: int) -> float:
        amount = self.cell[name]
        return amount[agent] if isinstance(amount, tuple | list) else amount

    def over(self) -> bool:
        night_just_played = self.nights - 1
        if night_just_played < self.cell["min_nights"]:
            return False
        kinds = set(self.houses)
        return kinds in ({SAFE}, {RUINED}) or (self.ends_when_quiet and BURNING not in kinds)
