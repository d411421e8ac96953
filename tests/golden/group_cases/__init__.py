"""All cases of a broker that coordinates groups: importing this package declares them."""

from tests.golden.cases.registry import GROUP_CASES
from tests.golden.group_cases import (  # noqa: F401
    commits,
    consumer_groups,
    group_admin,
    group_configs,
    heartbeats,
    joins,
    leaves,
    migrations,
    offsets,
    static_members,
    syncs,
)

__all__ = ["GROUP_CASES"]
