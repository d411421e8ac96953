"""What a node was started with: its settings, resolved, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.core.model.broker_config import (
    Problem,
    advertised_listeners_of,
    listeners_of,
    log_directories_of,
    read_broker_settings,
    with_both_ids,
)
from tidelog.core.model.config import Value
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.listeners import Listener
from tidelog.core.model.voters import Voter, parse_voters


class BadSettings(TidelogError):
    """A node cannot start with these; `problems` has every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{problem.name}: {problem.reason}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Immutable: what changes while a node runs comes through the metadata log."""

    node_id: int
    log_dirs: tuple[str, ...]
    listeners: tuple[Listener, ...]
    advertised: tuple[Listener, ...]
    rack: str | None
    voters: tuple[Voter, ...]
    """Who keeps the metadata; empty: this node alone."""
    cluster_id: str | None
    """None: taken from the log directory, or made for a fresh one."""
    values: Mapping[str, Value]
    texts: Mapping[str, str]
    """What was set explicitly; everything else is a default."""

    @classmethod
    def of(
        cls,
        texts: Mapping[str, str],
        *,
        advertised: tuple[Listener, ...] | None = None,
        cluster_id: str | None = None,
    ) -> NodeSettings:
        """Raises BadSettings with everything that is wrong.

        `advertised` is for a world that bound port 0 and only then knows where it listens.
        """
        values, problems = read_broker_settings(texts)
        if problems:
            raise BadSettings(problems)
        node_id, rack = values["node.id"], values["broker.rack"]
        assert isinstance(node_id, int)
        assert rack is None or isinstance(rack, str)
        voters = values["controller.quorum.voters"]
        assert isinstance(voters, tuple)
        return cls(
            node_id=node_id,
            log_dirs=log_directories_of(values),
            listeners=listeners_of(values),
            advertised=advertised or advertised_listeners_of(values),
            rack=rack,
            voters=parse_voters(voters),
            cluster_id=cluster_id,
            values=values,
            texts=with_both_ids(texts),
        )

    @property
    def is_broker(self) -> bool:
        """Whether it keeps partitions for clients."""
        return "broker" in self._roles

    @property
    def is_controller(self) -> bool:
        """Whether it votes about the metadata."""
        return "controller" in self._roles

    @property
    def is_sole_voter(self) -> bool:
        return self.is_controller and len(self.voters) <= 1

    @property
    def _roles(self) -> tuple[str, ...]:
        roles = self.values["process.roles"]
        assert isinstance(roles, tuple)
        return roles

    @property
    def cluster_secret(self) -> str | None:
        """What the nodes of a cluster know and nobody else; None: this node is alone."""
        secret = self.values["tidelog.cluster.secret"]
        assert secret is None or isinstance(secret, str)
        return secret

    def value(self, name: str) -> Value:
        return self.values[name]

    def integer(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def boolean(self, name: str) -> bool:
        value = self.values[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str), name
        return value
