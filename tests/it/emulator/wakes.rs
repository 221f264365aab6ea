//! Wake-ups are hints: without any, and with each arriving three times, one change leaves what it always leaves.

use plumbline_emulator::{Hosting, Wakes};

use super::change::one_change_from_git_to_applied;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_wake_up_the_sweeps_take_a_change_from_git_to_applied() {
    one_change_from_git_to_applied(|options| options.wakes = Wakes::Never).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_up_that_arrives_three_times_makes_nothing_happen_twice() {
    one_change_from_git_to_applied(|options| options.wakes = Wakes::Thrice).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_happens_twice_either_when_three_worker_programs_are_woken_at_once() {
    one_change_from_git_to_applied(|options| {
        options.wakes = Wakes::Thrice;
        options.hosting = Hosting::Lambda;
    })
    .await;
}
