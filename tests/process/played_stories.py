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

MORE = (
    "each_election_begins_a_new_leader_epoch",
    "producer_state_is_on_disk",
    "a_leader_cut_off_from_its_controller",
    "a_leader_is_shut_down",
    "a_leader_is_demoted",
    "d1_walk_b_has_the_batch",
    "d1_walk_b_has_it_not",
    "ten_batches_of_which_a_prefix_survives",
    "a_returns_before_anything_new_is_written",
    "an_old_leader_epoch_is_refused_everywhere",
    "d2_walk_with_acks_all",
    "c_is_elected_when_it_stands_before_b",
    "d3_timeline",
    "d3_return",
    "acks_all_with_a_minimum_of_1_still_waits_for_all",
    "a_crash_before_the_ack_idempotent",
    "a_crash_before_the_ack_not_idempotent",
    "one_replica_only",
    "stage_1_on_the_leader_alone",
    "stage_2_on_the_follower_that_is_elected",
    "stage_2_on_the_follower_that_is_not",
    "stage_3_on_all_before_the_leader_knows",
    "two_brokers_die_and_the_slow_one_was_in_sync",
    "the_controller_decides_every_leadership",
    "an_election_knows_no_racks",
    "what_survives_a_lost_rack",
    "the_tiebreaker_decides",
    "rack_a_is_cut_off",
    "heartbeats_are_missing",
    "a_followers_last_batch_is_torn",
    "a_leaders_last_batch_is_torn",
    "a_stale_incarnation_is_not_let_in",
    "isr_proposals_that_are_refused",
    "a_leader_that_only_the_controller_can_reach",
    "a_restarted_follower_keeps_what_is_above_its_high_watermark",
    "leaders_in_quick_succession",
    "a_planned_move_loses_what_acks_1_wrote",
)
"""Each a few seconds, and not one of them in a hurry: whatever they race with is held back."""

PLAYED = (*TEN, *MORE)
