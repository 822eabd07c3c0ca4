//! The conformance suite, and a store in memory that can inject faults.

#![expect(missing_docs, reason = "the name of a function is its claim")]

mod adopted;
mod audit;
mod callers;
mod client_leases;
mod concurrent;
mod conformance;
mod delivery;
mod descriptions;
mod exercise;
mod floors;
mod gaps;
mod keys;
mod listed;
mod memory;
mod moving;
mod moving_documents;
mod moving_pools;
mod operations;
mod outbox;
mod pool_settlements;
mod pools;
mod pruning;
mod runs;

pub use exercise::DataSet;
pub(crate) use exercise::positions;
pub use memory::{Fault, MemoryStore};
pub use moving::exercise_move;

/// The claims of the conformance suite, by the part of the port that they are about.
pub mod claims {
    pub mod store {
        pub use super::super::adopted::{
            adopted_positions_are_never_granted_and_all_others_are,
            adopting_twice_changes_nothing_and_counts_granted_positions,
        };
        pub use super::super::concurrent::{
            concurrent_callers_of_many_scopes_get_disjoint_ranges,
            grants_of_concurrent_callers_are_disjoint_and_without_holes,
        };
        pub use super::super::descriptions::{
            a_description_checked_against_an_earlier_revision_is_refused,
            a_promise_is_pinned_and_only_change_promise_changes_it,
            retiring_a_series_removes_its_description_and_keeps_its_cursors,
        };
        pub use super::super::exercise::{
            a_floor_is_durable_and_only_rises, a_grant_survives_reopening, a_pinned_definition_never_changes,
            a_range_is_released_once_and_only_if_nothing_was_granted_since,
            a_release_needs_the_cursor_version_as_well_as_its_position,
            an_unpinned_series_is_granted_nothing,
            calls_for_many_scopes_are_answered_in_the_order_of_their_requests,
            cursors_are_read_at_once_in_the_order_of_their_scopes,
            grants_stop_exactly_at_the_end_of_the_space, scopes_and_series_count_separately,
            scopes_are_listed_in_pages, the_ledger_lists_exactly_the_issued_positions,
            the_scope_limit_holds_and_reads_create_no_scope,
        };
        pub use super::super::floors::the_floor_of_a_series_holds_for_scopes_that_do_not_exist_yet;
        pub use super::super::listed::{
            lists_show_only_scopes_with_the_values_of_a_filter, lists_show_only_the_series_of_a_set,
        };
    }
    pub mod documents {
        pub use super::super::adopted::documents_skip_adopted_positions;
        pub use super::super::delivery::{
            a_bulk_action_changes_only_matching_documents, a_claim_is_bounded_by_the_bytes_of_its_documents,
            a_claimed_document_cannot_be_abandoned,
            a_failed_document_is_due_again_after_its_delay_or_is_dead,
            a_pending_document_can_be_abandoned_but_not_confirmed_or_voided,
            an_attempt_from_before_a_retry_does_not_settle_the_next_one,
            an_attempt_without_an_outcome_marks_its_document_in_doubt, concurrent_claims_share_no_document,
            documents_with_the_fewest_attempts_are_claimed_first,
            only_the_latest_claim_of_a_document_can_settle_it,
        };
        pub use super::super::keys::{
            a_repeated_key_returns_its_number_and_refuses_another_body,
            a_request_for_an_earlier_answer_numbers_nothing, concurrent_requests_with_one_key_get_one_number,
        };
        pub use super::super::outbox::{
            a_refused_document_writes_nothing_and_frees_its_key,
            a_reservation_can_be_confirmed_or_voided_until_it_expires,
            an_assigned_document_is_stored_and_in_the_ledger, an_expired_reservation_is_voided,
            concurrent_documents_get_distinct_numbers_without_holes,
            documents_are_listed_in_pages_and_by_filter, positions_that_the_rules_reject_are_skipped,
            pruning_removes_delivered_documents_and_keeps_their_keys,
        };
        pub use super::super::pruning::{
            a_document_is_removed_only_in_its_group_and_after_its_time,
            a_removed_document_leaves_the_gap_and_the_reason_that_it_had,
            a_retried_document_is_not_removed_and_is_delivered,
            the_key_of_a_removed_document_answers_with_its_number_and_state,
        };
    }
    pub mod gaps {
        pub use super::super::gaps::{
            a_document_that_a_sink_may_have_taken_is_uncertain, a_late_release_keeps_ranges_granted_since,
            a_range_handed_out_completely_is_no_longer_held,
            a_range_released_after_the_promise_changed_counts_as_gapless,
            a_range_that_cannot_be_released_is_lost, a_reconciliation_shows_the_state_of_every_document,
            a_series_keeps_as_of_when_its_gaps_are,
            held_positions_are_known_and_handed_out_ones_are_not_missing,
            positions_skipped_by_a_floor_are_explained, reconciliations_are_listed_in_pages,
            replaced_gaps_keep_the_time_they_were_first_seen,
        };
        pub use super::super::runs::every_position_has_one_caller_or_an_explanation;
    }
    pub mod pools {
        pub use super::super::pool_settlements::{
            a_pool_change_leaves_other_scopes_and_series_alone, pools_survive_reopening,
            popped_positions_count_as_handed_out, pops_reported_for_another_epoch_do_not_count,
            raising_a_floor_or_adopting_forgets_the_pool_server, settling_twice_changes_nothing,
        };
        pub use super::super::pools::{
            a_new_pool_is_at_epoch_0_without_server_or_cursor,
            a_pool_does_not_change_the_ranges_that_a_process_holds, an_ended_epoch_is_not_renewed_again,
            an_unpinned_series_has_no_pool, concurrent_renewals_end_an_epoch_once,
            granted_positions_that_were_not_reported_outlive_an_epoch, pools_are_listed_in_pages,
            positions_granted_to_a_pool_are_held_and_granted_once, positions_that_were_not_pushed_are_fenced,
            pushed_positions_are_lost_with_their_epoch_even_if_reported_late,
        };
    }
    pub mod audit {
        pub use super::super::audit::{
            an_audited_document_is_recorded_once_in_its_own_commit, concurrent_records_are_all_stored,
            pages_of_records_are_complete_and_ordered_even_with_equal_times,
            pruning_removes_only_old_records_of_one_series,
            records_are_found_by_series_scope_caller_and_time, records_survive_reopening_and_are_stored_once,
            the_record_that_covers_a_position_is_found,
        };
    }
    pub mod operations {
        pub use super::super::callers::{
            a_token_changes_only_from_the_state_that_the_caller_saw, concurrent_draws_never_exceed_a_quota,
        };
        pub use super::super::operations::{
            a_bulk_action_records_how_many_documents_it_changed,
            an_operation_is_recorded_once_and_concurrent_ones_stay_in_one_chain,
            every_change_is_recorded_in_its_own_commit, operations_are_listed_in_pages_and_by_filter,
            pruning_removes_the_beginning_of_a_chain_and_says_so,
        };
    }
    pub mod client_leases {
        pub use super::super::client_leases::{
            a_lease_ends_once, a_lease_is_ended_only_by_its_owner,
            a_lease_used_completely_leaves_nothing_missing,
            a_range_outside_the_lease_is_refused_and_the_lease_stays_open,
            a_silent_lease_is_uncertain_until_it_ends, client_leases_survive_a_crash_of_the_node,
            leased_positions_are_not_missing_and_returned_ones_are_lost, leases_are_listed_in_pages,
        };
    }
}
