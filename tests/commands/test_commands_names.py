"""The program is what it is called: vcctl, or one of the commands in Slurm's manner; links to it replace nothing that is not ours."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.program import program
from pumice.cli.volcano import links, programs

RUN = "import sys; sys.argv = {argv!r}; from pumice.cli import main; main()"
HEAVY = ("numpy", "rich", "yaml", "aiohttp", "msgspec")


def start(*argv, **environment):
    return subprocess.run(
        [sys.executable, "-c", RUN.format(argv=list(argv))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("name", programs.NAMES)
def test_program_answers_to_its_name(name):
    done = start(f"/somewhere/{name}", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {name} ")
    assert "Examples:" in done.stdout


def test_version_has_the_six_lines_of_vcctl():
    lines = start("vcctl", "version").stdout.splitlines()
    labels = ["API Version", "Version", "Git SHA", "Built At", "Go Version", "Go OS/Arch"]
    assert [line.partition(":")[0] for line in lines] == labels
    assert pumice.__version__ in lines[1]


def test_vcctl_has_its_kinds_and_nothing_else():
    listed = start("vcctl", "--help").stdout.partition("Commands:")[2].partition("Examples:")[0]
    found = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line.strip()]
    assert found == ["job", "jobflow", "jobtemplate", "pod", "queue", "version"]


@pytest.mark.parametrize("path", [(), ("job",), ("job", "run"), ("queue", "operate"), ("version",)])
def test_help_of_vcctl_is_asked_for_with_a_word_too(path):
    assert start("vcctl", "help", *path).stdout == start("vcctl", *path, "--help").stdout != ""


def test_help_for_something_else_names_it():
    done = start("vcctl", "help", "job", "walk")
    assert (done.returncode, "No such command 'walk' of vcctl job." in done.stderr) == (2, True)


def test_flags_of_the_log_are_taken_and_change_nothing(commands):
    commands.job("train")
    plain = commands.printed("job", "list", "-n", commands.namespace, name="vcctl")
    logged = commands.printed(
        "-v", "3", "job", "list", "-n", commands.namespace, "--v=5", "--log-flush-frequency=5s", name="vcctl"
    )
    assert plain == logged


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("vsub", ()),
        ("vcancel", ()),
        ("vsuspend", ()),
        ("vresume", ()),
    ],
)
def test_missing_name_is_asked_for_by_its_letter(commands, name, arguments):
    assert (
        commands.failed(*arguments, name=name)
        == f"Failed to execute {name}: the name of the job is missing; give -n NAME\n"
    )


def test_vsub_takes_its_defaults_from_the_environment(commands, monkeypatch):
    monkeypatch.setenv("VOLCANO_SCHEDULER_NAME", "other")
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "im:2")
    monkeypatch.setenv("VOLCANO_DEFAULT_JOB_NAMESPACE", commands.namespace)
    assert commands.printed("-n", "train", "-c", "sleep 5", name="vsub") == "run job train successfully\n"
    assert (
        commands.printed("-n", "second", "-i", "im:3", "-S", "volcano", name="vsub") == "run job second successfully\n"
    )
    found = {}
    for name in ("train", "second"):
        spec = commands.server.call("GET", commands.path("batch.volcano.sh/v1alpha1", "jobs", name))["spec"]
        container = spec["tasks"][0]["template"]["spec"]["containers"][0]
        found[name] = (spec["schedulerName"], container["image"], container.get("command"))
    assert found == {"train": ("other", "im:2", ["sleep", "5"]), "second": ("volcano", "im:3", None)}


def test_empty_variables_count_as_absent(commands, monkeypatch):
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "")
    commands.printed("-n", "train", "-N", commands.namespace, name="vsub")
    spec = commands.server.call("GET", commands.path("batch.volcano.sh/v1alpha1", "jobs", "train"))["spec"]
    assert spec["tasks"][0]["template"]["spec"]["containers"][0]["image"] == "busybox"


def test_vjobs_lists_and_with_a_name_shows_one(commands):
    commands.job("train")
    listed = commands.printed("-N", commands.namespace, name="vjobs")
    assert listed == commands.printed("job", "list", "-n", commands.namespace)
    shown = commands.printed("-N", commands.namespace, "-n", "train", name="vjobs")
    assert shown == commands.printed("job", "view", "-n", commands.namespace, "-N", "train")


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (("pumice", "job", "--help"), ()),
        (("vcctl", "--help"), ()),
        (("vsub", "--help"), ()),
        (("pumice", "top", "--help"), ()),
        (("pumice", "job", "list"), ("yaml", "msgspec")),
        (("vjobs",), ("yaml", "msgspec")),
    ],
)
def test_start_imports_what_is_needed_and_never_numpy(argv, allowed, tmp_path):
    code = RUN.format(argv=list(argv)).replace(
        "main()", f"\ntry: main()\nfinally: print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "none")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.splitlines()[-1] == str(sorted(allowed))


def test_installing_pumice_puts_no_vcctl_on_the_path():
    found = {each.name for each in metadata.distribution("pumice").entry_points if each.group == "console_scripts"}
    assert found == {"pumice", "kubectl-pumice"}


# -- links -----------------------------------------------------------------------------------------------------------


def linked(*arguments):
    return CliRunner().invoke(program, ["links", *map(str, arguments)], prog_name="pumice")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A program called pumice that can be linked to."""
    path = tmp_path / "venv" / "pumice"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nfrom pumice.cli import main\nmain()\n")
    path.chmod(0o755)
    monkeypatch.setattr(links, "own_path", lambda: path)
    return path


def test_links_make_the_program_answer_to_every_name(tmp_path, own):
    folder = tmp_path / "bin"
    folder.mkdir()
    result = linked(folder)
    assert result.exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted(programs.NAMES)
    assert all(path.readlink() == own for path in folder.iterdir())
    done = subprocess.run([folder / "vcctl", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("API Version: v1alpha1")


def test_link_is_renewed_and_what_is_not_ours_stays(tmp_path, own):
    (tmp_path / "vcctl").write_text("another program")
    (tmp_path / "vsub").symlink_to("/opt/volcano/vsub")
    (tmp_path / "vjobs").symlink_to("/gone/pumice")
    result = linked(tmp_path)
    assert result.exit_code == 1
    assert (tmp_path / "vcctl").read_text() == "another program"
    assert (tmp_path / "vsub").readlink() == Path("/opt/volcano/vsub")
    assert (tmp_path / "vjobs").readlink() == own
    assert result.output.count("is something else and stays as it is") == 2


def test_removing_takes_away_our_links_alone(tmp_path, own):
    (tmp_path / "vcctl").write_text("another program")
    linked(tmp_path, "--only", "vsub", "--only", "vjobs")
    assert {path.name for path in tmp_path.iterdir()} >= {"vsub", "vjobs"}
    result = linked(tmp_path, "--remove")
    assert result.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vcctl", "venv"]


def test_folder_that_does_not_exist_is_named_with_how_to_make_it(tmp_path, own):
    result = linked(tmp_path / "none")
    assert result.exit_code == 1
    assert f"mkdir -p {tmp_path / 'none'}" in result.output


def test_name_that_a_shell_finds_elsewhere_first_is_told(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "vcctl").write_text("x")
    path = os.pathsep.join(map(str, (first, second)))
    assert list(links.hidden(second, ("vcctl", "vsub"), path)) == [
        f"{first / 'vcctl'} comes first on PATH, so vcctl is that one"
    ]
    assert list(links.hidden(tmp_path, ("vcctl",), path)) == [
        f"{tmp_path} is not on PATH, so a shell does not find these names there"
    ]
