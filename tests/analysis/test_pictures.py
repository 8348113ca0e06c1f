"""Pictures of tables look as they did, say what the table says, and can be read at any size."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.testing.compare import compare_images
from matplotlib.text import Annotation, Text

from analysis import figures, gallery
from analysis.gallery import HANDS, RPS, stakes_or_truce
from analysis.graph import TRANSIENT
from analysis.load import load_run
from analysis.matrices import UNCLEAR
from analysis.panels import BLUE, ORANGE, PALETTE, SMALLEST
from analysis.sweeps import spread
from metasolvers.nash_averaging import nash_averaging
from metasolvers.replicator_dynamics import replicator_path, replicator_path_single
from tests.analysis.handmade import edit, seal, write_run
from tests.analysis.pictures import CASES, IMAGES, drawn, save

TOLERANCE = 1.0
"""Root mean square, of 255, by which pixels may differ.

Rounding in the tables moves coordinates by so little that anti-aliasing changes by 0.1; each of MUTATIONS takes 1.8 or
more. The references are of the matplotlib in constraints.txt: others set words and ticks differently.
"""

ANEW = "python -m tests.analysis.pictures; python -m analysis.gallery docs/gallery.png"

MUTATIONS: dict[str, Callable[[Axes], object]] = {
    "tournament": lambda axis: axis.texts[1].set_text("0.777"),
    "large_matrix": lambda axis: axis.images[0].set_data(np.roll(axis.images[0].get_array(), 1, axis=0)),
    "two_sinks": lambda axis: axis.collections[0].set_facecolor(PALETTE[2]),
    "single_population": lambda axis: axis.collections[0].set_offsets([0.05, 1.0]),
    "growing_selection": lambda axis: axis.lines[-2].set_color(PALETTE[3]),
    "coordination": lambda axis: axis.collections[-1].set_facecolor("k"),
    "spiral": lambda axis: axis.lines[0].set_color(BLUE),
    "spinning_top": lambda axis: axis.collections[-1].set_offsets(axis.collections[-1].get_offsets() * 1.1),
}
"""By picture, one small change that its reference must tell: a number, a row, a colour, a place."""


def difference(reference: Path, drawn_now: Path) -> str | None:
    """How two pictures differ, and in which file that can be seen; None if they do not."""
    found = compare_images(str(reference), str(drawn_now), TOLERANCE)
    return found and f"{found}\n(with matplotlib {matplotlib.__version__})"


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", CASES)
def test_it_looks_like_its_reference_which_tells_a_small_change(name: str, tmp_path: Path) -> None:
    axis, actual = drawn(name), tmp_path / f"{name}.png"
    save(axis, actual)
    found = difference(IMAGES / actual.name, actual)
    assert found is None, f"{found}\nIf that is meant: {ANEW}"
    MUTATIONS[name](axis)
    save(axis, actual)
    assert f"{name}-failed-diff.png" in (difference(IMAGES / actual.name, actual) or "")
    assert (tmp_path / f"{name}-failed-diff.png").stat().st_size > 0


def test_the_gallery_is_a_page_of_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_, last = gallery.PICTURES
    monkeypatch.setattr(gallery, "PICTURES", {title: gallery.PICTURES[title] for title in (first, last)})
    file = tmp_path / "gallery.png"
    assert gallery.main([str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    pixels = imread(file)
    assert pixels.shape == (300, 990, 3)
    assert np.ptp(pixels[:, :660]) > 0.9
    assert np.ptp(pixels[:, 660:]) == 0  # nothing in the third column


def test_references_are_small_and_all_in_use() -> None:
    assert {file.stem for file in IMAGES.iterdir()} == set(CASES)
    assert all(file.stat().st_size <= 40_000 for file in IMAGES.iterdir())


NAMES = {"short": "p{}", "long": "Soccer striker, version {}"}


def named(count: int, kind: str) -> list[str]:
    return [NAMES[kind].format(index) for index in range(count)]


def random(*shape: int) -> np.ndarray:
    table = np.random.default_rng(0).normal(0, 30, shape)
    table.setflags(write=False)
    return table


def matrix(policies: int, kind: str) -> Axes:
    table = random(policies, policies)
    return figures.payoff_matrix(table, np.full_like(table, 9.0), named(policies, kind), reference=0)


def graph(players: int, policies: int, kind: str) -> Axes:
    return figures.profile_graph(random(players, *[policies] * players), names=[named(policies, kind)] * players)


def plane(policies: int, kind: str) -> Axes:
    return figures.population_plane(random(policies, policies) - random(policies, policies).T, named(policies, kind))


def ranking(policies: int, kind: str) -> Axes:
    ends = np.full(policies, 1 / policies)
    return figures.mass_against_alpha([0.1, 1, 10], [ends, ends, ends], named(policies, kind), settled=1)


def fields(policies: int, kind: str) -> Axes:
    names = named(policies, kind)
    if policies == 3:
        return figures.simplex_field(random(3, 3), names)
    return figures.square_field(random(2, 2, 2), [names, names])


SIZES = [
    *((matrix, *size) for size in [(1, "long"), (2, "short"), (3, "long"), (10, "long"), (30, "short")]),
    *((graph, *size) for size in [(2, 1, "long"), (2, 2, "long"), (2, 3, "short"), (4, 2, "long"), (2, 30, "short")]),
    *((plane, *size) for size in [(1, "long"), (3, "long"), (10, "long"), (30, "short")]),
    *((ranking, *size) for size in [(1, "long"), (6, "long"), (30, "short")]),
    *((fields, *size) for size in [(2, "long"), (3, "long")]),
]
SIZE_NAMES = ["-".join([draw.__name__, *map(str, size)]) for draw, *size in SIZES]


def written(axis: Axes) -> list[Text]:
    """All words of the picture, of its key and its ticks."""
    legend = axis.get_legend()
    low, high = sorted(axis.get_xlim()), sorted(axis.get_ylim())
    ticks = [
        *(tick.label1 for tick in axis.xaxis.get_major_ticks() if low[0] <= tick.get_loc() <= low[1]),
        *(tick.label1 for tick in axis.yaxis.get_major_ticks() if high[0] <= tick.get_loc() <= high[1]),
    ]
    around = [axis.xaxis.label, axis.yaxis.label, *ticks] if axis.axison else []
    return [text for text in [*axis.texts, *around, *(legend.get_texts() if legend else [])] if text.get_text().strip()]


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("case", SIZES, ids=SIZE_NAMES)
def test_words_can_be_read_and_touch_nothing(case: tuple) -> None:
    draw, *size = case
    before = dict(matplotlib.rcParams)
    axis = draw(*size)
    axis.figure.set_dpi(100)
    axis.figure.draw_without_rendering()
    texts = written(axis)
    assert texts
    assert all(text.get_fontsize() >= SMALLEST for text in texts)
    boxes = np.array([Text.get_window_extent(text).padded(-0.75).extents for text in texts])
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    assert (low >= 0).all()
    assert (high <= axis.figure.bbox.max).all()
    touching = ((low < boxes[:, 2:]) & (boxes[:, :2] < high)).all(axis=-1)
    assert [(texts[i], texts[j]) for i, j in np.argwhere(np.triu(touching, 1))] == []
    assert pyplot.get_fignums() == []  # whoever calls it keeps pyplot's state, and the style
    assert dict(matplotlib.rcParams) == before


def test_they_are_drawn_where_the_caller_wants_them() -> None:
    left, right = Figure(figsize=(7, 3), layout="constrained").subfigures(1, 2)
    axes = [left.subplots(), right.subplots()]
    shown = [figures.payoff_matrix(RPS, axis=axes[0]), figures.population_plane(RPS, axis=axes[1])]
    assert shown == axes


def test_cells_that_are_not_told_from_the_reference_are_grey() -> None:
    values, errors = np.array([[0.5, 0.9], [0.1, 0.6]]), np.array([[0.0, 0.1], [0.1, 0.1]])
    grey = figures.payoff_matrix(values, errors, reference=0.5).images[1].get_array()
    assert grey.filled(0).tolist() == [[UNCLEAR, 0], [0, UNCLEAR]]
    grey = figures.payoff_matrix(values, 3 * errors, reference="mirror").images[1].get_array()
    assert grey.filled(0).tolist() == [[1, UNCLEAR], [UNCLEAR, 1]]  # 0.9 - 0.1 is 1.89 standard errors


@pytest.mark.parametrize("values", [RPS, RPS + 2])
def test_no_colour_is_grey_where_grey_cells_are_those_that_equal_their_mirror(values: np.ndarray) -> None:
    colours = figures.payoff_matrix(values, reference="mirror").images[0].get_cmap()(np.linspace(0, 1, 99))[:, :3]
    assert np.ptp(colours, axis=1).min() > 0.2


def test_numbers_are_dropped_before_they_get_too_small() -> None:
    few, many = (figures.payoff_matrix(random(policies, policies)) for policies in (5, 60))
    assert (len(few.texts), len(many.texts)) == (25, 0)


def test_each_sink_component_has_its_colour() -> None:
    axis = figures.profile_graph(stakes_or_truce(), alpha=0.2)
    edges = [tuple(node.get_edgecolor()[0]) for node in axis.collections]
    assert len(edges) == 16
    assert (edges.count(to_rgba(BLUE)), edges.count(to_rgba(ORANGE))) == (9, 1)
    masses = [text.get_text() for text in axis.get_legend().get_texts()]
    assert masses[0].startswith("sink component of 9 nodes: 86.0%")
    assert masses[1].startswith("sink component of 1 node: 13.4%")


def coordinated(policies: int) -> np.ndarray:
    """Each of the policies is a convention, the better the higher its index; who fails to coordinate loses."""
    own = np.diag(np.arange(1.0, policies + 1)) - 1.0
    return np.stack([own, own.T])


@pytest.mark.parametrize(("policies", "shown"), [(5, 5), (9, 9), (16, 16), (18, 16)])
def test_no_sink_component_vanishes_silently(policies: int, shown: int) -> None:
    axis = figures.profile_graph(coordinated(policies))
    kinds = [tuple(node.get_edgecolor()[0]) for node in axis.collections]
    assert sum(kind != to_rgba(TRANSIENT) for kind in kinds) == shown
    key = "\n".join(text.get_text() for text in axis.get_legend().get_texts())
    assert key.count("sink component of 1 node") == min(policies, 6)
    assert (f"{shown - 6} more sink components: " in key) == (policies > 6)
    assert (f"and {policies - shown} more sink components, not shown" in key) == (policies > shown)


@pytest.mark.parametrize(
    "own",
    [
        ("PPO v1", "PPO v2", "scripted rush", "scripted turtle"),
        [f"Soccer striker, version {version}" for version in range(4)],
        [f"version {version} of the policy that a league trained" for version in range(4)],  # of four, indices
    ],
)
@pytest.mark.parametrize("players", [2, 4])
def test_cut_names_tell_profiles_apart(own: Sequence[str], players: int) -> None:
    axis = figures.profile_graph(random(players, *[len(own)] * players), alpha=0.01, names=[own] * players)
    names = [text.get_text() for text in axis.texts if isinstance(text, Annotation) and text.get_text()]
    assert len(names) == len(set(names)) == 16


def test_arrows_are_the_deviations_that_selection_favours() -> None:
    dilemma = [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]
    axis = figures.profile_graph(dilemma, names=[("cooperate", "defect")] * 2)
    arrows = [text for text in axis.texts if not text.get_text()]
    assert len(arrows) == 4
    ends = [tuple(np.round(arrow.xy, 6)) for arrow in arrows]
    defect = tuple(np.round(axis.collections[0].get_offsets()[0], 6))  # the first node has the most mass
    assert ends.count(defect) == 2
    assert max(ends.count(end) for end in set(ends) - {defect}) == 1


def test_lines_are_named_at_their_ends_and_the_minor_ones_are_grey() -> None:
    axis = figures.mass_against_alpha([1, 10, 100], [[0.4, 0.3, 0.3], [0.7, 0.3, 0], [0.9, 0.1, 0]], names=HANDS)
    assert [text.get_text() for text in axis.texts] == ["rock", "paper", "1 other"]
    assert [line.get_color() for line in axis.lines] == ["0.75", BLUE, ORANGE]
    assert axis.get_xscale() == "log"


@pytest.mark.parametrize("heights", [[0.9, 0.9, 0.9], [1.0, 0.52, 0.5, 0.01, 0.0], [0.0, 0.0]])
def test_labels_are_spread_in_order_and_within_bounds(heights: list[float]) -> None:
    places = spread(heights, 0.15, 0.0, 1.0)
    assert (-np.diff(places) >= 0.15 - 1e-12).all()
    assert max(places) <= 1
    assert min(places) >= -1e-12


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        (RPS, {"neutral": 1, "not attracting": 3}),  # a centre among saddles
        (RPS + 0.3 * (RPS > 0), {"attracting": 1, "not attracting": 3}),
        (np.diag([1.0, 2.0, 3.0]), {"attracting": 3, "not attracting": 4}),  # three conventions
    ],
)
def test_rest_points_of_three_policies(game: np.ndarray, expected: dict[str, int]) -> None:
    """Known by linearisation [Hofbauer & Sigmund 1998, Evolutionary games and population dynamics, sec. 7]."""
    assert rest_points(figures.simplex_field(game)) == expected


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        ([[[3, 0], [0, 2]], [[2, 0], [0, 3]]], {"attracting": 2, "not attracting": 3}),  # battle of the sexes
        ([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]], {"neutral": 1, "not attracting": 4}),  # matching pennies
        (np.zeros((2, 2, 2)), {"neutral": 4}),  # rests everywhere
    ],
)
def test_rest_points_of_two_by_two_games(game: np.ndarray, expected: dict[str, int]) -> None:
    assert rest_points(figures.square_field(game)) == expected


PENNIES = [[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]]


def orbit() -> Iterator[tuple[np.ndarray, ...]]:
    return replicator_path(PENNIES, np.linspace(0, 2, 21), start=[(0.5, 0.5), (0.8, 0.2)])


def test_a_path_is_drawn_alone_or_among_others() -> None:
    path = [(x[0], y[0]) for x, y in orbit()]
    for paths in (path, [path], np.array(path), [path, path[:5]]):
        lines = figures.square_field(PENNIES, paths=paths).lines
        assert lines[2].get_xydata().tolist() == [list(place) for place in path]  # two more show indifference
    mixtures = list(replicator_path_single(RPS, np.linspace(0, 2, 21), start=[0.8, 0.1, 0.1]))
    alone, listed = (figures.simplex_field(RPS, paths=paths).lines for paths in (mixtures, [mixtures]))
    assert len(alone[0].get_xydata()) == 21
    assert alone[0].get_xydata().tolist() == listed[0].get_xydata().tolist()


def rest_points(axis: Axes) -> dict[str, int]:
    """How many there are of each kind that the key names."""
    kinds = {text.get_text() for text in axis.get_legend().get_texts()}
    return {dots.get_label(): len(dots.get_offsets()) for dots in axis.collections if dots.get_label() in kinds}


def test_cycles_are_round_and_ladders_straight() -> None:
    turn = 2 * np.pi * np.arange(9) / 9
    cycle, ladder = np.sin(turn - turn[:, None]), np.arange(9.0)[:, None] - np.arange(9.0)
    round_points, straight = (figures.population_plane(table).collections[0].get_offsets() for table in (cycle, ladder))
    assert np.ptp(np.hypot(*round_points.T)) < 1e-9
    assert np.linalg.svd(straight - straight.mean(axis=0))[1][1] < 1e-9


def test_the_equilibrium_has_rings() -> None:
    champion = np.block([[RPS, -np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
    dots, rings = figures.population_plane(champion).collections
    assert rings.get_offsets().tolist() == dots.get_offsets()[3:].tolist()


@pytest.mark.parametrize("side", [2.5, 4.0])
def test_the_equilibrium_is_named_however_little_room_there_is(side: float) -> None:
    axis = Figure(figsize=(side, side), layout="constrained").subplots()
    names = named(30, "long")
    table = random(30, 30) - random(30, 30).T
    played = np.flatnonzero(nash_averaging(table).p > 1e-6)
    texts = [text.get_text() for text in figures.population_plane(table, names, axis=axis).texts]
    assert len(played) > 10
    assert texts == [names[policy] for policy in played]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.payoff_matrix([1.0, 2.0]), r"a payoff matrix is \[k_0, k_1\] numbers.*got \(2,\)"),
        (lambda: figures.payoff_matrix(RPS, -np.ones((3, 3))), "errors must be standard errors >= 0"),
        (lambda: figures.payoff_matrix(RPS, names=("rock",)), "names must be one for each of 3 policies; got 1"),
        (lambda: figures.payoff_matrix(np.zeros((2, 3)), reference="mirror"), "only a square matrix has a mirror"),
        (lambda: figures.profile_graph([RPS, -RPS], names=HANDS), "names must be 2 lists, one a player"),
        (lambda: figures.policy_graph([RPS, RPS]), "not exchangeable"),
        (lambda: figures.mass_against_alpha([0, 1], [[1, 0], [1, 0]]), "alphas must grow from above 0"),
        (lambda: figures.mass_against_alpha([1, 2], [[1, 0]]), "a row an alpha of 2"),
        (lambda: figures.square_field(np.zeros((2, 3, 3))), r"payoffs \[2, 2, 2\]; got \(2, 3, 3\)"),
        (lambda: figures.simplex_field(np.zeros((2, 2))), r"a matrix \[3, 3\] of numbers; got \(2, 2\)"),
        (lambda: figures.square_field(PENNIES, paths=list(orbit())), r"\[T, 2\].*for x, y in.*21 pairs of strategies"),
        (
            lambda: figures.square_field(PENNIES, paths=[list(orbit())]),
            r"for x, y in replicator_path.*got \(21, 2, 2\)",
        ),
        (lambda: figures.square_field(PENNIES, paths=[[(0.5, 1.5)]]), r"a path is \[T, 2\] numbers in \[0, 1\].*1\.5"),
        (lambda: figures.square_field(PENNIES, paths=[(0.5, 0.5), (0.5,)]), r"a path is \[T, 2\] numbers"),
        (lambda: figures.simplex_field(RPS, paths=[[1, 0]]), r"a path is \[T, 3\] probabilities.*got \(1, 2\)"),
        (lambda: figures.simplex_field(RPS, paths=[[1, 1, 0]]), r"replicator_path_single.*rows that sum to 2"),
        (lambda: figures.population_plane([[0, 1], [1, 0]]), "antisymmetric"),
        (lambda: figures.population_plane(RPS, ratings=[1, 2]), "ratings must be one for each of 3 policies"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], Axes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


@pytest.mark.parametrize("solver", ["alpha_rank", "alpha_limit", "response_graph", "zero_sum_nash", "uniform"])
def test_runs_have_a_response_graph_where_it_is_what_they_solve(solver: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", players=2, iterations=2)
    settings = load_run(path).config
    edit(path / "run.json", config=settings | {"meta_solver": solver})
    seal(path, "run.json")
    figure = figures.response_graph(load_run(path))
    assert (figure is not None) == (solver not in ("zero_sum_nash", "uniform"))
    assert figure is None or figure.get_suptitle().startswith(f"Response graph ({solver}")
