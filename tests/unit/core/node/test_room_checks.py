"""The checks of a node's rooms notice what they are made for; a healthy cluster passes all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.core.node.node import Node
from tidelog.worlds.simulator.cluster import SimCluster, SimNodeLayout
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.world import SimWorld

NODES = [SimNodeLayout(number) for number in (1, 2, 3)]


def active_controller(cluster: SimCluster) -> Node | None:
    return next((node for node in cluster.running.values() if node.metadata.is_active), None)


def formed() -> Node:
    """The active controller of a cluster whose brokers are all alive."""
    world = SimWorld(seed=1)
    cluster = SimCluster(world, Network(world, conditions=Conditions()), nodes=NODES)
    cluster.start_all()

    def is_formed() -> bool:
        node = active_controller(cluster)
        return node is not None and len(node.image.alive_brokers()) == len(NODES)

    world.run_until(is_formed, within_ms=30_000)
    node = active_controller(cluster)
    assert node is not None
    node.end_of_tick(world.now_ms)
    node.check()
    return node


def forget_a_session(node: Node) -> None:
    node.active_controller.sessions.end(2)


def cancel_the_session_alarm(node: Node) -> None:
    alarm = node.active_controller._session_alarm
    assert alarm is not None
    alarm.cancel()


def forget_the_registration(node: Node) -> None:
    node.broker_lifecycle.broker_epoch = None


def stop_uninvited(node: Node) -> None:
    node.broker_lifecycle.may_stop = True


def recover_from_beyond_the_sync(node: Node) -> None:
    durability = node.metadata.log.files.durability
    durability.recovery_point = durability.synced_end_offset + 1


def move_the_log_start_beyond_the_end(node: Node) -> None:
    log = node.metadata.log
    log.log_start_offset = log.log_end_offset + 1


@pytest.mark.parametrize(
    "spoil",
    [
        forget_a_session,
        cancel_the_session_alarm,
        forget_the_registration,
        stop_uninvited,
        recover_from_beyond_the_sync,
        move_the_log_start_beyond_the_end,
    ],
)
def test_a_spoilt_room_is_noticed_by_the_check_of_its_node(spoil: Callable[[Node], None]) -> None:
    node = formed()

    spoil(node)

    with pytest.raises(AssertionError):
        node.check()
