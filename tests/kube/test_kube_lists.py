"""Lists in pages come to an end, whatever the server says."""

import asyncio

import pytest
from watch_server import KIND, encode, manifest
from watch_sink import CheckingSink

from pumice.cache import reflector
from pumice.kube import errors
from pumice.kube.watches import arrivals, informers, lists
from pumice.kube.watches.watching import WatchSpec
from testbed import waiting


class Endless:
    """Answers every page with a token for the next; `page` gives the names in a page, and `last` is the page after which it ends."""

    def __init__(self, page, token=lambda number: f"t{number}", last=None):
        self.asked = 0
        self._page = page
        self._token = token
        self._last = last

    async def list_page(self, kind, *, query):
        assert kind is KIND
        assert query.get("continue", "") == (self._token(self.asked) if self.asked else "")
        self.asked += 1
        items = [manifest(name, name, 1) for name in self._page(self.asked)]
        more = {} if self.asked == self._last else {"continue": self._token(self.asked)}
        return encode({"metadata": {"resourceVersion": "100", **more}, "items": items})

    async def stream(self, kind, *, query, silence):
        raise errors.ApiError(422, "Invalid", "sendInitialEvents: Forbidden")
        yield b""


def read(server):
    known = reflector.Reflector(KIND, arrivals.identify, arrivals.tombstone)
    return asyncio.run(lists.PagedList(server, WatchSpec(KIND), 2).read(known.listing))


def fresh(number):
    return [f"{number}-a", f"{number}-b"]


@pytest.mark.parametrize(
    ("server", "pages", "told"),
    [
        (Endless(fresh, lambda _: "same"), 2, "4 objects in 2 pages, and the next page would be the same once more"),
        (Endless(lambda _: []), 100, "0 objects in 100 pages, and the last 100 of them brought nothing new"),
        (Endless(lambda _: ["a"]), 101, "1 objects in 101 pages, and the last 100 of them brought nothing new"),
        (Endless(lambda n: [str(n % 5)], lambda n: f"t{n % 5}"), 105, "5 objects in 105 pages"),
        (Endless(fresh), 6, "12 objects in 6 pages, and that is more than the 10 objects that are read of one list"),
    ],
)
def test_a_list_without_end_is_given_up_with_its_numbers(monkeypatch, server, pages, told):
    monkeypatch.setattr(lists, "MOST", 10)
    with pytest.raises(lists.EndlessListError) as raised:
        read(server)
    assert str(raised.value).startswith(f"the list of {KIND.plural}.{KIND.group}/{KIND.version} does not end: {told}")
    assert server.asked - pages in (0, 1)  # one page is asked for in advance


def test_pages_without_objects_are_no_end_and_no_fault():
    listing, version = read(Endless(lambda number: [] if number % 50 else ["found", f"at-{number}"], last=200))
    assert version == "100"
    assert len(listing.found) == 5


def test_a_watch_whose_list_does_not_end_says_so_and_pauses_before_the_next_attempt():
    async def run():
        server, slept = Endless(fresh, lambda _: "same"), []

        async def sleep(seconds):
            slept.append(seconds)
            await asyncio.sleep(3600)

        made = informers.Informers(server, [WatchSpec(KIND)], CheckingSink(), sleep=sleep)
        task = asyncio.create_task(made.run())
        async with asyncio.timeout(waiting.PATIENCE):
            while not slept:  # noqa: ASYNC110  what is waited for is state of the code under test
                await asyncio.sleep(0)
        (report,) = made.report()
        assert not report.synced
        assert "does not end: 4 objects in 2 pages" in report.error
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
