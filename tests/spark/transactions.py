"""When the end of a transaction can be read: its markers are written after its producer was told.

Until then readers of committed data end before it, one of them perhaps later than another.
"""

from __future__ import annotations

from typing import Any

from tests.process.waiting import wait_until
from tests.process.wire import WireClient
from tidelog.client.admin.question import Question, TheBroker
from tidelog.client.shells.blocking_clients import Admin
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest

ENDED = ("CompleteCommit", "CompleteAbort", "Empty")
TRANSACTION_KEY = 1


def wait_until_ended(servers: str, transactional_id: str) -> None:
    """Until the last transaction's markers are in all partitions, where readers find them."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    with WireClient(servers.split(",")[0]) as wire, Admin({"bootstrap.servers": servers}) as admin:

        def has_ended() -> bool:
            (coordinator,) = wire.ask(
                "FindCoordinator", 4, key_type=TRANSACTION_KEY, coordinator_keys=[transactional_id]
            ).coordinators
            if coordinator.error_code:
                return False
            target = TheBroker(coordinator.node_id)
            question = Question(request=request, read=lambda answer: answer, target=target)
            answer: Any = admin.ask(question)
            (state,) = answer.transaction_states
            return state.error_code == 0 and state.transaction_state in ENDED

        wait_until(has_ended, f"the transaction of {transactional_id} to have ended")
