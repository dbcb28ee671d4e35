"""The webhooks of Volcano's kinds as programs of their own, and the way on which the API server asks them."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import msgspec

from pumice.admission import job_plugins, rules, surroundings
from pumice.apiserver.webhooks.asking import Outcome
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers
from pumice.manifests import admission as manifests
from pumice.manifests.release import Release
from pumice.server.admission import answering, following, injecting, settings
from pumice.server.logs import logs
from tests.storm.program import Program


class Webhooks(Program):
    """What `pumice admission` judges with, over watches of its own."""

    answering = None

    async def _main(self, run):
        around, log = self.around(run), logs.Log(0, stream=self.log)
        chosen = settings.read({})
        served, known = rules.named(chosen.enabled_admission), surroundings.KnownObjects()
        async with Client(around.connect(None), rng=around.chance(), way=around.way) as client:
            injector = injecting.Injector(client, chosen, served, log)
            feed = following.Feed(known, injector)
            watches = informers.Informers(client, following.specs(served), feed, rng=around.chance())

            def waits():
                return "" if all(report.synced for report in watches.report()) else "lists"

            self.answering = answering.Answering(
                served, known, chosen.rules_settings(job_plugins.installed()), log, waits=waits
            )
            await watches.run()

    def answer(self, path, body):
        """Answer a review; nothing while it is not ready."""
        return None if self.answering is None or self.answering.waits() else self.answering.judged(path, body)


def configurations(policy):
    """Give the webhook configurations, with addresses instead of a Service."""
    for rule in rules.named(settings.read({}).enabled_admission):
        made = manifests.configuration(Release(failure_policy=policy), rule)
        for each in made["webhooks"]:
            each["clientConfig"] = {"url": f"https://hooks{rule.path}"}
        yield made


class Calls:
    """Brings reviews to one of the programs, unless something happens on the way."""

    def __init__(self, loop, weather, programs):
        self._loop = loop
        self._weather = weather
        self._programs = programs

    async def call(self, call):
        """Make a call and give its outcome."""
        try:
            async with asyncio.timeout(call.seconds):
                return await self._called(call)
        except TimeoutError:
            return Outcome(failure=f'failed to call webhook: Post "{call.url}": context deadline exceeded')

    async def _called(self, call):
        await asyncio.sleep(self._weather.delay("hook"))
        fate = self._weather.fate_of_review()
        alive = [each for each in self._programs() if each.alive]
        if fate == "hangs":
            await asyncio.sleep(3600)
        if not alive or fate == "refused":
            return Outcome(failure=f'failed to call webhook: Post "{call.url}": connection refused')
        chosen = self._weather.one_of(alive)
        if self._loop.rests(chosen.run):
            await asyncio.sleep(3600)
        answer = chosen.answer(urlsplit(call.url).path, call.body)
        if answer is None or answer.status != 200:
            return Outcome(failure="failed to call webhook: the server answered 503")
        return Outcome(msgspec.json.decode(answer.body))
