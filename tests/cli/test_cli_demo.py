"""`pumice demo`: what it tells is what happened on the cluster, in plain lines and as a live picture."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from pumice.cli.demo import changes, showing, summary
from pumice.cli.demo.picture import Picture
from pumice.cli.demo.play import Play
from pumice.cli.demo.snapshot import State
from pumice.cli.program import program


def run(*arguments):
    return CliRunner().invoke(program, ["demo", *arguments], prog_name="pumice")


@pytest.fixture(scope="module")
def told():
    return run("--plain").output


@pytest.fixture(scope="module")
def played():
    play = Play()
    return play, list(play.scenes())


def final(played, name):
    return next(job for job in played[1][-1].jobs if job.title == name)


# -- the story ---------------------------------------------------------------------------------------------------


def test_no_gang_is_ever_seen_between_nothing_and_its_minimum(played):
    for seen in played[1]:
        for job in seen.jobs:
            has = len(job.members) - job.count(State.WAITING)
            assert has == 0 or has >= job.minimum, (seen.time, job.title)


def test_no_node_is_ever_over_committed(played):
    assert all(0 <= node.used <= node.cpu for seen in played[1] for node in seen.nodes)


def test_cpu_of_queues_is_that_of_their_pods_on_the_nodes(played):
    for seen in played[1]:
        assert sum(queue.allocated for queue in seen.queues) == sum(node.used for node in seen.nodes), seen.time


def test_everything_but_the_job_that_is_too_large_completes(played):
    assert [(job.title, job.phase) for job in played[1][-1].jobs] == [
        ("research/resnet", "Completed"),
        ("production/nightly", "Completed"),
        ("research/bert", "Completed"),
        ("production/crawler", "Completed"),
        ("tools/probe", "Completed"),
        ("research/giant", "Inqueue"),
    ]


def test_waiting_gang_starts_whole_when_others_finish(played):
    bert = final(played, "research/bert")
    assert len({member.started for member in bert.members}) == 1
    assert bert.members[0].started - bert.created > 30_000_000


def test_elastic_job_starts_with_some_and_grows(played):
    crawler = final(played, "production/crawler")
    starts = sorted(member.started for member in crawler.members)
    assert crawler.minimum <= starts.count(starts[0]) < len(starts)


def test_pod_without_requests_starts_on_a_full_cluster(played):
    probe = final(played, "tools/probe").members[0]
    seen = next(s for s in played[1] if s.time == probe.started)
    assert probe.cpu == 0
    assert all(node.used == node.cpu for node in seen.nodes)


# -- plain -------------------------------------------------------------------------------------------------------


def test_output_without_a_terminal_is_plain(told):
    assert run().output == told


def test_plain_output_is_ascii_without_control_sequences(told):
    assert told.isascii()
    assert "\x1b" not in told


def test_plain_output_is_the_same_in_every_process(told):
    code = "import sys; sys.argv = ['pumice', 'demo', '--plain']; from pumice.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == told


def test_plain_lines_come_in_the_order_of_time(told):
    times = re.findall(r"^(\d\d:\d\d)  ", told, flags=re.MULTILINE)
    assert times == sorted(times)
    assert len(times) > 20


def test_summary_says_with_numbers_why_the_last_job_waits(told):
    why = told.partition("Why research/giant waits\n")[2]
    assert "It needs 9 pods of 4 cpu at the same time, 36 cpu in all; the 4 nodes have 32 cpu" in why
    assert "only 8 such pods fit, 1 too few" in why
    assert "Unschedulable (NotEnoughResources): " in why
    assert "giant-8: 0/4 nodes are unavailable: 4 Insufficient cpu." in why


def test_only_jobs_that_wait_are_explained(told):
    assert re.findall(r"^Why (\S+) waits$", told, flags=re.MULTILINE) == ["research/giant"]


def test_speed_sets_the_pace(monkeypatch):
    slept = []
    monkeypatch.setattr(showing.time, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(showing.time, "sleep", slept.append)
    last = list(showing.paced(Play(), 20))[-1]
    assert sum(slept) == pytest.approx(last.time / 20_000_000)


@pytest.mark.parametrize("speed", ["0", "-1", "fast"])
def test_impossible_speed_is_a_usage_error(speed):
    assert run("--speed", speed).exit_code == 2


# -- stopping ----------------------------------------------------------------------------------------------------


def interrupted(play, speed):
    for number, seen in enumerate(play.scenes()):
        if number == 50:
            raise KeyboardInterrupt
        yield seen


def test_interrupt_ends_with_a_summary_of_what_happened_so_far(monkeypatch):
    monkeypatch.setattr(showing, "paced", interrupted)
    result = run("--plain")
    assert result.exit_code == 130
    assert "Stopped after 00:49 of simulated time, 50 cycles" in result.output
    assert "Why research/bert waits" in result.output
    assert "0 such pods fit now, 6 too few." in result.output


def test_interrupt_of_the_live_table_leaves_the_screen_and_summarises(monkeypatch, capsys):
    monkeypatch.setattr(showing, "paced", interrupted)
    assert showing.live(10) is True
    assert "Stopped after 00:49" in capsys.readouterr().out


# -- live --------------------------------------------------------------------------------------------------------


def drawn(played, width, height, until=10**9):
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    picture, last = Picture(10), None
    for seen in played[1]:
        if seen.time <= until:
            picture.see(changes.between(last, seen), seen)
            last = seen
    return ["".join(part.text for part in line).rstrip() for line in console.render_lines(picture.draw(console))]


@pytest.mark.parametrize(("width", "height"), [(200, 60), (120, 40), (110, 24), (80, 24), (80, 40)])
@pytest.mark.parametrize("second", [0, 45, 92, 200])
def test_picture_fits_the_terminal_and_cuts_no_row(played, width, height, second):
    lines = drawn(played, width, height, second * 1_000_000)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert sum("node-" in line and " of 8" in line for line in lines) == 4
    if second == 200:
        assert sum(re.search(r"(Completed|Inqueue)", line) is not None for line in lines) >= 6
        assert any(line.startswith("production/crawler  ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪   2 of 10") for line in lines)


def test_members_are_told_apart_by_the_form_of_their_block(played):
    lines = drawn(played, 120, 40, 92_000_000)
    assert any(line.startswith("research/bert       ▣ ▣ ▣ ▣ ▣ ▣") for line in lines)
    assert any(line.startswith("production/crawler  ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪ ■ ■") for line in lines)
    assert any(line.startswith("research/giant      □ □ □ □ □ □ □ □ □") for line in lines)


def test_live_table_shows_every_job_and_the_summary(capsys):
    assert showing.live(10_000) is False
    output = capsys.readouterr().out
    assert "Why research/giant waits" in output
    assert "research/giant      □ □ □ □ □ □ □ □ □" in output


def test_folded_lines_keep_their_words_and_their_width():
    line = "    " + " ".join(f"word{n}" for n in range(30))
    folded = summary.fold([line, ""], 40)
    assert max(map(len, folded)) <= 40
    assert " ".join(folded).split() == line.split()
    assert folded[-1] == ""
