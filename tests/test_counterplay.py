"""The `counterplay` command, as a user meets it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import games
from analysis.load import load_run
from analysis.tables import payoff_table
from counterplay import __version__, doctor
from counterplay.main import COMMANDS, main
from counterplay.screen import age
from experiments.run import invocation
from tests.analysis.handmade import edit, seal
from tests.processes import cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "counterplay.main"]
WRONG = {
    "figures": ["runs/none"],
    "report": ["runs/none"],
    "notebook": ["runs/none"],
    "play": ["runs/none"],
    "show": ["runs/none"],
    "runs": ["runs/none"],
    "responses": ["runs/none"],
    "exploitability": ["runs/none"],
    "solve": ["no/such.npy"],
    "games": ["buket_brigade"],
    "conform": ["no.such.module:game"],
    "parity": ["--only", "nothing of that name"],
    "optimum": ["--scenario", "rest_trp"],
    "rings": ["--scenario", "rest_trap"],
    "exact": ["kuhn_poker", "leduc_pokr"],
    "bench": ["--only", "nothing"],
    "psro": ["--scenario", "rest_trp"],
    "psro-game": ["--game", "ponk"],
    "psro-openspiel": ["--game", "kuhn_pokr"],
    "train": ["ppo", "--game", "ponk"],
    "doctor": ["--option"],
}
"""Arguments that cannot work, for every command."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a finished run and an interrupted one."""
    shutil.copytree(ROOT / "tests" / "data" / "run", tmp_path / "finished")
    shutil.copytree(tmp_path / "finished", tmp_path / "interrupted")
    (tmp_path / "interrupted" / "summary.json").unlink()
    return tmp_path


def test_it_tells_its_version_and_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


def imported_for(*arguments: str) -> set[str]:
    """Modules that a process has imported when the command ends."""
    code = (
        "import atexit, sys; from counterplay.main import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); sys.exit(main())"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_next_to_nothing() -> None:
    start = cpu_seconds()
    assert not {"torch", "numpy", "tyro", "rich", "games"} & imported_for("--help")
    assert cpu_seconds() - start < 1  # 0.1 s where nothing else runs


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_of_a_command_leaves_alone_what_takes_its_time(name: str) -> None:
    assert not {"torch", "matplotlib"} & imported_for(name, "--help")


@pytest.mark.parametrize("name", ["show", "runs"])
def test_a_terminal_that_knows_few_characters_gets_others(name: str, folder: Path) -> None:
    where = folder / "finished" if name == "show" else folder
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, name, str(where)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "at least 7.2 ? 3.2" in done.stdout


def test_without_a_command_it_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "psro" in capsys.readouterr().err


def test_a_misspelt_command_is_answered_with_those_near_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prso"]) == 2
    assert capsys.readouterr().err.startswith("error: unknown command 'prso'; did you mean 'psro'")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert "usage: " in capsys.readouterr().out


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_refuses_unknown_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--no-such-option"])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert err


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_refuses_what_cannot_work_without_a_traceback(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main([name, *WRONG[name]])
    except SystemExit as end:
        code = end.code
    assert code == 2
    out, err = capsys.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert "error: " in err


@pytest.mark.parametrize("arguments", ["play", "psro --resume --run-dir"])
def test_where_there_is_no_run_nothing_else_is_said(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments.split(), "runs/none"]) == 2
    assert capsys.readouterr().err == "error: there is no run at runs/none\n"


def test_runs_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines if line.startswith(("finished", "interrupted"))}
    assert "finished" in rows["finished"].split()[1]
    assert "interrupted" in rows["interrupted"].split()[1]
    assert all("2 of 2" in row and "±" in row and "ago" in row for row in rows.values())
    assert lines[-1].startswith(f"next: {invocation()} show {folder}")


def test_commands_are_printed_as_they_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "counterplay"
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    assert invocation() == f"{tmp_path / 'python'} -m counterplay.main"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert invocation() == "counterplay"
    monkeypatch.setattr(sys, "executable", "/elsewhere/python")  # the name leads to another Python
    assert invocation() == "/elsewhere/python -m counterplay.main"


def test_an_empty_folder_says_how_to_fill_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert f"{invocation()} psro" in capsys.readouterr().out


def test_a_run_is_shown_with_what_to_do_next(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(folder / "finished")]) == 0
    out = capsys.readouterr().out
    likeliest = "-".join(map(str, payoff_table(load_run(folder / "finished").iterations[-1])["profile"][0]))
    for words in ("scenario rest_trap", "torch ", "commit ", "lower bound", "±", likeliest, "--resume --iterations 6"):
        assert words in out
    assert main(["show", str(folder / "interrupted")]) == 0
    out = capsys.readouterr().out
    assert f"{invocation()} psro --run-dir {folder / 'interrupted'} --resume\n" in out


def test_a_damaged_run_is_not_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve = folder / "finished" / "policies" / "train-1-0" / "curve.json"
    curve.write_text("[]")
    assert main(["show", str(folder / "finished")]) == 2
    assert "curve.json is not as the run wrote it; restore it" in capsys.readouterr().err
    assert main(["runs", str(folder)]) == 0
    assert "damaged" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", ["show", "report", "figures", "notebook", "play", "psro --resume --run-dir"])
def test_a_run_of_odd_settings_is_refused_in_one_line(
    arguments: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder / "finished"
    edit(run / "run.json", versions=[])
    seal(run, "run.json")
    assert main([*arguments.split(), str(run)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "run.json is not as a run writes it: versions must be an object, is []" in err
    assert main(["runs", str(folder)]) == 0
    assert "versions must be an object" in " ".join(capsys.readouterr().out.split())  # over several lines of its column


@pytest.mark.parametrize("name", games.GAMES)
def test_every_game_is_listed_and_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games"]) == 0
    assert name in capsys.readouterr().out
    assert main(["games", name]) == 0
    out = capsys.readouterr().out
    game = games.make(name)
    for words in (*game.agents, str(game.action_spaces[0]), games.env_id(name), "a start"):
        assert words in out


def test_a_game_of_openspiel_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games", "openspiel:leduc_poker"]) == 0
    out = capsys.readouterr().out
    for words in (
        "game string",
        "Discrete(3)",
        "Round: 1",
        'games.make("openspiel:leduc_poker")',
        'game="leduc_poker")',
    ):
        assert words in out
    assert main(["games", "openspiel:leduc_pokr"]) == 2
    assert "did you mean 'leduc_poker'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pong(points=1)", ("a start", "Discrete(3)")),
        ("stacked(t_maze,frames=3)", ("a start", "(12,)")),
        ("connect_four", ("player_0", "Discrete(7)")),
        ("openspiel_stepped:chess", ("max_steps", "Discrete(4674)")),
        ("gymnasium:CartPole-v1", ("player", "Discrete(2)")),
    ],
)
def test_whatever_can_be_made_is_described(
    name: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["games", name]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in (*words, f'games.make("{name}")'))


def test_other_names_are_listed_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in (*games.PREFIXES, "connect_four_v3", "stacked"))


def test_conform_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "matching_pennies"]) == 0
    assert "rules passed, 0 broken" in capsys.readouterr().out
    assert main(["conform", "matching_penies"]) == 2
    assert "did you mean 'matching_pennies'" in capsys.readouterr().err


def test_reference_values_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parity", "--only", "random easy", "--episodes", "200"]) == 0
    assert "values, 0 beyond" in capsys.readouterr().out


def test_the_doctor_finds_everything_needed_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for words in ("python", "torch", "CUDA devices", "processors", "disk", "runs/", "meta-solver", *games.GAMES):
        assert words in out
    assert "BROKEN" not in out


def test_the_doctor_names_what_is_broken_and_how_to_mend_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = ["numpy>=99", "no-such-package>=1", "no-such-extra>=1; extra == 'pictures'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda _: needs)
    monkeypatch.setitem(games.GAMES, "broken", lambda: 1 / 0)
    monkeypatch.setattr(doctor, "CHECKS", (doctor.check_packages, doctor.check_games))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    for words in (
        "numpy>=99",
        "missing (needs >=1)",
        "pip install 'no-such-extra>=1'",
        "ZeroDivisionError",
        "3 broken",
    ):
        assert words in out


def test_a_full_disk_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    disk, runs = doctor.check_disk()
    assert (disk.ok, runs.ok) == (False, True)
    assert "--run-dir" in disk.advice


def test_a_reader_who_leaves_ends_it_quietly(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "show", str(folder / "finished")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 128 + signal.SIGPIPE


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(
    "arguments",
    ["--help", "games", "runs tests/data", "show tests/data/run", "runs --help", "psro --help", "play --help"],
)
def test_output_may_be_closed(arguments: str) -> None:
    command = ["bash", "-c", '"$@" >&-', "bash", *COMMAND, *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_can_be_interrupted() -> None:
    process = subprocess.Popen(
        [*COMMAND, "parity"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert "reference" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (128 + signal.SIGINT, "stopped by SIGINT: run the same command again\n")


def test_ages_have_a_unit_that_fits() -> None:
    now = time.time()
    assert [age(now - seconds) for seconds in (5, 600, 7300, 400_000)] == ["5 s", "10 min", "2 h", "5 d"]


def test_exact_values_are_shown_beside_openspiel_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exact", "kuhn_poker", "matrix_pd"]) == 0
    kuhn, dilemma = [line.split() for line in capsys.readouterr().out.splitlines()[1:3]]
    assert kuhn[:7] == ["kuhn_poker", "2", "55", "12", "+0.125000", "0.916667", "-0.055555555556"]
    assert dilemma[:6] == ["matrix_pd", "2", "7", "2", "+4.000000", "3.000000"]


def test_the_most_a_team_can_earn_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimum", "--scenario", "rest_trap", "--rules", "quiet"]) == 0
    assert "5205.9" in capsys.readouterr().out
