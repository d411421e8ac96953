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
    "a_batch_lies_about_its_records",
    "each_election_begins_a_new_leader_epoch",
    "producer_state_is_on_disk",
    "a_leader_cut_off_from_its_controller",
    "a_leader_is_shut_down",
    "a_leader_is_demoted",
    "a_leader_is_moved_away",
    "a_partition_moves_to_other_brokers",
    "a_reassignment_is_cancelled",
    "a_reassignment_loses_what_acks_1_wrote",
    "d1_walk_b_has_the_batch",
    "d1_walk_b_has_it_not",
    "ten_batches_of_which_a_prefix_survives",
    "a_returns_before_anything_new_is_written",
    "an_old_leader_epoch_is_refused_everywhere",
    "d2_walk_with_acks_all",
    "c_is_elected_when_it_stands_before_b",
    "d3_timeline",
    "d3_return",
    "a_fetch_of_another_history_counts_for_nothing",
    "no_reader_is_given_what_is_cut",
    "a_producer_retries_by_itself",
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
    "a_stranger_speaks_as_a_node",
    "a_leader_that_only_the_controller_can_reach",
    "a_restarted_follower_keeps_what_is_above_its_high_watermark",
    "leaders_in_quick_succession",
    "a_planned_move_loses_what_acks_1_wrote",
    "a_paused_leader_asks_first",
    "a_paused_leader_waits_for_the_metadata",
    "a_paused_controller_does_not_answer_for_itself",
    "a_paused_leader_that_still_leads",
    "a_coordinator_dies_in_a_rebalance",
    "a_coordinator_dies_in_a_commit",
    "coordinator_member_and_leader_die_together",
    "consumer_leader_and_coordinator_die_together",
    "a_leader_dies_in_a_members_fetch",
    "a_member_that_overslept",
    "the_only_broker_with_the_offsets_is_dead",
    "a_commit_needs_a_second_broker",
    "a_rack_with_leader_and_coordinator_is_lost",
    "a_group_needs_no_controller",
)
"""Each a few seconds, and not one of them in a hurry: whatever they race with is held back."""

PLAYED = (*TEN, *MORE)
