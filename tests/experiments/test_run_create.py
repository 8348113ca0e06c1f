"""Where a run folder is made, and where not."""

from pathlib import Path

import pytest

from experiments.run import create, read_settings
from tests.analysis.handmade import CONFIG


def test_a_link_to_an_empty_folder_stands_for_it(tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    link = tmp_path / "run"
    link.symlink_to("large disk")
    with create(link, CONFIG, "resume") as run:
        assert run.path == link
    assert link.is_symlink()
    unless_it_says = {"oracle": "ppo", "targets": "mixture", "pipeline": 1}
    assert read_settings(tmp_path / "large disk") == read_settings(link) == CONFIG | unless_it_says


def test_a_link_to_a_run_is_that_run(tmp_path: Path) -> None:
    with create(tmp_path / "run", CONFIG, "resume"):
        pass
    (tmp_path / "link").symlink_to("run")
    with pytest.raises(ValueError, match="link already holds a run"):
        create(tmp_path / "link", CONFIG, "resume")


@pytest.mark.parametrize("below", ["", "run"])
def test_a_link_to_nothing_is_called_that(tmp_path: Path, below: str) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ValueError, match=r"link is a link to nowhere, which is not there"):
        create(tmp_path / "link" / below, CONFIG, "resume")
    assert [file.name for file in tmp_path.iterdir()] == ["link"]
