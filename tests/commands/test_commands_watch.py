"""`--watch` prints a list once and then each row when it changes; it takes a cut watch up again, and gives up where that is of no use."""

from __future__ import annotations

import asyncio
import contextlib

import click
import command_objects as objects
import pytest

from pumice.api import kinds
from pumice.cli.volcano import calls, failing, job_rows, job_verbs, lists, queue_rows, watching
from pumice.kube import errors
from testbed import waiting

JOBS = lists.Listing((lists.Read(kinds.JOB),), lambda _: (*job_rows.COLUMNS, *job_rows.WIDE))
QUEUES = lists.Listing(
    (lists.Read(kinds.QUEUE), lists.Read(kinds.POD_GROUP)),
    lambda found: queue_rows.table(queue_rows.counted(found[1])),
)


def shown(page, found, now=objects.NOW):
    return [line.split() for line in page.news(found, now)]


def test_row_is_printed_again_when_it_changes_and_not_because_time_passes():
    page = watching.Page(JOBS, "")
    assert shown(page, [[]]) == []
    first = shown(page, [[objects.job("a"), objects.job("b")]])
    assert [cells[0] for cells in first] == ["Name", "a", "b"]
    assert shown(page, [[objects.job("a"), objects.job("b")]], objects.NOW + 10**9) == []
    changed = shown(page, [[objects.job("a"), objects.job("b", phase="Completed")]])
    assert [cells[0:3:2] for cells in changed] == [["b", "Completed"]]


def test_columns_stay_when_a_job_begins_to_wait():
    table = job_verbs.Table(lambda found: found[0], everywhere=False, wide=False, follows=True)
    page = watching.Page(lists.Listing((lists.Read(kinds.JOB),), table), "")
    heading, _ = shown(page, [[objects.job("a")]])
    assert heading[-1] == "Reason"
    waits = objects.job("a", phase="Pending")
    waits["status"]["state"]["message"] = "no node is there"
    (row,) = shown(page, [[waits]])
    assert row[-4:] == ["no", "node", "is", "there"]


def test_object_that_is_gone_is_printed_once_more_as_deleted():
    page = watching.Page(JOBS, "")
    page.news([[objects.job("a"), objects.job("b")]], objects.NOW)
    assert [cells[0:3:2] for cells in shown(page, [[objects.job("b")]])] == [["a", "Deleted"]]
    assert shown(page, [[objects.job("b")]]) == []


def test_queue_is_printed_again_when_its_groups_change():
    page = watching.Page(QUEUES, "")
    page.news([[objects.queue("a"), objects.queue("b")], []], objects.NOW)
    (row,) = shown(page, [[objects.queue("a"), objects.queue("b")], [objects.group("g", "b", "Running")]])
    assert row == ["b", "1", "Open", "0", "0", "1", "0", "0"]


@pytest.mark.parametrize(
    ("form", "first", "then"),
    [
        ("name", ["job.batch.volcano.sh/a", "job.batch.volcano.sh/b"], ["job.batch.volcano.sh/b"]),
        ("json", 2, 1),
        ("yaml", 1, 1),
    ],
)
def test_objects_are_printed_again_when_they_change(form, first, then):
    page = watching.Page(JOBS, form)
    lines = page.news([[objects.job("a"), objects.job("b")]], objects.NOW)
    again = page.news([[objects.job("a"), objects.job("b", phase="Failed")]], objects.NOW)
    assert lines == first if form == "name" else len(lines) == first
    assert again == then if form == "name" else len(again) == then
    if form == "yaml":
        assert again[0].startswith("---\n")


# -- patience --------------------------------------------------------------------------------------------------------


def test_watch_is_given_up_after_failures_in_a_row_without_a_word():
    waited, state = [], ["waiting", None, "no connection"]

    async def sleep(seconds):
        waited.append(seconds)

    patience = watching.Patience(lambda: tuple(state), sleep)

    async def attempts(count):
        for _ in range(count):
            await patience(1.0)

    asyncio.run(attempts(watching.MOST_FAILURES))
    state[1] = 5.0  # something was heard, so counting begins anew
    asyncio.run(attempts(watching.MOST_FAILURES))
    with pytest.raises(
        failing.CommandError, match=f"gave up after {watching.MOST_FAILURES} attempts in a row: no connection"
    ):
        asyncio.run(attempts(1))
    assert len(waited) == 2 * watching.MOST_FAILURES


@pytest.mark.parametrize("state", ["forbidden", "absent"])
def test_watch_that_cannot_succeed_is_given_up_at_once(state):
    patience = watching.Patience(lambda: (state, None, "why"), asyncio.sleep)
    with pytest.raises(failing.CommandError, match="why"):
        asyncio.run(patience(1.0))


# -- against a server ------------------------------------------------------------------------------------------------


class Screen:
    """Collects what is printed, and waits for it."""

    def __init__(self):
        self.lines = []
        self._new = asyncio.Event()

    def __call__(self, line, **_):
        self.lines += line.splitlines()
        self._new.set()

    async def has(self, *words):
        async with asyncio.timeout(waiting.PATIENCE):
            while not any(set(words) <= set(line.split()) for line in self.lines):
                self._new.clear()
                await self._new.wait()


@contextlib.asynccontextmanager
async def watched(commands, wanted, form=""):
    task = asyncio.create_task(watching.run(calls.Place(kubeconfig=str(commands.server.kubeconfig)), wanted, form))
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_changes_are_seen_as_they_happen(commands, monkeypatch):
    async def told():
        screen = Screen()
        monkeypatch.setattr(click, "echo", screen)
        wanted = lists.Listing((lists.Read(kinds.JOB, commands.namespace),), lambda _: job_rows.COLUMNS)
        async with watched(commands, wanted):
            await asyncio.to_thread(commands.job, "train", state={"phase": "Pending"})
            await screen.has("train", "Pending")
            jobs = commands.path("batch.volcano.sh/v1alpha1", "jobs", "train")
            patch = {"status": {"state": {"phase": "Running"}}}
            await asyncio.to_thread(
                commands.server.call, "PATCH", f"{jobs}/status", patch, content_type="application/merge-patch+json"
            )
            await screen.has("train", "Running")
            await asyncio.to_thread(commands.server.call, "DELETE", jobs)
            await screen.has("train", "Deleted")
        return [line.split()[0] for line in screen.lines]

    seen = asyncio.run(told())
    assert seen[0] == "Name"
    assert set(seen[1:]) == {"train"}


def test_kind_that_is_not_served_ends_the_watch_with_how_to_install_it(commands):
    unknown = kinds.Kind(name="Thing", group="example.com", version="v1", plural="things", namespaced=True)

    async def told():
        async with watched(commands, lists.Listing((lists.Read(unknown),), lambda _: job_rows.COLUMNS)) as task:
            await task

    with pytest.raises(failing.CommandError, match="does not serve things of"):
        asyncio.run(told())


def test_interrupt_ends_quietly(commands, monkeypatch):
    async def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "run", interrupted)
    assert commands.failed("job", "list", "--watch", status=130) == ""


def test_cluster_that_cannot_be_found_fails_a_watch_as_it_fails_a_list(commands, monkeypatch):
    async def lost(*_):
        raise errors.ConfigurationError("no kubeconfig")

    monkeypatch.setattr(watching, "run", lost)
    assert commands.failed("job", "list", "--watch") == "Failed to list job: no kubeconfig\n"
