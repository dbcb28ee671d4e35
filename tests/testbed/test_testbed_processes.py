import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_programs import program

from testbed import processes, waiting

ROOT = Path(processes.__file__).parents[1]


@pytest.fixture
def run(tmp_path):
    """Start shell scripts, and stop them at the end."""
    started = []

    def start(body):
        started.append(processes.Process([program(tmp_path, "daemon", body)], tmp_path / "log", cwd=tmp_path))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def is_running(pid):
    """Tell whether a process does anything; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_program_that_ends_early_is_reported_with_the_end_of_its_log(run):
    daemon = run("for line in $(seq 100); do echo line $line; done; exit 7")
    with pytest.raises(processes.StartError) as error:
        daemon.wait_until(lambda: False, waiting.PATIENCE)
    first, *rest = str(error.value).splitlines()
    assert first == "daemon ended with 7:"
    assert rest == [str(daemon.log), *(f"line {number}" for number in range(71, 101))]


def test_a_taken_port_is_told_from_other_failures(run):
    daemon = run("echo bind: address already in use; exit 1")
    with pytest.raises(processes.PortTakenError):
        daemon.wait_until(lambda: False, waiting.PATIENCE)


def test_an_earlier_run_in_the_same_log_is_not_blamed(run):
    run("echo bind: address already in use")
    daemon = run("echo something else; exit 1")
    with pytest.raises(processes.StartError) as error:
        daemon.wait_until(lambda: False, waiting.PATIENCE)
    assert type(error.value) is processes.StartError


def test_a_program_that_takes_too_long_is_reported(run):
    with pytest.raises(processes.StartError, match=r"daemon was not ready after 0.1 s"):
        run("exec sleep 60").wait_until(lambda: False, 0.1)


def test_stop_ends_a_frozen_program_too(run):
    daemon = run("exec sleep 60")
    daemon.freeze()
    daemon.stop()
    assert not is_running(daemon.pid)


def test_a_program_that_is_asked_may_say_farewell(run):
    daemon = run('trap "echo farewell; exit" TERM; echo up; while :; do sleep 0.05; done')
    daemon.wait_until(lambda: "up" in daemon.output(), waiting.PATIENCE)
    daemon.stop(grace=waiting.PATIENCE)
    assert daemon.output() == "up\nfarewell\n"


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "sys.exit(1)"])
def test_a_program_does_not_outlive_us(tmp_path, how):
    program(tmp_path, "daemon", "exec sleep 60")
    code = (
        "import os, signal, sys; from pathlib import Path; from testbed import processes;"
        "here = Path(sys.argv[1]);"
        "print(processes.Process([here / 'daemon'], here / 'log', cwd=here).pid, flush=True);" + how
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    pid = int(done.stdout)
    try:
        waiting.until(lambda: not is_running(pid))
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_free_port_can_be_taken():
    assert 0 < processes.free_port() < 65536
