"""From creating a FineTuneJob to its prepare Job: one by one, and many in a row, beside a naive kopf operator.

    KUBECONFIG=… python -m benchmarks.reconcile [--single 30] [--many 1000]

Needs a cluster with our CRDs (the test node: `make node-up`); an installed operator of ours is scaled to nothing for
the time. Ours and the naive one (benchmarks/peers/naive.py) run here, outside the cluster, one after the other, each
watching a namespace of its own. A quota there allows no pods: what is measured is the way to the Job, not what a
kubelet does with it.
One line of JSON per figure; times in seconds, from sending the request to seeing the Job in a watch.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from finetune_operator.cluster.client import Client
from finetune_operator.cluster.connection import Connection, login
from finetune_operator.cluster.resources import BY_KIND, Key, Resource
from finetune_operator.core.types import ObjectRef

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Manifest = dict[str, Any]
Calls = dict[tuple[str, str], float]
"""By method and kind."""
NAMESPACE = Resource("Namespace", "v1", "namespaces")
QUOTA = Resource("ResourceQuota", "v1", "resourcequotas")
BY_KIND.update({resource.kind: resource for resource in (NAMESPACE, QUOTA)})
JOBS = BY_KIND["Job"]
HERE = Path(__file__).parent
OURS, NAIVE = "finetune-operator", "naive kopf operator"
METRICS = "http://127.0.0.1:9090/metrics"
LAST = 300.0
"""Seconds until a Job that has not appeared never will."""


@dataclass
class Peer:
    """An operator under test."""

    name: str
    namespace: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    ready: str = ""
    """Address that answers 200 when it is ready; empty: the first Job shows."""


def peers() -> list[Peer]:
    """Ours and the naive one."""
    namespace = "bench-finetune"
    ours = {
        "FINETUNE_OPERATOR_NAMESPACE": namespace,
        "FINETUNE_TRAINER_IMAGE": "localhost/finetune/trainer:dev",
        "FINETUNE_SERVER_IMAGE": "localhost/finetune/server:dev",
        "FINETUNE_DEFAULT_PLATFORM": "cpu",
        "FINETUNE_PROGRESS_URL": f"https://finetune-operator.{namespace}.svc:8443/v1/progress",
        "FINETUNE_WATCH_NAMESPACE": namespace,
        "FINETUNE_LOG_LEVEL": "WARNING",
    }
    python = sys.executable
    naive = [
        python,
        "-m",
        "kopf",
        "run",
        str(HERE / "peers" / "naive.py"),
        "-n",
        "bench-naive",
        "--standalone",
        "--quiet",
    ]
    return [
        Peer(OURS, namespace, [python, "-m", "finetune_operator"], ours, "http://127.0.0.1:8081/readyz"),
        Peer(NAIVE, "bench-naive", naive),
    ]


def job(name: str, namespace: str) -> Manifest:
    """A FineTuneJob as a user writes it."""
    return {
        "apiVersion": "finetune.dev/v1alpha1",
        "kind": "FineTuneJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {"source": "hf://HuggingFaceTB/SmolLM2-135M-Instruct"},
            "dataset": {"source": "https://example.org/rows.jsonl"},
            "training": {"maxSteps": 40},
        },
    }


class Stopwatch:
    """When each FineTuneJob was sent, and when its Job was seen."""

    def __init__(self) -> None:
        """Begin empty."""
        self.sent: dict[str, float] = {}
        self.seen: dict[str, float] = {}
        self.news = asyncio.Event()

    def tell(self, event: Manifest) -> None:
        """A watch event of a Job."""
        if event["type"] != "ADDED":
            return
        owners = event["object"]["metadata"].get("ownerReferences", [])
        if owners:
            self.seen.setdefault(owners[0]["name"], time.perf_counter())
            self.news.set()

    async def all_seen(self, names: list[str]) -> None:
        """Wait for the Jobs of all of these."""
        async with asyncio.timeout(LAST):
            while not self.seen.keys() >= set(names):
                self.news.clear()
                await self.news.wait()

    def times(self, names: list[str]) -> list[float]:
        """Seconds from sent to seen."""
        return sorted(self.seen[name] - self.sent[name] for name in names)


async def watch_jobs(connection: Connection, namespace: str, stopwatch: Stopwatch, open_: asyncio.Event) -> None:
    """Tell the stopwatch of every Job, from now on."""
    listed = await _get(connection, JOBS.path(namespace), {"limit": "1"})
    params = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
    url, timeout = f"{connection.server}{JOBS.path(namespace)}", aiohttp.ClientTimeout(total=None)
    async with connection.session.get(url, params=params, headers=connection.headers(), timeout=timeout) as answer:
        open_.set()
        async for line in answer.content:
            stopwatch.tell(json.loads(line))


async def _get(connection: Connection, path: str, params: dict[str, str]) -> Manifest:
    async with connection.session.get(
        f"{connection.server}{path}", params=params, headers=connection.headers()
    ) as answer:
        found: Manifest = await answer.json()
        return found


@dataclass
class Trial:
    """One operator, the cluster, and what was seen of its Jobs."""

    peer: Peer
    connection: Connection
    single: int
    many: int
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def client(self) -> Client:
        """For everything but the watch."""
        return Client(self.connection)

    async def measure(self) -> None:
        """All figures of this operator."""
        async with _namespace(self.client, self.peer.namespace), self._watching():
            async with _running(self.peer):
                await self._one_by_one()
            async with _running(self.peer) as pid:
                if self.peer.ready:
                    await _restarted(self.peer, self.single + 1)
                await self._in_a_row(pid)

    async def _one_by_one(self) -> None:
        await _until_ready(self.peer)
        await self._send(["warm-up"], wait=True)
        await asyncio.sleep(2)
        names = [f"one-{number}" for number in range(self.single)]
        await self._send(names, wait=True)
        _report(self.peer, "one by one", self.stopwatch.times(names))
        if self.peer.ready:
            await self._told()

    async def _told(self) -> None:
        """Until the Job controller was refused a pod for every Job, and the operator has said so: all is quiet."""
        owners = BY_KIND["FineTuneJob"]
        async with asyncio.timeout(LAST):
            while True:
                pages = self.client.pages(owners, self.peer.namespace, {})
                states = [json.dumps(each.get("status")) async for page in pages for each in page]
                if all("PodRejected" in state for state in states):
                    return
                await asyncio.sleep(1)

    async def _in_a_row(self, pid: int) -> None:
        cpu, begin, before = _cpu(pid), time.perf_counter(), await _calls(self.peer)
        names = [f"many-{number}" for number in range(self.many)]
        await self._send(names, wait=False)
        sending = time.perf_counter() - begin
        await self.stopwatch.all_seen(names)
        last = max(self.stopwatch.seen[name] for name in names) - begin
        more = {"last": round(last, 1), "sending": round(sending, 1)}
        _report(self.peer, f"{self.many} in a row", self.stopwatch.times(names), **more)
        await asyncio.sleep(10)
        used = {"objects": self.single + self.many, "cpu_seconds": round(_cpu(pid) - cpu, 1)}
        figures = {"rss_mib": _memory(pid, "VmRSS"), "peak_mib": _memory(pid, "VmHWM")}
        print(json.dumps({"operator": self.peer.name, "case": "memory and CPU"} | used | figures))
        _report_writes(self.peer, before, await _calls(self.peer), self.many)

    async def _send(self, names: list[str], *, wait: bool) -> None:
        """Create the objects; one by one, or as fast as one client can."""
        for name in names:
            self.stopwatch.sent[name] = time.perf_counter()
            await self.client.create(job(name, self.peer.namespace))
            if wait:
                await self.stopwatch.all_seen([name])
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        opened = asyncio.Event()
        watching = asyncio.create_task(watch_jobs(self.connection, self.peer.namespace, self.stopwatch, opened))
        await opened.wait()
        try:
            yield
        finally:
            watching.cancel()


def _report(peer: Peer, what: str, times: list[float], **more: float) -> None:
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    figures = {"p50": round(statistics.median(times), 3), "p99": round(p99, 3), "max": round(times[-1], 3)}
    print(json.dumps({"operator": peer.name, "case": what, "objects": len(times)} | figures | more))


def _report_writes(peer: Peer, before: Calls, after: Calls, n: int) -> None:
    """Writes up to the first child, and all of them; only ours counts its calls."""
    if not after:
        return
    writes = {kind: after[kind] - before.get(kind, 0) for kind in after if kind[0] != "GET"}
    first = sum(number for (method, kind), number in writes.items() if (method, kind) in _TO_THE_FIRST_CHILD)
    figures = {"to_the_first_job": round(first / n, 2), "all": round(sum(writes.values()) / n, 2)}
    print(json.dumps({"operator": peer.name, "case": "API writes per object"} | figures))


_TO_THE_FIRST_CHILD = {("POST", "PersistentVolumeClaim"), ("POST", "ConfigMap"), ("POST", "Job")}


def _writes(calls: Calls) -> float:
    return sum(number for (method, _), number in calls.items() if method != "GET")


async def _restarted(peer: Peer, objects: int) -> None:
    """A restart reads everything and must write nothing."""
    begin = time.perf_counter()
    await _until_ready(peer)
    ready = time.perf_counter() - begin
    await asyncio.sleep(20)
    figures = {"objects": objects, "ready_seconds": round(ready, 1), "writes": _writes(await _calls(peer))}
    print(json.dumps({"operator": peer.name, "case": "restart"} | figures))


async def _until_ready(peer: Peer) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while peer.ready:
            try:
                async with session.get(peer.ready) as answer:
                    if answer.status == 200:  # noqa: PLR2004 - OK
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


async def _calls(peer: Peer) -> Calls:
    """Calls to the API server by method and kind."""
    if not peer.ready:
        return {}
    async with aiohttp.ClientSession() as session, session.get(METRICS) as answer:
        lines = (await answer.text()).splitlines()
    found: Calls = {}
    for line in lines:
        if line.startswith("finetune_api_calls_total{"):
            labels, _, number = line.partition("{")[2].partition("} ")
            pairs = dict(pair.split("=") for pair in labels.replace('"', "").split(","))
            key = (pairs["method"], pairs["kind"])
            found[key] = found.get(key, 0) + float(number)
    return found


@asynccontextmanager
async def _running(peer: Peer) -> AsyncIterator[int]:
    """The operator as a process of its own."""
    process = await asyncio.create_subprocess_exec(*peer.command, env=os.environ | peer.environment)
    running = asyncio.create_task(process.wait())
    measuring = asyncio.current_task()
    running.add_done_callback(lambda task: None if task.cancelled() or measuring is None else measuring.cancel())
    try:
        yield process.pid
    finally:
        running.cancel()
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def _alone(connection: Connection) -> AsyncIterator[None]:
    """Without an installed operator, which would do the same work a second time."""
    selector = {"labelSelector": "app.kubernetes.io/name=finetune-operator"}
    deployments = (await _get(connection, BY_KIND["Deployment"].path(), selector))["items"]
    try:
        for each in deployments:
            await _scale(connection, each, 0)
        while any((await _get(connection, BY_KIND["Pod"].path(), selector))["items"]):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(1)
        yield
    finally:
        for each in deployments:
            await _scale(connection, each, each["spec"]["replicas"])


async def _scale(connection: Connection, deployment: Manifest, replicas: int) -> None:
    meta = deployment["metadata"]
    path = BY_KIND["Deployment"].path(meta["namespace"], meta["name"], "scale")
    headers = connection.headers() | {"Content-Type": "application/merge-patch+json"}
    body = json.dumps({"spec": {"replicas": replicas}})
    async with connection.session.patch(f"{connection.server}{path}", data=body, headers=headers) as answer:
        answer.raise_for_status()


async def _gone(client: Client, namespace: str) -> None:
    async with asyncio.timeout(LAST):
        while await client.get(Key("Namespace", "", namespace)):  # noqa: ASYNC110 - a condition of the cluster
            await asyncio.sleep(1)


@asynccontextmanager
async def _namespace(client: Client, name: str) -> AsyncIterator[None]:
    """A namespace without room for pods, which is gone afterwards: deleting it must not disturb the next operator."""
    await _gone(client, name)
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-pods", "namespace": name}}
    try:
        await client.create({**quota, "spec": {"hard": {"pods": "0"}}})
        yield
    finally:
        await client.delete(ObjectRef("v1", "Namespace", "", name))
        await _gone(client, name)


def _memory(pid: int, field_: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith(field_)) / 1024, 1)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def main() -> None:
    """Ours, then the naive one; the namespaces go at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--single", type=int, default=30, help="objects one by one")
    parser.add_argument("--many", type=int, default=1000, help="objects in a row")
    parser.add_argument("--only", choices=[OURS, NAIVE], help="one of the operators alone")
    chosen = parser.parse_args()
    connection = Connection(login())
    try:
        async with _alone(connection):
            for peer in peers():
                if chosen.only in {None, peer.name}:
                    await Trial(peer, connection, chosen.single, chosen.many).measure()
    finally:
        await connection.close()


if __name__ == "__main__":
    # As at Ctrl-C: whatever was changed in the cluster is put back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(main())
