"""Which stories of the lab are played on real processes, too, and which of them in every run."""

from __future__ import annotations

TEN = (
    "d3_baseline",
    "acks_0_loses_without_a_word",
    "acks_1_loses_silently",
    "a_leader_alone_in_the_isr_is_bypassed",
    "acks_all_with_a_minimum_of_2",
    "with_unclean_elections_the_partition_goes_on",
    "d2_walk_with_acks_1",
    "a_rack_is_lost",
    "a_split_brain",
    "a_zombie_leader_and_those_who_know_better",
)
"""The baseline of document 3, its configurations 1 to 4 and 7, document 2's walk, a rack loss, a
split brain, a zombie leader."""

QUICK = ("acks_1_loses_silently", "d2_walk_with_acks_1", "a_split_brain")
"""In every run; the others with `--all`."""

PLAYED = TEN
