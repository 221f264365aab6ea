//! The functions in one process, and their own programs behind Lambda's runtime API: the same change goes through both.
//! Each function has its own Postgres role and keys in both.

use plumbline_emulator::Hosting;

use super::change::one_change_from_git_to_applied;
use crate::pgbouncer::{PgBouncer, free_port};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_goes_from_git_to_applied_in_one_process() {
    one_change_from_git_to_applied(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_goes_from_git_to_applied_through_the_function_programs() {
    one_change_from_git_to_applied(|options| options.hosting = Hosting::Lambda).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_goes_through_the_function_programs_and_a_transaction_pooler() {
    const PASSWORD: &str = "for-tests-only";
    let postgres_port = free_port();
    let Some(pooler) = PgBouncer::start(postgres_port, PASSWORD).await else { return };
    one_change_from_git_to_applied(|options| {
        options.hosting = Hosting::Lambda;
        options.postgres_port = postgres_port;
        options.pooler_port = Some(pooler.port);
        // The pooler needs it before the server exists.
        std::fs::create_dir(&options.directory).expect("a fresh place");
        std::fs::write(options.directory.join("postgres-password"), PASSWORD).expect("written");
    })
    .await;
}
