"""DescribeCluster: who is there."""

from __future__ import annotations

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

VERSIONS = (0, 1, 2)


@case("DescribeCluster", *VERSIONS)
def brokers(talk: Talk, version: int) -> None:
    """The brokers, the controller and the cluster's id."""
    talk.ask("DescribeCluster", version)


@case("DescribeCluster", *VERSIONS)
def with_authorized_operations(talk: Talk, version: int) -> None:
    """Without an authorizer every operation is allowed."""
    talk.ask("DescribeCluster", version, include_cluster_authorized_operations=True)


@case("DescribeCluster", 1, 2)
def controllers_asked_of_a_broker(talk: Talk, version: int) -> None:
    """Brokers do not list controllers."""
    talk.ask("DescribeCluster", version, endpoint_type=2)


@case("DescribeCluster", 1, 2)
def with_an_unknown_endpoint_type(talk: Talk, version: int) -> None:
    """A type of endpoint that nobody has heard of."""
    talk.ask("DescribeCluster", version, endpoint_type=7)


@case("DescribeCluster", 1, 2)
def with_endpoint_type_zero(talk: Talk, version: int) -> None:
    """The unknown type itself."""
    talk.ask("DescribeCluster", version, endpoint_type=0)


@case("DescribeCluster", 2)
def with_fenced_brokers(talk: Talk, version: int) -> None:
    """Fenced brokers would be included; there are none."""
    talk.ask("DescribeCluster", version, include_fenced_brokers=True)
