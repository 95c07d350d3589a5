//! The guarantees of each queue, tested on real queues: single calls, seeded histories compared
//! with a model, and worker processes that are killed, stopped and made to fail at each step.
//!
//! Each kind of queue has a line at the end of this file, and its `Stage` in `stage.rs`.
//! `FLEDGE_TEST_ALL=1` tries more histories.

mod cancelling;
mod crowd;
mod deaths;
mod ending;
mod histories;
mod leases;
mod model;
mod order;
#[cfg(debug_assertions)] // without them there are no such places
mod places;
mod stage;
mod worker;

macro_rules! tests {
    ($stage:ty: $($module:ident { $($law:ident)* })*) => {$($(
        #[test]
        fn $law() {
            crate::queue::$module::$law::<$stage>();
        }
    )*)*};
}

/// All guarantees, for one kind of queue.
macro_rules! conformance {
    ($name:ident, $stage:ty) => {
        mod $name {
            #[test]
            fn works_in_a_process_of_its_own() {
                crate::queue::worker::work_if_asked::<$stage>();
            }

            tests! { $stage:
                order {
                    a_job_that_is_submitted_often_and_by_many_is_one_job
                    a_higher_priority_goes_first_and_equals_in_the_order_of_their_submission
                    a_limit_holds_over_all_priorities_and_batches
                    a_paused_pool_gives_nothing_until_the_longest_pause_is_over
                    a_job_starts_when_its_time_has_come
                    a_worker_of_one_batch_has_its_jobs_alone
                    who_waits_has_the_job_that_another_connection_brings
                    what_is_too_large_is_refused_and_nothing_is_added
                }
                leases {
                    what_is_said_with_a_lease_that_is_over_changes_nothing
                    the_first_result_counts_and_who_repeats_it_hears_so
                    a_number_of_a_lease_is_never_used_again
                    a_job_that_is_given_back_keeps_its_place
                }
                ending {
                    after_the_last_delivery_a_job_is_dead_with_its_reason_until_it_is_revived
                    a_queue_tells_of_its_jobs_page_by_page
                    what_ended_long_ago_is_forgotten_and_nothing_else
                }
                cancelling {
                    what_waits_never_starts_and_what_runs_hears_of_it
                    a_cancelled_job_ends_with_its_lease_or_with_its_result
                    a_process_that_works_hears_of_a_cancellation_soon
                }
                crowd {
                    many_jobs_and_processes_leave_one_result_each_and_nothing_else
                    more_processes_than_the_limit_never_run_more_than_it
                }
                deaths {
                    who_renews_keeps_its_job_and_who_hangs_loses_it
                    a_job_of_a_killed_process_is_delivered_again
                    a_stopped_process_that_goes_on_cannot_hand_in_its_result
                    what_kills_every_worker_is_dead_after_its_last_delivery
                    processes_killed_by_chance_lose_nothing_and_do_nothing_twice
                }
                histories {
                    histories_by_chance_go_as_the_model_says
                }
            }

            #[cfg(debug_assertions)]
            tests! { $stage:
                places {
                    a_process_that_dies_at_any_step_loses_nothing_and_leaves_one_result
                    a_call_that_failed_at_any_step_can_be_repeated
                }
            }
        }
    };
}

conformance!(sqlite, crate::queue::stage::Sqlite);
