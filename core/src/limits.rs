//! Every default that can be tuned, with its unit. Functions read overrides from `PLUMBLINE_LIMIT_<NAME>`.

use std::time::Duration;

/// The product's limits. `Limits::default()` is what the design names.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a live executor's claim holds without a heartbeat.
    pub lease: Duration,
    /// How often an executor reports that it lives.
    pub heartbeat: Duration,
    /// How long a launched executor may take until it trades its ticket.
    pub launch_lease: Duration,
    /// First retry delay; doubles at each attempt.
    pub backoff_base: Duration,
    /// Longest retry delay.
    pub backoff_max: Duration,
    /// Wall-clock limit of a plan executor.
    pub plan_wall_clock: Duration,
    /// Wall-clock limit of an apply executor.
    pub apply_wall_clock: Duration,
    /// Wall-clock limit of a short task.
    pub short_wall_clock: Duration,
    /// How often the reconciler is triggered. A pause of one and a half of these is taken for an outage.
    pub sweep_period: Duration,
    /// How long finished tasks are kept.
    pub finished_task_age: Duration,
    /// How long the secrets of an ended run, or of a finished task, are kept.
    pub run_secret_age: Duration,
    /// How long an unapproved plan may be approved.
    pub plan_age: Duration,
    /// Executor launches per second over the whole installation.
    pub launches_per_second: f64,
    /// Executors at once over the whole installation.
    pub executors_max: i32,
    /// Executors at once per business unit (default of a new unit).
    pub unit_executors_max: i32,
    /// Short tasks at once per business unit (default of a new unit).
    pub unit_short_tasks_max: i32,
    /// Largest request body of the API, in bytes.
    pub body_bytes_max: usize,
    /// Largest state body written inline, in bytes.
    pub inline_state_bytes_max: usize,
    /// Largest state body read inline, in bytes; larger ones go by redirect.
    pub inline_read_bytes_max: usize,
    /// Largest log of one step, in bytes; after that only its tail is kept.
    pub step_log_bytes_max: u64,
    /// Largest log chunk in one call, in bytes.
    pub log_chunk_bytes_max: usize,
    /// How long an idempotency key answers.
    pub idempotency_age: Duration,
    /// Life of an access token.
    pub access_token_age: Duration,
    /// Life of a refresh token.
    pub refresh_token_age: Duration,
    /// Life of a token of our own issuer; ten minutes at most.
    pub issuer_token_age: Duration,
    /// How long the issuer's next key must have been published before it signs.
    pub issuer_key_lead: Duration,
    /// How long a key of the issuer is published after it has signed for the last time.
    pub issuer_key_tail: Duration,
    /// Failed sign-ins per minute from one network, or for one account from a network that it is used from.
    pub logins_per_minute: i32,
    /// Failed sign-ins per minute for one account from all networks that it is not used from.
    pub account_logins_per_minute: i32,
    /// Life of an invitation.
    pub invite_age: Duration,
    /// Life of an upload URL.
    pub upload_url_age: Duration,
    /// Life of a download URL.
    pub download_url_age: Duration,
    /// How long after its URL expired an upload may still be found.
    pub pending_upload_age: Duration,
    /// Rows per page when the caller does not say.
    pub page_size: i64,
    /// Rows per page at most.
    pub page_size_max: i64,
    /// Runs that may wait for one workspace.
    pub waiting_runs_max: i64,
    /// Cost of bcrypt (log2 of rounds).
    pub bcrypt_cost: u32,
    /// Longest run of one Git command about somebody's repository; shorter than the lease of a short task.
    pub git_timeout: Duration,
    /// Largest file that such a command may write, in bytes.
    pub git_file_bytes_max: u64,
    /// Longest list of branches or files that it may print, in bytes.
    pub git_output_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let minutes = |n: u64| Duration::from_secs(n * 60);
        Self {
            lease: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            launch_lease: minutes(10),
            backoff_base: Duration::from_secs(5),
            backoff_max: minutes(10),
            plan_wall_clock: minutes(60),
            apply_wall_clock: minutes(240),
            short_wall_clock: minutes(14),
            sweep_period: minutes(1),
            finished_task_age: minutes(30 * 24 * 60),
            run_secret_age: minutes(7 * 24 * 60),
            plan_age: minutes(24 * 60),
            launches_per_second: 15.0,
            executors_max: 200,
            unit_executors_max: 20,
            unit_short_tasks_max: 10,
            body_bytes_max: 1 << 20,
            inline_state_bytes_max: 5 << 20,
            inline_read_bytes_max: 256 << 10,
            step_log_bytes_max: 64 << 20,
            log_chunk_bytes_max: 512 << 10,
            idempotency_age: minutes(24 * 60),
            access_token_age: minutes(8 * 60),
            refresh_token_age: minutes(24 * 60),
            issuer_token_age: minutes(5),
            issuer_key_lead: minutes(60),
            issuer_key_tail: minutes(60),
            logins_per_minute: 10,
            account_logins_per_minute: 100,
            invite_age: minutes(7 * 24 * 60),
            upload_url_age: Duration::from_secs(60),
            download_url_age: Duration::from_secs(60),
            pending_upload_age: minutes(24 * 60),
            page_size: 50,
            page_size_max: 200,
            waiting_runs_max: 100,
            bcrypt_cost: 12,
            git_timeout: Duration::from_secs(40),
            git_file_bytes_max: 256 << 20,
            git_output_bytes_max: 32 << 20,
        }
    }
}
