"""The page as a scheduler serves it, on a real API server: people with few rights, many viewers, a page that is killed, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import ssl
from pathlib import Path

import aiohttp
import pytest

from server.server_process import ROOT, Process, gang, node, placed, wait_for
from testbed import waiting

pytestmark = pytest.mark.kube


@pytest.fixture
def server(empty_api_server):
    empty_api_server.crds(ROOT / "deploy" / "crds")
    for name in ("n1", "n2"):
        node(empty_api_server, name)
    return empty_api_server


def account(server, namespace, name, role=""):
    """Make an account, which may see groups and pods of its namespace, or has a role of the cluster; returns a token of it."""
    server.kubectl("create", "serviceaccount", name, "-n", namespace)
    if role:
        server.kubectl("create", "clusterrolebinding", f"{namespace}-{name}", f"--clusterrole={role}", f"--serviceaccount={namespace}:{name}")  # fmt: skip
    else:
        listed = "--resource=pods,podgroups.scheduling.volcano.sh"
        server.kubectl("create", "role", name, "-n", namespace, "--verb=list", listed)
        server.kubectl("create", "rolebinding", name, "-n", namespace, f"--role={name}", f"--serviceaccount={namespace}:{name}")  # fmt: skip
    return server.kubectl("create", "token", name, "-n", namespace).strip()


def address(scheduler):
    wait_for(lambda: "what=page" in scheduler.log, scheduler)
    return "https://" + re.findall(r"msg=serving what=page address=(\S+)", scheduler.log)[-1]


@contextlib.asynccontextmanager
async def signed_in(where, token):
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as session:
        session.where = where
        async with session.post(f"{where}/api/session", json={"token": token}) as response:
            session.told = response.status, await response.json()
        yield session


async def get(session, path):
    async with session.get(session.where + path) as response:
        return await response.json()


async def until(session, path, wanted):
    async with asyncio.timeout(waiting.PATIENCE):
        while True:
            found = await get(session, path)
            if wanted(found):
                return found
            await asyncio.sleep(0.2)


def counted(server, resource, verb="POST"):
    """Say how many requests of a kind the API server has had."""
    pattern = rf'apiserver_request_total{{[^}}]*resource="{resource}"[^}}]*verb="{verb}"[^}}]*}} (\d+)'
    return sum(map(int, re.findall(pattern, server.kubectl("get", "--raw", "/metrics"))))


def test_people_see_what_they_may_list_and_a_hundred_viewers_ask_nothing(server):
    ours, theirs = server.new_namespace(), server.new_namespace()
    few, all_of_it, nothing = account(server, ours, "few"), account(server, ours, "admin", "cluster-admin"), account(server, theirs, "none", "system:discovery")  # fmt: skip
    gang(server, ours, "mine", 2, cpu="2")
    gang(server, theirs, "hidden-gang", 2, cpu="1")
    gang(server, ours, "big", 3, cpu="4")

    async def look(scheduler):
        where = address(scheduler)
        async with signed_in(where, "nonsense") as wrong, signed_in(where, few) as team, signed_in(where, all_of_it) as admin, signed_in(where, nothing) as nobody:  # fmt: skip
            assert wrong.told[0] == 401
            assert "does not know this token" in wrong.told[1]["problem"]
            assert team.told == (200, {"user": f"system:serviceaccount:{ours}:few"})
            whole = await until(admin, "/api/scene", lambda scene: len(scene["rows"]["jobs"]) == 3)
            own = await until(team, "/api/scene", lambda scene: len(scene["rows"]["jobs"]) == 2)
            explained = await get(team, f"/api/explain?what=job&name={ours}/big")
            assert await get(nobody, "/api/scene") | {"facts": {}, "time": 0, "version": 0, "first": 0} == {"version": 0, "time": 0, "first": 0, "pods": 0, "total": {}, "rows": {"queues": {}, "jobs": {}, "nodes": {}}, "facts": {}, "evictions": [], "pulse": []}  # fmt: skip
            for each in (team, nobody):
                await until(each, "/api/session", lambda told: "not answered yet" not in str(told))
            await many_viewers(server, admin)
            policy = await get(admin, "/api/policy")
            health = await until(admin, "/api/scene", lambda scene: scene["facts"].get("scheduler", {}).get("decided"))
            return whole, own, explained, policy, health["facts"]["scheduler"]

    with Process(server, "--leader-elect=false", "--web-address=127.0.0.1:0") as scheduler:
        scheduler.deciding()
        wait_for(lambda: len(placed(server, ours)) == 2, scheduler)
        whole, own, explained, policy, health = asyncio.run(look(scheduler))
        first = re.findall(r"what=page address=(\S+)", scheduler.log)
        (page,) = pages(scheduler.pid)
        os.kill(page, signal.SIGKILL)
        wait_for(lambda: len(re.findall(r"what=page address=(\S+)", scheduler.log)) > len(first), scheduler)
        again = asyncio.run(whole_again(scheduler, all_of_it))
        (page,) = pages(scheduler.pid)
        assert scheduler.stop() == 0
        waiting.until(lambda: not Path(f"/proc/{page}").exists())
        assert few not in scheduler.log
        assert all_of_it not in scheduler.log
    assert f"{theirs}/hidden-gang" in whole["rows"]["jobs"]
    assert set(whole["rows"]["nodes"]) == {"n1", "n2"}
    assert set(own["rows"]["jobs"]) == {f"{ours}/mine", f"{ours}/big"}
    assert own["rows"]["nodes"] == own["rows"]["queues"] == {}
    assert "hidden-gang" not in str((own, explained))
    assert explained["answer"]["cause"]
    assert policy["since"] > 0
    assert health["median"] > 0
    assert health["leading"]
    assert set(again["rows"]["jobs"]) == set(whole["rows"]["jobs"])


async def whole_again(scheduler, token):
    async with signed_in(address(scheduler), token) as session:
        return await until(session, "/api/scene", lambda scene: len(scene["rows"]["jobs"]) == 3)


def tally(server, asked):
    return [counted(server, each) for each in asked], counted(server, "pods", "LIST")


async def many_viewers(server, admin):
    """A hundred pages of somebody who has signed in, with all that they ask for: the API server hears nothing of them."""
    asked = ("tokenreviews", "subjectaccessreviews")
    before = tally(server, asked)
    version = (await get(admin, "/api/scene"))["version"]
    watching = [await admin.get(f"{admin.where}/api/changes?since={version}") for _ in range(100)]
    await asyncio.gather(*(get(admin, path) for path in ("/api/scene", "/api/node?name=n1", "/api/policy") * 30))
    assert tally(server, asked) == before
    for each in watching:
        each.close()


def pages(parent):
    """Give the processes that serve the page of a scheduler."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and b"pumice.web.inside" in (folder / "cmdline").read_bytes():
                above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(folder.name)] if above == parent else []
    return found
