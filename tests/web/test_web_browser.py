"""The page in a real browser: every view opened and used, by keys too, without a complaint, whatever things are called."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
import web_worlds as worlds

from pumice.api import timestamp
from pumice.framework import registry
from pumice.study.following import scene as scenes
from pumice.web import recordings, sources
from recording import recording_rig as rig
from testbed import browser, waiting
from tests.lives import scripts
from up.running_cluster import RunningCluster

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
JUDGE = (HERE / "accessibility.js").read_text()
VIEWS = ("overview", "queues", "jobs", "nodes", "evictions", "policy", "time")
SHOTS = Path(given).absolute() if (given := os.environ.get("PUMICE_SCREENSHOTS")) else None
LONG = "x" * 253
TURNED = "\u202egnp.exe"
MARKUP = "<script>document.title='taken'</script><img src=x onerror=alert(1)>"


async def judged(page, where):
    """Fail if the page complained, or shuts somebody out."""
    assert page.problems == [], where
    assert await page.evaluate(JUDGE) == [], where


async def shot(page, name):
    if SHOTS:
        (SHOTS / f"{name}.png").write_bytes(await page.screenshot())


async def go(page, view, ready="document.querySelector('main h1')"):
    await page.evaluate(f"location.hash = '#/{view}'")
    await page.until(f"location.hash.startsWith('#/{view}') && {ready}")


# -- a cluster that was fed by hand ------------------------------------------------------------------------------------


def hostile():
    cluster = worlds.small()
    worlds.feed(cluster, "ADDED", worlds.queue(MARKUP), worlds.node(f"n-{TURNED}"), worlds.node(f"n-{LONG}"))
    for name in (MARKUP, LONG, TURNED):
        worlds.feed(cluster, "ADDED", worlds.group(name, MARKUP, message=f"no room for {MARKUP}"))
        worlds.feed(cluster, "ADDED", worlds.pod(f"p-{name}", name))
    worlds.feed(cluster, "ADDED", worlds.eviction(MARKUP, f"Pod is evicted, because of {MARKUP}"))
    told = "Pod is evicted, because of preempt for pod a/waits-0 of group a/waits in queue research by the rules of gang, plan 3"
    for number in (1, 2):
        worlds.feed(cluster, "ADDED", worlds.eviction("runs-0", told, number))
    cluster.turn()
    cluster.asking.seconds = waiting.PATIENCE
    return cluster


def test_names_are_text_keys_are_enough_and_a_lost_connection_is_told():
    async def run():
        cluster = hostile()
        async with browser.running() as chromium, worlds.served(cluster) as served:
            page = await chromium.open(f"{served.address}/#token={served.guard.token}")
            await page.until("document.querySelector('.tile')")
            assert "token" not in await page.evaluate("location.href")
            for view in VIEWS:
                await go(page, view)
                await judged(page, view)
            assert await page.evaluate("document.title") == "Time \N{EN DASH} Pumice"
            await keys(page)
            await numbers(page)
            await one_of_each(page)
            await pushed(page, cluster, served)
            await printed(page)
            await small_and_dark(chromium, served)
            await refused(chromium, served)
            assert all(each.startswith((served.address, "blob:", "data:")) for each in page.requests)
            # The server goes, and the page says so.
            await served.server.stop()
            await page.until("document.getElementById('link').textContent.includes('lost')")

    asyncio.run(run())


async def keys(page):
    """Find a job and open it without a mouse."""
    for key in "gj":
        await page.press(key)
    await page.until("document.querySelector('table.rows')")
    await page.press("/")
    await page.write("queue:research waiting")
    await page.until("document.querySelectorAll('tr[data-index]').length === 1")
    assert await page.evaluate("location.hash") == "#/jobs?q=queue%3Aresearch%20waiting"
    await page.press("Tab")  # CSV
    await page.press("Tab")  # the rows
    await page.press("ArrowDown")
    assert await page.evaluate("document.activeElement.dataset.index") == "0"
    assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    await page.press("Enter")
    await page.until("document.querySelector('main h1')?.textContent === 'a/waits'")
    await page.text("no node has 9 cpu free")
    await page.press("?")
    await page.until("document.getElementById('keys').open")
    await page.press("Escape")
    await page.until("!document.getElementById('keys').open")
    await go(page, "nodes", "document.querySelector('a.node')")
    await page.evaluate("document.querySelector('a.node').focus()")
    await page.press("ArrowRight")
    assert await page.evaluate("document.activeElement === document.querySelectorAll('a.node')[1]")
    await page.press("t")
    await page.until("document.getElementById('times').textContent === 'Absolute times'")


async def numbers(page):
    """See that the page writes amounts as `pumice top` does."""
    cases = [(name, units) for name in ("cpu", "memory", "nvidia.com/gpu") for units in (0, 1, 500, 1500, 48_000, 2**20, 3 * 2**29, 13 * 2**30, 3 * 2**39)]  # fmt: skip
    told = await page.evaluate(
        f"import('/page/words.js').then((words) => {[list(each) for each in cases]}.map((each) => words.amount(...each)))"
    )
    assert told == [scenes.short(*each) for each in cases]
    table = await page.evaluate("import('/page/dom.js').then((dom) => dom.csv([['=1+1', 'a,\"b\"', -5]]))")
    assert table == '\'=1+1,"a,""b""",-5\r\n'
    await go(page, "overview", "document.querySelectorAll('svg.plot').length === 3")
    one, all_of_them = await saved(page, "[['', document.querySelector('svg.plot')]]"), await saved(page)
    assert one[0] == all_of_them[0]
    assert all_of_them[1] > 3 * one[1]
    await go(page, "nodes", "document.querySelector('a.node')")
    wide, tall = await saved(page)
    assert wide > 1000
    assert tall > 40


async def saved(page, plots=""):
    """Give the size of the picture that the PNG button saves, or of one of some plots."""
    what = f"dom.png({plots})" if plots else "new Promise((done) => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => { if (blob.type === 'image/png') { URL.createObjectURL = make; done(blob); } return make(blob); }; [...document.querySelectorAll('button')].find((b) => b.textContent === 'PNG').click(); })"  # fmt: skip
    return await page.evaluate(
        f"import('/page/dom.js').then(async (dom) => {{ const image = await createImageBitmap(await {what}); return [image.width, image.height]; }})"
    )


async def one_of_each(page):
    """Open one job, queue and node, each with its answer."""
    await go(page, "jobs/a%2Fwaits", "document.querySelector('.smallest')")
    await judged(page, "a job")
    await go(page, "queues/research", "document.body.innerText.includes('How its share comes about')")
    await page.text("Served next")
    await judged(page, "a queue")
    await go(page, "nodes/n-0", "document.body.innerText.includes('a/runs-0')")
    await page.text("why not here")
    await page.text("Who could go")
    await judged(page, "a node")
    await page.evaluate(
        "[...document.querySelectorAll('button')].find((b) => b.textContent.includes('drained')).click()"
    )
    await page.text("binds")
    await go(page, "policy", "document.body.innerText.includes('In force')")
    await page.text("Its check finds nothing wrong.")
    await judged(page, "policy, read")


async def pushed(page, cluster, served):
    """See a change without asking for it, and then the moment before it."""
    await go(page, "jobs", "document.querySelector('tr[data-index]')")
    cluster.now = lambda: worlds.NOW + 60_000_000
    worlds.feed(cluster, "ADDED", worlds.group("new", "research"))
    cluster.turn()
    served.server.stream.tell()
    await page.text("a/new")
    await go(page, "time", "document.querySelector('.slider')")
    await page.evaluate(
        "(() => { const slider = document.querySelector('.slider'); slider.value = slider.min; slider.dispatchEvent(new Event('input')); })()"
    )
    await page.until("!document.getElementById('moment').hidden")
    await judged(page, "the past")
    await go(
        page, "jobs/a%2Fwaits", "document.querySelector('.cause') && document.body.innerText.includes('as it was then')"
    )
    await page.evaluate("[...document.querySelectorAll('#moment button')][0].click()")
    await page.until("document.querySelector('.cause') && !document.body.innerText.includes('as it was then')")
    await page.evaluate("history.back()")
    await page.until(
        "document.querySelector('.slider') && location.hash.startsWith('#/time?at=') && !document.getElementById('moment').hidden"
    )
    await page.evaluate(
        "[...document.querySelectorAll('button')].find((b) => b.textContent.startsWith('Hold')).click()"
    )
    await page.evaluate("[...document.querySelectorAll('#moment button')][0].click()")
    await page.until("document.getElementById('moment').hidden && document.body.innerText.includes('a/new')")


async def printed(page):
    """See that what only a screen needs is not printed, and that everything else is."""
    for view in VIEWS:
        await go(page, view)
        await page.call("Emulation.setEmulatedMedia", media="print")
        shown = "[...document.querySelectorAll('button:not(.sort), nav, .search')].filter((each) => each.checkVisibility()).length"
        assert await page.evaluate(shown) == 0, view
        assert await page.evaluate("document.querySelector('main').innerText.length") > 20, view
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0, view
        heads = "[...document.querySelectorAll('.sort')].every((each) => each.checkVisibility() || !each.closest('th').checkVisibility())"
        assert await page.evaluate(heads), view
        pdf = await page.call("Page.printToPDF", printBackground=False)
        assert len(pdf["data"]) > 5000, view
        await page.call("Emulation.setEmulatedMedia", media="")


def test_all_rows_are_printed_and_not_only_those_in_sight():
    async def run():
        cluster = worlds.small()
        worlds.feed(cluster, "ADDED", *(worlds.group(f"many-{number}") for number in range(500)))
        cluster.turn()
        async with browser.running() as chromium, worlds.served(cluster) as served:
            page = await chromium.open(f"{served.address}/#token={served.guard.token}")
            await page.until("document.querySelector('.tile')")
            await go(page, "jobs", "document.querySelector('tr[data-index]')")
            rows = "document.querySelectorAll('tr[data-index]').length"
            before = await page.evaluate(rows)
            await page.evaluate(
                f"addEventListener('beforeprint', () => setTimeout(() => 0) && (window.printed = {rows}))"
            )
            pdf = await page.call("Page.printToPDF")
            return before, await page.evaluate("window.printed"), await page.evaluate(rows), len(pdf["data"])

    before, during, after, size = asyncio.run(run())
    assert max(before, after) < 100
    assert during == 502
    assert size > 50_000


async def small_and_dark(chromium, served):
    """See every view on a phone in the dark."""
    page = await chromium.open(f"{served.address}/#token={served.guard.token}", width=390, height=800, dark=True)
    await page.until("document.querySelector('.tile')")
    for view in VIEWS:
        await go(page, view)
        await judged(page, f"{view}, small and dark")


async def refused(chromium, served):
    """See who comes with a wrong token be asked for the right one."""
    page = await chromium.open(f"{served.address}/#token=guessed")
    await page.text("this token is not the one that was printed")
    await page.evaluate(f"document.querySelector('input').value = {served.guard.token!r}")
    await page.click("form button")
    await page.until("document.querySelector('.tile')")


def test_page_does_not_grow_in_an_hour_of_churn():
    async def run():
        cluster = worlds.small()
        moment = [worlds.NOW]
        cluster.now = lambda: moment[0]
        async with browser.running() as chromium, worlds.served(cluster) as served:
            page = await chromium.open(f"{served.address}/#token={served.guard.token}")
            await page.until("document.querySelector('.tile')")
            for view in ("overview", "jobs", "nodes", "overview"):
                await go(page, view)
            await live(cluster, served, page, moment, 600)
            before = await heap(page)
            await live(cluster, served, page, moment, 3600)
            return before, await heap(page), page.problems

    before, after, problems = asyncio.run(run())
    assert problems == []
    assert after[1] <= before[1] + 50  # elements
    assert after[0] < 1.15 * before[0] + 300_000  # bytes


async def live(cluster, served, page, moment, seconds):
    """Let seconds pass in which jobs come, wait for other reasons, go, and have others evicted."""
    for second in range(seconds):
        moment[0] += 1_000_000
        number = moment[0] // 1_000_000
        name = f"job-{number % 50}"
        worlds.feed(cluster, "DELETED", worlds.group(f"job-{(number + 25) % 50}"))
        worlds.feed(cluster, "MODIFIED", worlds.group(name, message=f"no room in second {number}"), worlds.pod(f"p-{name}", name))  # fmt: skip
        worlds.feed(cluster, "MODIFIED", worlds.node(f"n-{number % 2}", str(8 + number % 3)))
        worlds.feed(cluster, "ADDED", worlds.eviction(f"gone-{number}", "Pod is evicted, because of preempt", number))
        cluster.turn()
        served.server.stream.tell()
        if second % 50 == 49:  # a batch each, as many as a page takes at once
            version = cluster.board.version
            await page.until(f"Number(document.body.dataset.version) >= {version}")


async def heap(page):
    """Give the bytes that scripts hold, and how many elements there are, once nothing is left to be collected."""
    await asyncio.sleep(1.5)  # what is drawn is drawn by then
    for _ in range(3):
        await page.call("HeapProfiler.collectGarbage")
    found = await page.call("Runtime.getHeapUsage")
    return found["usedSize"], await page.evaluate("document.querySelectorAll('*').length")


# -- a recorded cluster ------------------------------------------------------------------------------------------------


def test_recording_is_shown_and_explained_as_of_the_chosen_moment_in_every_view(tmp_path):
    rig.live(scripts.draw(5, cycles=10), tmp_path)
    cluster = recordings.read(rig.files(tmp_path), registry.installed(), sources.Policy())
    cluster.turn()
    cluster.asking.seconds = waiting.PATIENCE
    board = cluster.board
    moment = (board.first + board.time) // 2_000_000 * 1_000_000
    then = msgspec.json.decode(board.at(moment).data())["rows"]
    job, queue, node = (quote(next(iter(then[table])), safe="") for table in ("jobs", "queues", "nodes"))

    async def run():
        async with browser.running() as chromium, worlds.served(cluster) as served:
            page = await chromium.open(f"{served.address}/#token={served.guard.token}#/jobs?at={moment}")
            await page.until("document.querySelector('table.rows') && !document.getElementById('moment').hidden")
            for view in VIEWS:
                await go(page, view)
                assert await page.evaluate("location.hash") == f"#/{view}?at={moment}"
                await judged(page, view)
            told = timestamp.format_timestamp(moment)
            await go(page, f"jobs/{job}", f"document.body.innerText.includes('as of {told}')")
            await judged(page, "a job that was")
            await go(page, f"queues/{queue}", "document.body.innerText.includes('How its share comes about')")
            await page.text("Served next")
            await judged(page, "a queue as it was")
            await go(page, f"nodes/{node}", "document.body.innerText.includes('Who could go')")
            await judged(page, "a node as it was")
            await page.evaluate("[...document.querySelectorAll('button')].find((b) => b.textContent.includes('drained')).click()")  # fmt: skip
            await page.text("binds")
            await go(page, "policy", "document.body.innerText.includes('In force')")
            await go(page, "queues", "document.querySelector('.share')")
            await page.evaluate("[...document.querySelectorAll('#moment button')][0].click()")
            await page.until("document.getElementById('moment').hidden && location.hash === '#/queues'")
            await page.evaluate("history.back()")  # an address with the moment in it
            await page.until("!document.getElementById('moment').hidden")
            assert page.problems == []

    asyncio.run(run())


# -- a cluster of `pumice up` ------------------------------------------------------------------------------------------

POOLS = """
pools:
- {name: cpu, count: 6, cpu: 32, memory: 128Gi, zones: 3}
- {name: gpu, count: 8, cpu: 64, memory: 512Gi, zones: 2, hyperNodes: 2, resources: {nvidia.com/gpu: 8}}
"""
POLICY = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues"


def job(name, queue, size, cpu, gpu, *, priority=""):
    asked = {"cpu": str(cpu), "memory": "16Gi", **({"nvidia.com/gpu": str(gpu)} if gpu else {})}
    limits = {key: value for key, value in asked.items() if "/" in key}
    container = {"name": "c", "image": "x", "command": ["sleep", "9999"], "resources": {"requests": asked, "limits": limits}}  # fmt: skip
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "queue": queue,
            "minAvailable": size,
            "priorityClassName": priority,
            "tasks": [{"name": "w", "replicas": size, "template": {"spec": spec}}],
        },
    }


def test_cluster_of_pumice_up_is_shown_as_it_lives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pools.yaml").write_text(POOLS)
    (tmp_path / "policy.yaml").write_text(POLICY)
    arguments = ("--web", "--nodes", "pools.yaml", "--config", "policy.yaml")
    with RunningCluster(tmp_path, *arguments) as cluster:
        line = next(each for each in cluster.lines if "http://" in each)
        load(cluster)
        asyncio.run(watched("http://" + line.split("http://")[1].strip()))


def load(cluster):
    call = cluster.caller.call
    call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})  # fmt: skip
    for name, spec in {
        "production": {"weight": 4},
        "research": {"weight": 2, "deserved": {"cpu": "64"}, "guarantee": {"resource": {"cpu": "32"}}},
        "batch": {"weight": 1, "capability": {"cpu": "120"}},
    }.items():
        call("POST", QUEUE, worlds.queue(name, **spec))
    jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    for index in range(6 if SHOTS else 3):
        call("POST", jobs, job(f"ablation-{index}", "research", 2, 4, 4))
    for index in range(8 if SHOTS else 2):
        call("POST", jobs, job(f"etl-{index}", "batch", 4, 4, 0))
    call("POST", jobs, job("llama", "production", 4, 6, 8))
    call("POST", jobs, job("huge", "production", 16, 8, 8))
    pods = "/api/v1/namespaces/default/pods"
    waiting.until(
        lambda: sum(each["status"]["phase"] == "Running" for each in call("GET", pods)["items"]) > (30 if SHOTS else 10)
    )
    call("POST", jobs, job("eval", "production", 2, 6, 4, priority="urgent"))


async def watched(address):
    async with browser.running() as chromium:
        page = await chromium.open(address)
        await page.until("document.querySelector('.tile')")
        await page.text("default/huge")
        await go(page, "nodes", "document.body.innerText.includes('gpu-hyper-0')")
        await judged(page, "nodes")
        await shot(page, "nodes")
        await go(page, "overview", "document.querySelector('.share')")
        await judged(page, "overview")
        await shot(page, "overview")
        await go(page, "jobs", "document.querySelectorAll('tr[data-index]').length > 5")
        # Tests look at one that runs: what would start one that waits is worked out for long here.
        which = (
            "row.querySelector('.chip.waits') && !row.innerText.includes('huge')"
            if SHOTS
            else "row.querySelector('.chip.good')"
        )
        rows = "[...document.querySelectorAll('tr[data-index]')]"
        found = await page.until(f"{rows}.find((row) => {which})?.dataset.focus")
        ready = f"document.querySelector('{'.smallest' if SHOTS else '.cause'}')"
        await go(page, f"jobs/{found.replace('/', '%2F')}", ready)
        await judged(page, "a job")
        await shot(page, "job")
        await go(page, "queues/research", "document.body.innerText.includes('Who holds what')")
        await judged(page, "a queue")
        await shot(page, "queue")
        if SHOTS:
            await go(page, "evictions", "document.querySelectorAll('tr[data-index]').length > 0")
            await shot(page, "evictions")
            dark = await chromium.open(address, dark=True)
            await dark.until("document.querySelector('.share')")
            await asyncio.sleep(2)
            await shot(dark, "dark")
