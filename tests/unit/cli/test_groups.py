"""Options that belong together: typed one by one, handed over as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from strandline.cli.groups import with_groups
from strandline.cli.main import app as strandline
from strandline.errors import InputError

PIPELINES = Path(__file__).parents[3] / "pipelines"


@dataclass(frozen=True)
class Cut:
    before: Annotated[str, typer.Option(help="Cut here.")]
    deep: Annotated[bool, typer.Option("--deep")] = False


@pytest.fixture
def cut():
    """The command `cut`, and all that it was called with."""
    calls = []
    app = typer.Typer()

    @app.command()
    @with_groups
    def cut(name: Annotated[str, typer.Argument()], how: Cut, *, times: int = 1) -> None:
        """Cut something."""
        calls.append((name, how, times))

    return lambda *arguments: (CliRunner().invoke(app, arguments), calls)


def test_a_group_is_typed_as_options_and_called_as_one_value(cut):
    result, calls = cut("rope", "--before", "noon", "--times", "2")
    assert result.exit_code == 0
    assert calls == [("rope", Cut("noon", deep=False), 2)]


def test_an_option_of_a_group_without_a_default_is_required(cut):
    result, calls = cut("rope", "--deep")
    assert result.exit_code == 2
    assert "--before" in result.output
    assert calls == []


def test_the_help_of_the_runs_names_all_their_commands():
    for option in ("-h", "--help"):
        shown = CliRunner().invoke(strandline, ["runs", option]).output
        assert all(name in shown for name in ("list", "show", "publish", "revert", "drop"))


def test_a_misspelt_command_of_the_runs_is_answered_with_the_one_that_is_meant():
    shown = CliRunner().invoke(strandline, ["runs", "shwo", "flights", "r-1"]).output
    assert "No such command 'shwo'. Did you mean 'show'?" in shown


def test_the_list_of_commands_says_in_80_columns_what_each_does(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for group in ([], ["runs"]):
        assert "..." not in CliRunner().invoke(strandline, [*group, "--help"]).output.replace(
            "COMMAND [ARGS]...", ""
        )


@pytest.mark.parametrize("named", ["runs revert", "runs drop", "erase --where x", "acknowledge"])
def test_a_reason_that_must_be_given_is_not_blank(named, tmp_path):
    command, run = named.split(), [] if named.startswith(("erase", "ack")) else ["r-1"]
    (tmp_path / "flights.yaml").touch()
    places = [f"--pipelines={tmp_path}", f"--lake={tmp_path}"]
    words = [*places, *command, "flights", *run, "--reason", " "]
    with pytest.raises(InputError, match="--reason: empty; give the reason"):
        CliRunner().invoke(strandline, words, catch_exceptions=False)


@pytest.mark.parametrize(
    "named", ["package --to", "package --wheel", "test flights --file", "report flights --output"]
)
def test_an_empty_path_is_not_the_current_folder(named, tmp_path):
    (tmp_path / "flights.yaml").write_text((PIPELINES / "flights.yaml").read_text("utf-8"), "utf-8")
    words = [f"--pipelines={tmp_path}", f"--lake={tmp_path}", *named.split(), ""]
    with pytest.raises(InputError, match=f"{words[-2]}: empty; name a path"):
        CliRunner().invoke(strandline, words, catch_exceptions=False)
