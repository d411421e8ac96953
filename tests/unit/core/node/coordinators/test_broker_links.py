"""Links between brokers: whoever waits hears when the process that it asked is gone."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, image
from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.metadata.changes import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    Change,
)
from tidelog.core.node.coordinators.broker_links import BrokerLinks
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_27_write_txn_markers import WriteTxnMarkersRequest
from tidelog.core.wire.schema import Message

FENCED = BrokerChanged(broker_id=2, broker_epoch=2, is_fenced=True, in_controlled_shutdown=False)
UNFENCED = BrokerChanged(broker_id=2, broker_epoch=2, is_fenced=False, in_controlled_shutdown=False)
GONE = BrokerUnregistered(broker_id=2, broker_epoch=2)
RESTARTED = BrokerRegistered(broker_id=2, broker_epoch=9, rack=None, is_fenced=True, endpoints=())
OTHER = BrokerRegistered(broker_id=3, broker_epoch=9, rack=None, is_fenced=True, endpoints=())


@pytest.mark.parametrize(
    ("change", "is_lost"),
    [
        pytest.param(FENCED, True, id="fenced"),
        pytest.param(GONE, True, id="unregistered"),
        pytest.param(RESTARTED, True, id="another process, before anybody missed the first"),
        pytest.param(UNFENCED, False, id="unfenced"),
        pytest.param(OTHER, False, id="another broker"),
    ],
)
def test_a_question_to_a_process_that_is_gone_has_no_answer(change: Change, is_lost: bool) -> None:
    """A power loss closes no connection: without the change it would wait for half a minute."""
    lone = LoneLinks()
    links = BrokerLinks(
        node_id=1,
        image=image(broker(1), broker(2), broker(3)),
        links=lone.links,
        alarms=lone.alarms,
        clock=lone,
        handle=lambda _request, _now_ms: pytest.fail("it does not ask itself"),
    )
    answers: list[Message | NoAnswer] = []
    links.ask(2, WriteTxnMarkersRequest(), 1, lambda answer, _now_ms: answers.append(answer), 0)

    links.on_change(change, 5)
    lone.pass_to(5)

    assert [isinstance(answer, NoAnswer) for answer in answers] == [True] * is_lost
