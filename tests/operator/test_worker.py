from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from finetune_operator.cluster import worker
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.resources import Key
from finetune_operator.cluster.worker import WORKERS, Workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from finetune_operator.cluster.queue import Queue

A, B = Key("FineTuneJob", "default", "a"), Key("FineTuneJob", "default", "b")


class Looks:
    """Stands in for the reconciler; ``answers`` by key, one after the other, then None."""

    def __init__(self) -> None:
        self.answers: dict[Key, list[float | Exception | None]] = {}
        self.seen: list[Key] = []
        self.busy: set[Key] = set()
        self.wanted = asyncio.Event()
        self.enough = 1

    async def __call__(self, key: Key) -> float | None:
        assert key not in self.busy, "two workers on one object"
        self.busy.add(key)
        await asyncio.sleep(0)
        self.busy.discard(key)
        self.seen.append(key)
        if len(self.seen) >= self.enough:
            self.wanted.set()
        answers = self.answers.get(key, [])
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def wait(self, count: int) -> list[Key]:
        self.enough = count
        if len(self.seen) < count:
            self.wanted.clear()
            await asyncio.wait_for(self.wanted.wait(), 5)
        return self.seen


@pytest.fixture
async def looks(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Looks]:
    monkeypatch.setattr("finetune_operator.cluster.queue.FIRST_BACKOFF", 0.001)
    made = Looks()
    running = asyncio.create_task(Workers(queue, made).run())  # type: ignore[arg-type]
    yield made
    queue.close()
    await asyncio.wait_for(running, 5)


async def test_every_key_is_looked_at(queue: Queue, looks: Looks) -> None:
    for number in range(3 * WORKERS):
        queue.add(Key("FineTuneJob", "default", str(number)))
    assert len(set(await looks.wait(3 * WORKERS))) == 3 * WORKERS


async def test_one_key_is_never_with_two_workers(queue: Queue, looks: Looks) -> None:
    for _ in range(10):
        queue.add(A)
        await asyncio.sleep(0)
    await looks.wait(2)


@pytest.mark.parametrize("error", [ApiError(500, "GET", "etcd is gone"), TimeoutError(), KeyError("bug")])
async def test_an_error_is_tried_again(queue: Queue, looks: Looks, error: Exception) -> None:
    looks.answers[A] = [error, error]
    queue.add(A)
    queue.add(B)
    assert (await looks.wait(4)).count(A) == 3


async def test_a_look_that_found_work_is_repeated_at_once(queue: Queue, looks: Looks) -> None:
    looks.answers[A] = [0, 0]
    queue.add(A)
    assert await looks.wait(3) == [A, A, A]


async def test_an_object_that_never_settles_is_slowed_down(
    queue: Queue, looks: Looks, caplog: pytest.LogCaptureFixture
) -> None:
    looks.answers[A] = [0] * 20
    queue.add(A)
    await looks.wait(worker.PATIENCE + 1)
    await asyncio.sleep(0.01)
    assert len(looks.seen) == worker.PATIENCE + 1
    assert "does not settle" in caplog.text
    queue.forget(A)


async def test_a_time_to_look_again_is_kept(queue: Queue, looks: Looks) -> None:
    looks.answers[A] = [0.005]
    queue.add(A)
    assert await looks.wait(2) == [A, A]
