"""All mutants by name: known mistakes that the simulator must catch."""

from __future__ import annotations

from tidelog.worlds.simulator.mutant import Mutant
from tidelog.worlds.simulator.mutants_of_compaction import COMPACTION_MUTANTS
from tidelog.worlds.simulator.mutants_of_groups import GROUP_MUTANTS
from tidelog.worlds.simulator.mutants_of_metadata import METADATA_MUTANTS
from tidelog.worlds.simulator.mutants_of_partitions import PARTITION_MUTANTS
from tidelog.worlds.simulator.mutants_of_reassignment import REASSIGNMENT_MUTANTS
from tidelog.worlds.simulator.mutants_of_replication import REPLICATION_MUTANTS
from tidelog.worlds.simulator.mutants_of_storage import STORAGE_MUTANTS
from tidelog.worlds.simulator.mutants_of_transactions import TRANSACTION_MUTANTS

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        *STORAGE_MUTANTS,
        *REPLICATION_MUTANTS,
        *PARTITION_MUTANTS,
        *METADATA_MUTANTS,
        *REASSIGNMENT_MUTANTS,
        *GROUP_MUTANTS,
        *COMPACTION_MUTANTS,
        *TRANSACTION_MUTANTS,
    )
}
