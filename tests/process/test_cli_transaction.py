"""`tidelog transaction` on a broker with transactions of librdkafka, and with one that hangs."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from tests.process.client_verbs import CommandLine
from tests.process.fixtures import StartBroker
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient, batch_of, produce_fields

ID = "mail-1"
READ_COMMITTED = ("--exit", "--isolation", "read_committed")


def listed(tidelog: CommandLine, *filters: str) -> dict[str, str]:
    """States by transactional id."""
    found = tidelog.ok("transaction", "list", *filters, "--json").document["transactions"]
    return {each["transactional_id"]: each["state"] for each in found}


def described(tidelog: CommandLine) -> Any:
    arguments = ("transaction", "describe", "--transactional-id", ID, "--json")
    [found] = tidelog.ok(*arguments).document["transactions"]
    return found


def hanging(tidelog: CommandLine, *more: str) -> Any:
    arguments = ("transaction", "find-hanging", "--topic", "orders", "--json")
    return tidelog.ok(*arguments, *more).document["transactions"]


def values(tidelog: CommandLine, *more: str) -> list[str]:
    return sorted(tidelog.ok("consume", "orders", *more).output.splitlines())


def hang(address: str) -> int:
    """A batch of long ago, in a transaction of which no coordinator knows; its producer's id."""
    with WireClient(address) as wire:
        producer_id, producer_epoch = wire.new_producer()
        batch = batch_of(
            b"lost",
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        fields = {**produce_fields("orders", batch), "transactional_id": "lost-1"}
        answer = wire.ask("Produce", 9, **fields)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return producer_id


def test_a_transaction_is_followed_and_a_hanging_one_aborted(start_broker: StartBroker) -> None:
    broker = start_broker({"transaction.partition.verification.enable": "false"})
    tidelog = CommandLine(broker.address)
    tidelog.ok("topic", "create", "orders", "--partitions", "2")
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": ID})
    producer.init_transactions(PATIENCE_S)
    assert described(tidelog)["state"] == "Empty"

    producer.begin_transaction()
    for index in (0, 1):
        producer.produce("orders", f"kept {index}", partition=index)
    assert producer.flush(PATIENCE_S) == 0
    assert listed(tidelog, "--state", "Ongoing") == {ID: "Ongoing"}
    assert listed(tidelog, "--transactional-id-pattern", "mail-[2-9]") == {}
    found = described(tidelog)
    assert (found["state"], found["coordinator"]) == ("Ongoing", 1)
    assert found["partitions"] == ["orders-0", "orders-1"] and found["running_ms"] >= 0
    assert hanging(tidelog, "--max-transaction-timeout", "0") == [], "its coordinator knows it"
    assert values(tidelog, *READ_COMMITTED) == []

    producer.commit_transaction(PATIENCE_S)
    wait_until(lambda: listed(tidelog) == {ID: "CompleteCommit"}, "the markers")
    assert described(tidelog)["partitions"] == []

    producer_id = hang(broker.address)
    [found] = hanging(tidelog)
    assert (found["producer_id"], found["coordinator_epoch"]) == (producer_id, None)
    where = ("--topic", "orders", "--partition", "0", "--start-offset", str(found["start_offset"]))
    tidelog.ok("transaction", "abort", *where)
    assert hanging(tidelog) == []
    assert values(tidelog, *READ_COMMITTED) == ["kept 0", "kept 1"]
    assert values(tidelog, "--exit") == ["kept 0", "kept 1", "lost"]
    again = tidelog("transaction", "abort", *where)
    assert again.code == 1 and "no open transaction of orders-0 begins at" in again.errors
