//! The pure rules of the queue.

use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn silent(kind: TaskKind, phase: LeasePhase) -> Silent {
    Silent {
        kind,
        phase,
        apply_begun: false,
        executor: AttemptExecutor::MayLive,
        lease_expired: true,
        wall_clock_passed: false,
        unstarted: 1,
    }
}

#[test]
fn words_of_kinds_statuses_and_phases_are_read_back() {
    for &kind in TaskKind::ALL {
        assert_eq!(TaskKind::parse(kind.as_str()), Some(kind));
        assert_eq!(serde_json::to_value(kind).expect("a word"), kind.as_str());
        assert!(attempts_max(kind) > 0);
    }
    for status in TaskStatus::ALL {
        assert_eq!(TaskStatus::parse(status.as_str()), Some(status));
    }
    for phase in [LeasePhase::Launching, LeasePhase::Live, LeasePhase::Unresponsive] {
        assert_eq!(LeasePhase::parse(phase.as_str()), Some(phase));
    }
    assert_eq!(TaskKind::parse("run"), None);
}

#[test]
fn waits_double_up_to_a_ceiling_and_jitter_takes_from_all_of_it() {
    let wait = |attempts, jitter| backoff(attempts, 5 * SECOND, 600 * SECOND, jitter);
    assert_eq!(wait(1, 1.0), 5 * SECOND);
    assert_eq!(wait(4, 1.0), 40 * SECOND);
    assert_eq!(wait(4, 0.25), 10 * SECOND);
    assert_eq!(wait(60, 1.0), 600 * SECOND);
    assert_eq!(wait(3, 0.0), Duration::ZERO);
    assert_eq!(wait(-1, 1.0), 5 * SECOND);
}

#[test]
fn the_last_attempt_and_a_permanent_failure_are_dead_letters() {
    let retry = FailedAttempt::Retry("no".into());
    assert_eq!(after_failure(&retry, 1, 2, SECOND), Backoff::Requeued(SECOND));
    assert_eq!(after_failure(&retry, 2, 2, SECOND), Backoff::DeadLettered);
    assert_eq!(after_failure(&FailedAttempt::Permanent("no".into()), 1, 9, SECOND), Backoff::DeadLettered);
}

#[test]
fn what_was_never_traded_is_given_back_for_every_kind() {
    for kind in [TaskKind::RunPlan, TaskKind::RunApply] {
        let mut attempt = silent(kind, LeasePhase::Launching);
        assert_eq!(on_silence(&attempt), Verdict::GiveBack);
        attempt.lease_expired = false;
        assert_eq!(on_silence(&attempt), Verdict::Leave);
        attempt.executor = AttemptExecutor::Stopped;
        assert_eq!(on_silence(&attempt), Verdict::GiveBack, "its executor died on the way");
        attempt.executor = AttemptExecutor::None;
        assert_eq!(on_silence(&attempt), Verdict::Leave, "its worker may still be launching it");
    }
}

#[test]
fn what_never_starts_is_given_up_after_many_launches() {
    for kind in [TaskKind::RunPlan, TaskKind::RunApply] {
        let mut attempt = silent(kind, LeasePhase::Launching);
        attempt.unstarted = UNSTARTED_MAX - 1;
        assert_eq!(on_silence(&attempt), Verdict::GiveBack);
        attempt.unstarted = UNSTARTED_MAX;
        assert_eq!(on_silence(&attempt), Verdict::GiveUp);
        attempt.phase = LeasePhase::Live;
        assert_eq!(on_silence(&attempt), Verdict::StopFirst, "this one did start");
    }
}

#[test]
fn what_provably_was_not_begun_waits_and_never_becomes_a_dead_letter() {
    let throttled = FailedAttempt::NotBegun("slow down".into());
    assert_eq!(after_failure(&throttled, 9, 2, SECOND), Backoff::GivenBack(NOT_BEGUN_DELAY));
}

#[test]
fn a_plan_is_stopped_first_and_tried_again_when_it_has_stopped() {
    let mut attempt = silent(TaskKind::RunPlan, LeasePhase::Live);
    assert_eq!(on_silence(&attempt), Verdict::StopFirst);
    attempt.executor = AttemptExecutor::Stopped;
    assert_eq!(on_silence(&attempt), Verdict::Fail);
    attempt.lease_expired = false;
    assert_eq!(on_silence(&attempt), Verdict::Fail, "known to have stopped: no need to wait for the lease");
}

#[test]
fn an_apply_that_has_not_begun_is_treated_like_a_plan() {
    assert_eq!(on_silence(&silent(TaskKind::RunApply, LeasePhase::Live)), Verdict::StopFirst);
}

#[test]
fn a_begun_apply_is_lost_only_when_it_stopped_or_its_wall_clock_passed() {
    let mut attempt = silent(TaskKind::RunApply, LeasePhase::Live);
    attempt.apply_begun = true;
    assert_eq!(on_silence(&attempt), Verdict::MarkUnresponsive);
    attempt.phase = LeasePhase::Unresponsive;
    assert_eq!(on_silence(&attempt), Verdict::Leave);
    attempt.wall_clock_passed = true;
    assert_eq!(on_silence(&attempt), Verdict::Lost);
    attempt.wall_clock_passed = false;
    attempt.executor = AttemptExecutor::Stopped;
    assert_eq!(on_silence(&attempt), Verdict::Lost);
}

#[test]
fn a_healthy_attempt_beyond_its_wall_clock_is_asked_to_stop() {
    for (kind, apply_begun) in [(TaskKind::RunPlan, false), (TaskKind::RunApply, true)] {
        let mut attempt = silent(kind, LeasePhase::Live);
        attempt.apply_begun = apply_begun;
        attempt.lease_expired = false;
        assert_eq!(on_silence(&attempt), Verdict::Leave);
        attempt.wall_clock_passed = true;
        assert_eq!(on_silence(&attempt), Verdict::StopFirst);
    }
}

#[test]
fn a_short_task_fails_when_its_workers_lease_runs_out() {
    let mut attempt = silent(TaskKind::WorkspaceImport, LeasePhase::Live);
    attempt.executor = AttemptExecutor::None;
    assert_eq!(on_silence(&attempt), Verdict::Fail);
    attempt.lease_expired = false;
    assert_eq!(on_silence(&attempt), Verdict::Leave);
}
