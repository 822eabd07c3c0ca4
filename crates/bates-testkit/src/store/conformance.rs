//! The conformance suite: what every store must do, one test per claim and store. A store that passes it keeps its part
//! of the promise that no number comes twice.

/// Makes one test per claim, in a module for each part of the port. Each test gets data of its own from an async
/// function, named as the modules see it: `conformance!(super::fresh)`. One part alone: `conformance!(store,
/// super::fresh)`; the parts are `store`, `documents`, `gaps`, `pools`, `audit` and `client_leases`.
#[macro_export]
macro_rules! conformance {
    ($fresh:path) => {
        $crate::conformance!(store, $fresh);
        $crate::conformance!(documents, $fresh);
        $crate::conformance!(gaps, $fresh);
        $crate::conformance!(pools, $fresh);
        $crate::conformance!(audit, $fresh);
        $crate::conformance!(client_leases, $fresh);
    };
    (store, $fresh:path) => {
        $crate::conformance!(@tests store, $fresh, [
            grants_of_concurrent_callers_are_disjoint_and_without_holes
            callers_of_many_scopes_at_once_get_each_its_own
            a_grant_survives_reopening
            the_end_of_the_space_is_exact
            scopes_and_series_are_apart
            the_limit_of_scopes_holds_and_reads_create_none
            a_tail_goes_back_once_and_only_if_nothing_was_granted_since
            a_tail_does_not_go_back_to_a_cursor_that_only_looks_the_same
            a_floor_is_raised_never_lowered_and_kept
            what_was_set_aside_is_never_granted_and_all_else_is
            setting_aside_again_changes_nothing_and_tells_what_was_granted
            what_decides_the_text_is_pinned_for_ever
            what_is_issued_is_in_the_ledger_and_nothing_else_is
            a_series_that_was_never_pinned_gets_nothing
            scopes_are_listed_in_pages
            a_description_is_kept_until_the_series_is_retired_and_its_cursors_longer
            a_promise_is_pinned_and_changed_by_one_call_only
        ], []);
    };
    (documents, $fresh:path) => {
        $crate::conformance!(@tests documents, $fresh, [
            a_document_is_numbered_written_and_in_the_ledger
            documents_that_come_together_get_each_its_own_number
            the_same_request_gets_the_same_number_and_another_is_refused
            the_same_request_many_times_at_once_is_numbered_once
            a_number_is_refused_and_nothing_written_where_there_is_none
            positions_that_the_rules_reject_are_skipped
            documents_pass_over_what_was_set_aside
            a_claim_is_for_one_and_its_verdict_for_the_try_that_claimed_it
            a_try_that_is_under_way_at_a_retry_does_not_settle_the_next_one
            what_failed_comes_again_after_its_time_or_is_dead
            those_with_the_fewest_tries_are_claimed_first
            claims_made_together_share_no_document
            a_claim_is_bounded_by_the_bytes_of_its_documents
            a_dead_document_is_retried_or_abandoned_and_nothing_else_is
            a_document_that_is_being_delivered_is_not_abandoned
            a_try_whose_outcome_is_not_known_leaves_a_doubt
            decisions_about_all_touch_only_those_that_are_meant
            a_reservation_is_confirmed_or_voided_in_time
            a_reservation_whose_time_is_over_is_voided
            what_was_delivered_is_pruned_and_its_key_and_number_stay
            documents_are_listed_in_pages_and_by_what_is_asked
        ], []);
    };
    (gaps, $fresh:path) => {
        $crate::conformance!(@tests gaps, $fresh, [
            what_is_held_is_known_and_what_was_handed_out_is_not_missing
            what_cannot_be_given_back_is_lost
            a_late_give_back_leaves_what_was_granted_since
            a_tail_given_back_after_the_promise_changed_is_issued_without_gaps
            what_was_handed_out_to_the_last_is_held_by_nobody
            what_became_of_documents_is_in_the_account
            what_a_sink_may_have_taken_is_uncertain
            what_a_floor_passed_over_is_explained
            accounts_are_listed_in_pages
            gaps_are_replaced_and_keep_the_time_when_they_were_first_seen
        ], [every_position_is_one_callers_or_explained]);
    };
    (pools, $fresh:path) => {
        $crate::conformance!(@tests pools, $fresh, [
            a_pool_begins_at_epoch_0_on_no_server_and_makes_no_cursor
            a_series_that_was_never_pinned_has_no_pool
            pools_are_listed_in_pages
            what_is_granted_to_a_pool_is_nobody_elses_and_held
            a_pool_leaves_what_a_process_holds_as_it_is
            an_epoch_is_ended_once_however_many_try_together
            an_epoch_that_has_ended_is_not_ended_again
            what_was_pushed_is_lost_with_its_epoch_whenever_that_is_told
            what_was_granted_and_not_told_of_outlives_an_epoch
            what_was_not_pushed_is_fenced
            what_was_popped_was_handed_out
            settling_twice_changes_nothing
            what_was_popped_in_an_epoch_that_ended_does_not_count
            a_floor_and_a_setting_aside_forget_the_server
            pools_of_other_scopes_and_series_are_left_alone
            pools_survive_reopening
        ], []);
    };
    (audit, $fresh:path) => {
        $crate::conformance!(@tests audit, $fresh, [
            what_was_recorded_is_there_after_reopening_and_once
            what_callers_record_at_once_is_all_there
            records_are_found_by_series_scope_who_and_time
            the_record_that_covers_a_position_is_found
            pages_are_complete_and_in_order_also_where_times_are_the_same
            old_records_of_a_series_are_removed_and_no_others
            a_document_is_recorded_in_its_own_commit_and_once
        ], []);
    };
    (client_leases, $fresh:path) => {
        $crate::conformance!(@tests client_leases, $fresh, [
            what_a_client_has_is_missing_to_nobody_and_what_it_did_not_use_is_lost
            what_was_used_to_the_last_leaves_nothing
            a_range_that_is_not_of_the_lease_is_refused_and_the_lease_stays_open
            a_lease_ends_once
            what_was_not_heard_of_for_too_long_is_uncertain_until_it_ends
            a_crash_of_the_node_leaves_what_clients_have
            leases_are_listed_in_pages
        ], []);
    };
    (@tests $part:ident, $fresh:path, [$($claim:ident)*], [$($on_many:ident)*]) => {
        mod $part {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $claim() {
                    Box::pin($crate::claims::$part::$claim(&$fresh().await)).await;
                }
            )*
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $on_many() {
                    Box::pin($crate::claims::$part::$on_many(&async || $fresh().await)).await;
                }
            )*
        }
    };
}
