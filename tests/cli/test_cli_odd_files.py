"""Whatever a path leads to, every command that takes one says so at once and names it: a folder, a device that never ends, a pipe into which nobody writes, a socket."""

from __future__ import annotations

import os
import resource
import signal
import socket
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pumice import plain_files
from pumice.api import documents
from pumice.cli import completing, program
from pumice.server.configuration import sources
from pumice.server.configuration.sources import SourceError

ROOT = Path(__file__).parents[2]
DUMP = str(ROOT / "docs/examples/changes/cluster.yaml")
JOB = str(ROOT / "docs/examples/changes/job.yaml")
POLICY = str(ROOT / "docs/examples/changes/deployed.yaml")
HEADROOM = 4 << 30  # bytes that a command may take beyond what the tests have
SECONDS = 120  # after which a command is taken to wait for ever
SERVERS = {"scheduler", "controllers", "admission"}  # which go on without a file that may come yet
VOLCANO = {"job", "jobflow", "jobtemplate", "pod", "queue"}
ODD = ("folder", "device", "pipe", "socket")
WRITTEN = {"--junit", "--json", "--out", "-o", "--data", "--folder"}
REST = {
    ("explain", "--from"): ["job", "train/llama"],
    ("explain", "--config"): ["job", "train/llama", "--from", DUMP],
    ("explain", "--kubeconfig"): ["job", "train/llama"],
    ("what-if", "--from"): [JOB],
    ("what-if", "--config"): [JOB, "--from", DUMP],
    ("what-if", "--new-config"): ["--from", DUMP],
    ("what-if", "--kubeconfig"): [JOB],
    ("what-if", "files"): ["--from", DUMP],
    ("web", "--config"): ["--from", DUMP],
    ("config diff", "old"): [POLICY, "--on", DUMP],
    ("config diff", "new"): [POLICY],
    ("config diff", "more"): [POLICY, POLICY],
    ("config diff", "--on"): [POLICY, POLICY],
    ("simulate", "trace"): ["--format", "jobs"],
    ("shrink", "recording"): ["--job", "a/g"],
    ("simulate", "--config"): [str(ROOT / "docs/examples/simulate/jobs.csv")],
    ("simulate", "--cluster"): [str(ROOT / "docs/examples/simulate/jobs.csv")],
    ("test", "--config"): [str(ROOT / "scenarios")],
    ("vet", "--kubeconfig"): [DUMP],
    ("bench", "--config"): ["10000x1"],
    ("queue operate", "--kubeconfig"): ["-n", "q", "-a", "open"],
}


def commands(command, path=()):
    """Walk over the commands that do something."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def takers():
    """Walk over the parameters of commands that name a file which is read."""
    for path, command in commands(program.program):
        for parameter in command.params:
            completed = getattr(parameter, "_custom_shell_complete", None)
            reads = completed in (completing.files, completing.configurations) or isinstance(parameter.type, click.Path)
            second = path[-1] == "create" and parameter.name == "kubeconfig" and path[0] != "queue"  # after its file
            if reads and not second and parameter.opts[-1] not in WRITTEN and path[0] not in SERVERS | {"links"}:
                yield " ".join(path), parameter


FOLDERS_ARE_READ = {
    "vet paths",
    "test paths",
    "replay recording",
    "shrink recording",
    "web --recording",
    "simulate trace",
}
NEED_MORE = {"replay --config", "web --config"}  # which are read once a recording was, or when somebody asks
TAKERS = {f"{path} {parameter.opts[-1]}": (path, parameter) for path, parameter in takers()}
CASES = [
    (taker, sort)
    for taker in TAKERS
    for sort in ODD
    if taker not in NEED_MORE and not (sort == "folder" and taker in FOLDERS_ARE_READ)
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A path of each sort, with an ending that commands read."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.yaml"))
    return {name: str(folder / f"{name}.yaml") for name in ODD}


@pytest.fixture
def bounded():
    """Let nothing take much memory, or wait for ever."""

    def late(_signal, _frame):
        raise AssertionError(f"still not said after {SECONDS} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (held + HEADROOM, hard))
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def called(path, parameter, file):
    """Write the call of a command that names a file in one place, and what it needs in others."""
    name = parameter.opts[-1]
    given = [file] if isinstance(parameter, click.Argument) else [name, file]
    others = REST.get((path, name), [])
    if path.split()[0] in VOLCANO and (path, name) not in REST:
        command = {" ".join(words): each for words, each in commands(program.program)}[path]
        others = [part for each in command.params if "--name" in each.opts for part in ("--name", "x")]
    after = ["--on", DUMP] if (path, name) == ("config diff", "new") else []
    return [*path.split(), *(others + given if name in ("new", "more") else given + others), *after]


@pytest.mark.parametrize(("taker", "sort"), CASES)
@pytest.mark.usefixtures("bounded")
def test_a_command_refuses_what_is_no_file_and_names_it(odd, taker, sort, monkeypatch):
    path, parameter = TAKERS[taker]
    monkeypatch.setenv("KUBECONFIG", os.devnull)
    result = CliRunner().invoke(program.program, called(path, parameter, odd[sort]), catch_exceptions=True)
    told = result.output + getattr(result, "stderr", "")
    assert result.exit_code != 0, told
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert odd[sort] in told or f"{sort}.yaml" in told, told
    assert any(word in told for word in ("it is a", "s a directory", "Is a directory")), told


@pytest.mark.parametrize("sort", ODD)
@pytest.mark.usefixtures("bounded")
def test_a_configuration_that_is_no_file_is_refused_by_who_runs(odd, sort):
    with pytest.raises(SourceError, match=rf"{odd[sort]} cannot be read: it is a "):
        sources.FileSource(odd[sort]).read_now()


@pytest.mark.parametrize("sort", ODD)
@pytest.mark.usefixtures("bounded")
def test_a_folder_of_plugins_may_hold_links_to_anything(odd, sort, tmp_path):
    (tmp_path / "mine.py").symlink_to(odd[sort])
    result = CliRunner().invoke(program.program, ["config", "check", POLICY, "--plugins-dir", str(tmp_path)])
    assert f"{tmp_path / 'mine.py'}" in result.output
    assert "it is a" in result.output


@pytest.mark.usefixtures("bounded")
def test_what_a_shell_passes_as_a_pipe_is_read_and_the_null_device_is_empty():
    reader, writer = os.pipe()
    os.write(writer, b"one: 1\r\n")
    os.close(writer)
    assert plain_files.text(f"/dev/fd/{reader}") == "one: 1\n"
    os.close(reader)
    assert plain_files.read(os.devnull, 0) == b""


@pytest.mark.parametrize("most", [0, 1, 4096])
def test_a_file_is_read_up_to_its_bound_and_no_further(tmp_path, most):
    file = tmp_path / "file"
    file.write_bytes(b"x" * most)
    assert plain_files.read(file, most) == b"x" * most
    file.write_bytes(b"x" * (most + 1))
    with pytest.raises(OSError, match=f"it has more than {most:,} bytes"):
        plain_files.read(file, most)


def test_text_is_read_as_far_as_yaml_is():
    assert plain_files.LARGEST_TEXT == documents.MAX_BYTES
