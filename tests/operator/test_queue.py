from __future__ import annotations

import asyncio

from finetune_operator.cluster.queue import LONGEST_BACKOFF, Queue
from finetune_operator.cluster.resources import Key

A, B = Key("FineTuneJob", "default", "a"), Key("FineTuneJob", "default", "b")


async def test_a_key_waits_once(queue: Queue) -> None:
    queue.add(A)
    queue.add(B)
    queue.add(A)
    assert [await queue.take(), await queue.take()] == [A, B]
    assert not queue._waiting


async def test_a_key_that_is_being_looked_at_comes_back_afterwards(queue: Queue) -> None:
    queue.add(A)
    await queue.take()
    queue.add(A)
    assert not queue._waiting
    queue.done(A)
    assert await queue.take() == A


async def test_take_waits_for_a_key(queue: Queue) -> None:
    taker = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not taker.done()
    queue.add(A)
    assert await asyncio.wait_for(taker, 1) == A


async def test_the_earlier_time_wins(queue: Queue) -> None:
    queue.add_after(A, 60)
    queue.add_after(A, 0)
    queue.add_after(A, 60)
    assert await asyncio.wait_for(queue.take(), 1) == A


async def test_errors_back_off_and_success_forgets(queue: Queue) -> None:
    assert [queue.failed(A) for _ in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert max(queue.failed(A) for _ in range(20)) == LONGEST_BACKOFF
    queue.settled(A)
    assert queue.failed(A) == 0.5
    queue.forget(A)
    assert not queue._timers


async def test_a_closed_queue_gives_nothing(queue: Queue) -> None:
    takers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add_after(A, 60)
    queue.close()
    assert await asyncio.gather(*takers) == [None, None, None]
    queue.add(B)
    assert await queue.take() is None
    queue.forget(A)
