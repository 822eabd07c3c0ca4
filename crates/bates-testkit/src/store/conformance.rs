//! The conformance suite: one test per claim and store. A store that passes it never grants a position twice.

/// Makes one test per claim, in a module for each part of the port. Each test calls an async function for its own
/// empty data; its path is relative to these modules: `conformance!(super::fresh)`. For one part alone:
/// `conformance!(store, super::fresh)`; the parts are `store`, `documents`, `gaps`, `pools`, `audit`,
/// `operations` and `client_leases`.
#[macro_export]
macro_rules! conformance {
    ($fresh:path) => {
        $crate::conformance!(store, $fresh);
        $crate::conformance!(documents, $fresh);
        $crate::conformance!(gaps, $fresh);
        $crate::conformance!(pools, $fresh);
        $crate::conformance!(audit, $fresh);
        $crate::conformance!(operations, $fresh);
        $crate::conformance!(client_leases, $fresh);
    };
    (store, $fresh:path) => {
        $crate::conformance!(@tests store, $fresh, [
            grants_of_concurrent_callers_are_disjoint_and_without_holes
            concurrent_callers_of_many_scopes_get_disjoint_ranges
            a_grant_survives_reopening
            grants_stop_exactly_at_the_end_of_the_space
            calls_for_many_scopes_are_answered_in_the_order_of_their_requests
            scopes_and_series_count_separately
            the_scope_limit_holds_and_reads_create_no_scope
            a_range_is_released_once_and_only_if_nothing_was_granted_since
            lists_show_only_the_series_of_a_set
            cursors_are_read_at_once_in_the_order_of_their_scopes
            lists_show_only_scopes_with_the_values_of_a_filter
            a_release_needs_the_cursor_version_as_well_as_its_position
            a_floor_is_durable_and_only_rises
            the_floor_of_a_series_holds_for_scopes_that_do_not_exist_yet
            adopted_positions_are_never_granted_and_all_others_are
            adopting_twice_changes_nothing_and_counts_granted_positions
            a_pinned_definition_never_changes
            the_ledger_lists_exactly_the_issued_positions
            an_unpinned_series_is_granted_nothing
            scopes_are_listed_in_pages
            a_description_checked_against_an_earlier_revision_is_refused
            retiring_a_series_removes_its_description_and_keeps_its_cursors
            a_promise_is_pinned_and_only_change_promise_changes_it
        ], []);
    };
    (documents, $fresh:path) => {
        $crate::conformance!(@tests documents, $fresh, [
            an_assigned_document_is_stored_and_in_the_ledger
            concurrent_documents_get_distinct_numbers_without_holes
            a_repeated_key_returns_its_number_and_refuses_another_body
            a_request_for_an_earlier_answer_numbers_nothing
            concurrent_requests_with_one_key_get_one_number
            a_refused_document_writes_nothing_and_frees_its_key
            positions_that_the_rules_reject_are_skipped
            documents_skip_adopted_positions
            only_the_latest_claim_of_a_document_can_settle_it
            an_attempt_from_before_a_retry_does_not_settle_the_next_one
            a_failed_document_is_due_again_after_its_delay_or_is_dead
            documents_with_the_fewest_attempts_are_claimed_first
            concurrent_claims_share_no_document
            a_claim_is_bounded_by_the_bytes_of_its_documents
            a_pending_document_can_be_abandoned_but_not_confirmed_or_voided
            a_claimed_document_cannot_be_abandoned
            an_attempt_without_an_outcome_marks_its_document_in_doubt
            a_bulk_action_changes_only_matching_documents
            a_reservation_can_be_confirmed_or_voided_until_it_expires
            an_expired_reservation_is_voided
            pruning_removes_delivered_documents_and_keeps_their_keys
            a_removed_document_leaves_the_gap_and_the_reason_that_it_had
            the_key_of_a_removed_document_answers_with_its_number_and_state
            a_document_is_removed_only_in_its_group_and_after_its_time
            a_retried_document_is_not_removed_and_is_delivered
            documents_are_listed_in_pages_and_by_filter
        ], []);
    };
    (gaps, $fresh:path) => {
        $crate::conformance!(@tests gaps, $fresh, [
            held_positions_are_known_and_handed_out_ones_are_not_missing
            a_range_that_cannot_be_released_is_lost
            a_late_release_keeps_ranges_granted_since
            a_range_released_after_the_promise_changed_counts_as_gapless
            a_range_handed_out_completely_is_no_longer_held
            a_reconciliation_shows_the_state_of_every_document
            a_document_that_a_sink_may_have_taken_is_uncertain
            positions_skipped_by_a_floor_are_explained
            reconciliations_are_listed_in_pages
            replaced_gaps_keep_the_time_they_were_first_seen
            a_series_keeps_as_of_when_its_gaps_are
        ], [every_position_has_one_caller_or_an_explanation]);
    };
    (pools, $fresh:path) => {
        $crate::conformance!(@tests pools, $fresh, [
            a_new_pool_is_at_epoch_0_without_server_or_cursor
            an_unpinned_series_has_no_pool
            pools_are_listed_in_pages
            positions_granted_to_a_pool_are_held_and_granted_once
            a_pool_does_not_change_the_ranges_that_a_process_holds
            concurrent_renewals_end_an_epoch_once
            an_ended_epoch_is_not_renewed_again
            pushed_positions_are_lost_with_their_epoch_even_if_reported_late
            granted_positions_that_were_not_reported_outlive_an_epoch
            positions_that_were_not_pushed_are_fenced
            popped_positions_count_as_handed_out
            settling_twice_changes_nothing
            pops_reported_for_another_epoch_do_not_count
            raising_a_floor_or_adopting_forgets_the_pool_server
            a_pool_change_leaves_other_scopes_and_series_alone
            pools_survive_reopening
        ], []);
    };
    (audit, $fresh:path) => {
        $crate::conformance!(@tests audit, $fresh, [
            records_survive_reopening_and_are_stored_once
            concurrent_records_are_all_stored
            records_are_found_by_series_scope_caller_and_time
            the_record_that_covers_a_position_is_found
            pages_of_records_are_complete_and_ordered_even_with_equal_times
            pruning_removes_only_old_records_of_one_series
            an_audited_document_is_recorded_once_in_its_own_commit
        ], []);
    };
    (operations, $fresh:path) => {
        $crate::conformance!(@tests operations, $fresh, [
            every_change_is_recorded_in_its_own_commit
            a_bulk_action_records_how_many_documents_it_changed
            an_operation_is_recorded_once_and_concurrent_ones_stay_in_one_chain
            operations_are_listed_in_pages_and_by_filter
            pruning_removes_the_beginning_of_a_chain_and_says_so
            a_token_changes_only_from_the_state_that_the_caller_saw
            concurrent_draws_never_exceed_a_quota
        ], []);
    };
    (client_leases, $fresh:path) => {
        $crate::conformance!(@tests client_leases, $fresh, [
            leased_positions_are_not_missing_and_returned_ones_are_lost
            a_lease_used_completely_leaves_nothing_missing
            a_range_outside_the_lease_is_refused_and_the_lease_stays_open
            a_lease_ends_once
            a_lease_is_ended_only_by_its_owner
            a_silent_lease_is_uncertain_until_it_ends
            client_leases_survive_a_crash_of_the_node
            leases_are_listed_in_pages
        ], []);
    };
    (@tests $part:ident, $fresh:path, [$($claim:ident)*], [$($with_fresh_data:ident)*]) => {
        mod $part {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $claim() {
                    Box::pin($crate::claims::$part::$claim(&$fresh().await)).await;
                }
            )*
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $with_fresh_data() {
                    Box::pin($crate::claims::$part::$with_fresh_data(&async || $fresh().await)).await;
                }
            )*
        }
    };
}
