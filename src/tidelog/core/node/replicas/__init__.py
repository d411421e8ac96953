"""The replicas that a broker keeps: log directories, partitions, in-sync sets, upkeep of logs."""
