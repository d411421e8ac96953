"""Registration: who is turned away with which code, and what a former process leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.controller.cluster import (
    CAREFUL,
    Choices,
    applied,
    cluster,
    directory,
    roles,
    state,
)
from tidelog.core.controller.admission import Newcomer, decide_admission, refuse_newcomer
from tidelog.core.controller.broker_fencing import (
    decide_fencing,
    decide_forgetting,
    decide_unfencing,
)
from tidelog.core.controller.events import BrokerAdmitted
from tidelog.core.metadata.cluster import FeatureRange, ListenerEndpoint
from tidelog.core.metadata.features import SUPPORTED
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import RegisterBrokerRecord
from tidelog.core.model.errors import ErrorCode

FEATURES = tuple(FeatureRange(name, low, high) for name, (low, high) in sorted(SUPPORTED.items()))
NEWCOMER = Newcomer(
    broker_id=1,
    cluster_id="c",
    incarnation_id=b"n" * 16,
    endpoints=(ListenerEndpoint("PLAINTEXT", "host", 9092, 0),),
    rack="a",
    log_directories=(directory(1),),
    features=FEATURES,
    previous_broker_epoch=None,
)


def refused(image: ClusterImage, newcomer: Newcomer, *, former_may_live: bool = False) -> int:
    refusal = refuse_newcomer(image, newcomer, cluster_id="c", former_may_live=former_may_live)
    return ErrorCode.NONE if refusal is None else refusal.error


def test_a_stranger_is_registered_fenced_under_the_offset_of_its_record() -> None:
    image = cluster(state(1, 2, 3))
    stranger = replace(NEWCOMER, broker_id=4, log_directories=(directory(4),))

    changes, broker_epoch = decide_admission(image, CAREFUL, stranger, next_offset=50)
    applied(image, changes)

    assert broker_epoch == 50
    known = image.brokers[4]
    assert (known.broker_epoch, known.is_fenced, known.rack) == (50, True, "a")
    assert (known.endpoints, known.features) == (NEWCOMER.endpoints, FEATURES)


@pytest.mark.scenario("X-7")
def test_without_a_proof_the_former_process_counts_as_torn_down() -> None:
    """It leaves the in-sync set and is not eligible either; its record comes last."""
    image = cluster(state(1, 2, 3, isr=(1, 2)), state(2, 1, 3, isr=(2,), eligible=(1,)))

    changes, broker_epoch = decide_admission(image, CAREFUL, NEWCOMER, next_offset=50)

    assert isinstance(changes.records[-1], RegisterBrokerRecord)
    assert broker_epoch == 50 + len(changes.records) - 1
    assert changes.events[0] == BrokerAdmitted(broker_id=1, broker_epoch=52, is_clean=False)
    assert roles(applied(image, changes)) == (2, (2,), (), ())
    assert roles(image.topics["t"].partitions[1]) == (2, (2,), (), ())


def test_with_the_former_broker_epoch_as_proof_it_stays_eligible() -> None:
    image = cluster(state(1, 2, 3, isr=(1, 2)), state(2, 1, 3, isr=(2,), eligible=(1,)))

    newcomer = replace(NEWCOMER, previous_broker_epoch=1)
    changes, _ = decide_admission(image, CAREFUL, newcomer, next_offset=50)

    assert changes.events[0] == BrokerAdmitted(broker_id=1, broker_epoch=51, is_clean=True)
    assert roles(applied(image, changes)) == (2, (2,), (1,), ())
    assert roles(image.topics["t"].partitions[1]) == (2, (2,), (1,), ())


def test_a_leader_that_came_back_alone_begins_a_new_leader_epoch() -> None:
    image = cluster(state(1))

    changes, _ = decide_admission(image, CAREFUL, NEWCOMER, next_offset=50)
    after = applied(image, changes)

    assert roles(after) == (None, (), (), (1,))
    assert after.leader_epoch == 1


def test_without_eligible_replicas_the_last_one_in_sync_is_not_forgotten() -> None:
    image = cluster(state(1, 2, isr=(1,)))

    changes, _ = decide_admission(image, Choices(keeps_eligible=False), NEWCOMER, next_offset=50)

    assert roles(applied(image, changes)) == (None, (1,), (), ())


@pytest.mark.scenario("X-9")
def test_a_proof_is_worth_nothing_when_a_directory_is_gone() -> None:
    image = cluster(state(1, 2, 3, isr=(1, 2)))
    emptied = replace(NEWCOMER, previous_broker_epoch=1, log_directories=(directory(7),))

    changes, broker_epoch = decide_admission(image, CAREFUL, emptied, next_offset=50)
    after = applied(image, changes)

    assert roles(after) == (2, (2,), (), ())
    assert after.directory(1) == directory(7), "its copy will be made there"
    assert broker_epoch == 52


def test_an_unregistered_broker_with_a_new_disk_can_lead_its_last_partition_again() -> None:
    """Registered anew it is as free to lead as one that was never unregistered."""
    image = cluster(state(1))
    for changes in (
        decide_fencing(image, CAREFUL, broker_ids=[1], reason="its session ended"),
        decide_forgetting(image, CAREFUL, broker_id=1),
    ):
        applied(image, changes)
    emptied = replace(NEWCOMER, log_directories=(directory(7),))

    applied(image, decide_admission(image, CAREFUL, emptied, next_offset=50)[0])
    after = applied(image, decide_unfencing(image, CAREFUL, broker_id=1))

    assert after.directory(1) == directory(7)
    assert roles(after) == (1, (1,), (), ())


def test_the_same_process_may_amend_its_registration() -> None:
    image = cluster(state(1, 2, 3))
    myself = replace(NEWCOMER, incarnation_id=image.brokers[1].incarnation_id, rack="b")

    assert refused(image, myself, former_may_live=True) == ErrorCode.NONE
    changes, broker_epoch = decide_admission(image, CAREFUL, myself, next_offset=50)

    assert broker_epoch == 1
    assert roles(applied(image, changes)) == (1, (1, 2, 3), (), ())
    assert not image.brokers[1].is_fenced
    assert image.brokers[1].rack == "b"


@pytest.mark.scenario("X-36")
def test_another_process_must_wait_while_the_former_one_may_live() -> None:
    image = cluster(state(1, 2, 3))

    assert refused(image, NEWCOMER, former_may_live=True) == 101
    assert refused(image, NEWCOMER, former_may_live=False) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("newcomer", "error"),
    [
        (replace(NEWCOMER, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (
            replace(NEWCOMER, broker_id=-1, log_directories=(directory(9),)),
            ErrorCode.INVALID_REGISTRATION,
        ),
        (replace(NEWCOMER, log_directories=()), ErrorCode.INVALID_REGISTRATION),
        (replace(NEWCOMER, log_directories=(bytes(16),)), ErrorCode.INVALID_REGISTRATION),
        (
            replace(NEWCOMER, log_directories=(directory(1), directory(1))),
            ErrorCode.INVALID_REGISTRATION,
        ),
        (replace(NEWCOMER, log_directories=(directory(2),)), ErrorCode.INVALID_REGISTRATION),
        (replace(NEWCOMER, features=FEATURES[:-1]), ErrorCode.UNSUPPORTED_VERSION),
        (
            replace(NEWCOMER, features=(FeatureRange("kraft.version", 0, 1),)),
            ErrorCode.INVALID_REGISTRATION,
        ),
        (
            replace(NEWCOMER, features=(*FEATURES, FeatureRange("new", 1, 2))),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (
            replace(NEWCOMER, features=(FeatureRange("metadata.version", 7, 29),)),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (replace(NEWCOMER, features=(*FEATURES, FeatureRange("new", 0, 2))), ErrorCode.NONE),
    ],
    ids=[
        "cluster", "negative", "no directory", "reserved", "twice", "another's", "feature missing",
        "no metadata version", "feature too new", "too old", "more than needed",
    ],
)  # fmt: skip
def test_each_mistake_has_its_code(newcomer: Newcomer, error: ErrorCode) -> None:
    assert refused(cluster(state(1, 2, 3)), newcomer) == error
