"""Signing in with a real browser, as inside a cluster: a wrong token, one with few rights, signing out."""

from __future__ import annotations

import asyncio

import pytest
from test_web_browser import JUDGE, go
from web_people import People, inside, shared

from testbed import browser

pytestmark = pytest.mark.browser


async def sign_in(page, token):
    await page.until("document.querySelector('form.sign-in input')")
    await page.evaluate("document.querySelector('form.sign-in input').value = ''")
    await page.evaluate("document.querySelector('form.sign-in input').focus()")
    await page.write(token)
    await page.press("Enter")


def test_who_signs_in_sees_what_they_may_and_who_signs_out_nothing():
    async def run():
        people = People({"ada": {"podgroups@a", "pods@a", "nodes", "configmaps"}})
        cluster = shared()
        cluster.told({"scheduler": {"leading": True, "decided": 7, "skipped": 1, "median": 4.25, "longest": 1250.0, "last": 3.0, "breakdowns": {"gang": 2}, "troubles": [], "silence": 0}})  # fmt: skip
        cluster.turn()
        async with browser.running() as chromium, inside(cluster, people) as served:
            page = await chromium.open("about:blank")
            await page.call("Security.setIgnoreCertificateErrors", ignore=True)
            await page.call("Page.navigate", url=f"{served.address}/#/jobs")
            await page.text("A token that the API server of this cluster knows")
            assert await page.evaluate(JUDGE) == []
            await sign_in(page, "token-of-nobody")
            await page.until(
                "document.querySelector('.sign-in .problem').textContent.includes('does not know this token')"
            )
            page.problems.clear()  # browsers complain about every request that is refused
            await sign_in(page, "token-of-ada")
            await page.until("document.querySelectorAll('tr[data-index]').length === 3")
            assert await page.evaluate("document.cookie") == ""
            assert "Sign out ada" in await page.evaluate("document.getElementById('who').textContent")
            for view in ("overview", "queues", "jobs", "nodes", "evictions", "time", "jobs/a%2Fhopes", "nodes/n-1"):
                await go(page, view)
                assert await page.evaluate(JUDGE) == [], view
                assert "secret" not in await page.evaluate("document.body.innerText"), view
            await page.text("1 pod of jobs elsewhere")
            await go(page, "evictions", "document.body.innerText.includes('a job elsewhere')")
            await go(page, "overview", "document.body.innerText.includes('Cycles take 4.3 ms')")
            await page.text("Broke down: gang 2 times")
            assert page.problems == []
            await page.click("#who")
            await page.until("document.querySelector('form.sign-in')")
            assert "a/hopes" not in await page.evaluate("document.body.innerText")
            await page.evaluate("location.reload()")
            await page.until("document.querySelector('form.sign-in')")

    asyncio.run(run())
