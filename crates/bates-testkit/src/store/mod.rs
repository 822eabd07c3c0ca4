//! What tests of stores and of what stands on them need: the conformance suite, a model, and faults.

#![expect(missing_docs, reason = "the name of a claim says what is claimed")]

mod adopted;
mod audit;
mod books;
mod carried;
mod client_leases;
mod conformance;
mod delivery;
mod described;
mod exercise;
mod memory;
mod moved;
mod moving;
mod outbox;
mod pools;
mod runs;
mod settled;
mod together;

pub use exercise::DataSet;
pub(crate) use exercise::positions;
pub use memory::{Fault, MemoryStore};
pub use moving::exercise_move;

/// The claims of the conformance suite, by the part of the port that they are about.
pub mod claims {
    pub mod store {
        pub use super::super::adopted::{
            setting_aside_again_changes_nothing_and_tells_what_was_granted,
            what_was_set_aside_is_never_granted_and_all_else_is,
        };
        pub use super::super::described::{
            a_description_is_kept_until_the_series_is_retired_and_its_cursors_longer,
            a_promise_is_pinned_and_changed_by_one_call_only,
        };
        pub use super::super::exercise::{
            a_floor_is_raised_never_lowered_and_kept, a_grant_survives_reopening,
            a_series_that_was_never_pinned_gets_nothing,
            a_tail_does_not_go_back_to_a_cursor_that_only_looks_the_same,
            a_tail_goes_back_once_and_only_if_nothing_was_granted_since, scopes_and_series_are_apart,
            scopes_are_listed_in_pages, the_end_of_the_space_is_exact,
            the_limit_of_scopes_holds_and_reads_create_none, what_decides_the_text_is_pinned_for_ever,
            what_is_issued_is_in_the_ledger_and_nothing_else_is,
        };
        pub use super::super::together::{
            callers_of_many_scopes_at_once_get_each_its_own,
            grants_of_concurrent_callers_are_disjoint_and_without_holes,
        };
    }
    pub mod documents {
        pub use super::super::adopted::documents_pass_over_what_was_set_aside;
        pub use super::super::delivery::{
            a_claim_is_bounded_by_the_bytes_of_its_documents,
            a_claim_is_for_one_and_its_verdict_for_the_try_that_claimed_it,
            a_dead_document_is_retried_or_abandoned_and_nothing_else_is,
            a_document_that_is_being_delivered_is_not_abandoned,
            a_try_that_is_under_way_at_a_retry_does_not_settle_the_next_one,
            a_try_whose_outcome_is_not_known_leaves_a_doubt, claims_made_together_share_no_document,
            decisions_about_all_touch_only_those_that_are_meant,
            those_with_the_fewest_tries_are_claimed_first, what_failed_comes_again_after_its_time_or_is_dead,
        };
        pub use super::super::outbox::{
            a_document_is_numbered_written_and_in_the_ledger,
            a_number_is_refused_and_nothing_written_where_there_is_none,
            a_reservation_is_confirmed_or_voided_in_time, a_reservation_whose_time_is_over_is_voided,
            documents_are_listed_in_pages_and_by_what_is_asked,
            documents_that_come_together_get_each_its_own_number,
            positions_that_the_rules_reject_are_skipped,
            the_same_request_gets_the_same_number_and_another_is_refused,
            the_same_request_many_times_at_once_is_numbered_once,
            what_was_delivered_is_pruned_and_its_key_and_number_stay,
        };
    }
    pub mod gaps {
        pub use super::super::books::{
            a_late_give_back_leaves_what_was_granted_since,
            a_tail_given_back_after_the_promise_changed_is_issued_without_gaps, accounts_are_listed_in_pages,
            gaps_are_replaced_and_keep_the_time_when_they_were_first_seen,
            what_a_floor_passed_over_is_explained, what_a_sink_may_have_taken_is_uncertain,
            what_became_of_documents_is_in_the_account, what_cannot_be_given_back_is_lost,
            what_is_held_is_known_and_what_was_handed_out_is_not_missing,
            what_was_handed_out_to_the_last_is_held_by_nobody,
        };
        pub use super::super::runs::every_position_is_one_callers_or_explained;
    }
    pub mod pools {
        pub use super::super::pools::{
            a_pool_begins_at_epoch_0_on_no_server_and_makes_no_cursor,
            a_pool_leaves_what_a_process_holds_as_it_is, a_series_that_was_never_pinned_has_no_pool,
            an_epoch_is_ended_once_however_many_try_together, an_epoch_that_has_ended_is_not_ended_again,
            pools_are_listed_in_pages, what_is_granted_to_a_pool_is_nobody_elses_and_held,
            what_was_granted_and_not_told_of_outlives_an_epoch, what_was_not_pushed_is_fenced,
            what_was_pushed_is_lost_with_its_epoch_whenever_that_is_told,
        };
        pub use super::super::settled::{
            a_floor_and_a_setting_aside_forget_the_server, pools_of_other_scopes_and_series_are_left_alone,
            pools_survive_reopening, settling_twice_changes_nothing,
            what_was_popped_in_an_epoch_that_ended_does_not_count, what_was_popped_was_handed_out,
        };
    }
    pub mod audit {
        pub use super::super::audit::{
            a_document_is_recorded_in_its_own_commit_and_once,
            old_records_of_a_series_are_removed_and_no_others,
            pages_are_complete_and_in_order_also_where_times_are_the_same,
            records_are_found_by_series_scope_who_and_time, the_record_that_covers_a_position_is_found,
            what_callers_record_at_once_is_all_there, what_was_recorded_is_there_after_reopening_and_once,
        };
    }
    pub mod client_leases {
        pub use super::super::client_leases::{
            a_crash_of_the_node_leaves_what_clients_have, a_lease_ends_once,
            a_range_that_is_not_of_the_lease_is_refused_and_the_lease_stays_open, leases_are_listed_in_pages,
            what_a_client_has_is_missing_to_nobody_and_what_it_did_not_use_is_lost,
            what_was_not_heard_of_for_too_long_is_uncertain_until_it_ends,
            what_was_used_to_the_last_leaves_nothing,
        };
    }
}
