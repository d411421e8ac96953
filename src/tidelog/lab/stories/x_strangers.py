"""Strangers at the port that clients and nodes share: what only nodes may ask is refused them."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_01_fetch import FetchResponse
from tidelog.core.wire.schema import Message
from tidelog.lab import alter_partition
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER
from tidelog.lab.story import story
from tidelog.worlds.simulator import node_requests
from tidelog.worlds.simulator.node_requests import FETCH_VERSION, NEW_BROKER

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NOT_A_REPLICA = ErrorCode.TOPIC_AUTHORIZATION_FAILED
STRANGER = "stranger"
STOLEN = "stolen"


@story("X-49")
def a_stranger_speaks_as_a_node(lab: Lab) -> None:
    """It sends what voters, leaders, followers and brokers send, but does not know the secret."""
    orders(lab)
    quorum = lab.quorum()
    before = (quorum.leader_id, quorum.leader_epoch)
    partition_epoch = alter_partition.current_partition_epoch(lab, CONTROLLER)

    lab.step("X-49", "each is refused as a whole: CLUSTER_AUTHORIZATION_FAILED")
    vote = node_requests.vote(quorum_epoch=quorum.leader_epoch + 10, voter=CONTROLLER)
    lab.same("Vote", _answer_code(lab, *vote), REFUSED)
    lab.same("BrokerRegistration", _answer_code(lab, *node_requests.registration()), REFUSED)
    lab.same("Envelope", _answer_code(lab, *node_requests.envelope(topic=STOLEN)), REFUSED)
    lab.same("AlterPartition", _shrink(lab, partition_epoch, as_member=False), REFUSED)
    of_metadata = node_requests.metadata_fetch()
    lab.same("a fetch of the metadata", _answer_code(lab, of_metadata, FETCH_VERSION), REFUSED)

    lab.step("X-49", "who fetches as follower 2 without being a node gets nothing")
    fetch = node_requests.follower_fetch(topic_id=lab.topic.topic_id, replica_id=2)
    fetched = lab.ask(1, fetch, FETCH_VERSION, client=STRANGER)
    assert isinstance(fetched, FetchResponse)
    [partition] = fetched.responses[0].partitions
    lab.same("the error", ErrorCode(partition.error_code), NOT_A_REPLICA)
    lab.true("there are no records", not partition.records)

    lab.step("X-49", "nothing has changed")
    lab.pass_ms(1_000)
    after = lab.quorum()
    lab.same("leader and epoch of the quorum", (after.leader_id, after.leader_epoch), before)
    lab.same("the ISR", lab.desc().isr, (1, 2, 3))
    now = alter_partition.current_partition_epoch(lab, CONTROLLER)
    lab.same("the partition epoch", now, partition_epoch)
    lab.same("the brokers", lab.unfenced(), (1, 2, 3))
    admitted = {each.fields["broker_id"] for each in lab.happenings(CONTROLLER, "BrokerAdmitted")}
    lab.true(f"{NEW_BROKER} was not admitted", NEW_BROKER not in admitted)
    created = {each.fields["topic"] for each in lab.happenings(CONTROLLER, "TopicCreated")}
    lab.true(f"there is no topic {STOLEN}", STOLEN not in created)

    lab.step("X-49", "the same AlterPartition of one who knows the secret is done")
    answer_of_member = _shrink(lab, partition_epoch, as_member=True)
    lab.same("AlterPartition", answer_of_member, ErrorCode.NONE)


def _answer_code(lab: Lab, request: Message, version: int) -> ErrorCode:
    """What the controller answers to the whole request."""
    answer = lab.ask(CONTROLLER, request, version, client=STRANGER)
    code: int = getattr(answer, "error_code")  # noqa: B009 - every one of these answers has it
    return ErrorCode(code)


def _shrink(lab: Lab, partition_epoch: int, *, as_member: bool) -> ErrorCode:
    """As leader 1 would: 3 is no longer in sync."""
    return alter_partition.alter_isr(
        lab,
        CONTROLLER,
        leader=1,
        leader_epoch=0,
        partition_epoch=partition_epoch,
        isr={1: -1, 2: -1},
        as_member=as_member,
    )
