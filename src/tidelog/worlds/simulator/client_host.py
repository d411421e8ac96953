"""A client's host: runs one machine of the client room over the simulated network.

The host is the machine's `wires` (connect, send, disconnect and arm); the machine is made over it
and then given to `run`. What a program does with its client goes through `do`, so that it is
one event with a tick after it, and waits while the host is paused::

    host = ClientHost(world=world, network=network, name="client-1")
    client = Client(host, config.client, random=host.random, trace=host.trace)
    host.run(client)
    producer = Producer(client, config)
    host.do(lambda now_ms: producer.send("orders", b"paid", now_ms=now_ms, then=on_sent))
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.worlds.simulator.host_process import HostProcess, Machine
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.world import SimWorld


class ClientHost(HostProcess):
    """One client program on a host of its own name; it does not listen."""

    def __init__(self, *, world: SimWorld, network: Network, name: str) -> None:
        super().__init__(
            world=world, network=network, host=name, random=world.random_for(f"{name}/client")
        )
        self.name = name
        self.trace = world.trace.of(name)

    def run(self, machine: Machine) -> None:
        self.machine = machine

    def do(self, act: Callable[[int], object]) -> None:
        """Run `act` with the time as one event of this process."""
        self.deliver(lambda: self._act(act))

    def kill(self) -> None:
        """The program is over; its host closes what it had open."""
        if not self.is_over:
            self.end()
            self.network.process_died(self.name)

    def _act(self, act: Callable[[int], object]) -> None:
        act(self.world.now_ms)
