//! The matrix itself is tested: a server with a defect fails at a case that is named here, one without fails at none.

use std::sync::Arc;

use plumbline_tests::clients::{AnyServer, Case, Methods, Report, Target, cases, run_all};

use super::naive::{self, Defect};
use super::{AT_ONCE, program};

/// Each defect, and the beginning of the name of a case that finds it.
const FOUND_BY: [(Defect, &str); 15] = [
    (Defect::LockIsNotIdempotent, "the answer to LOCK is lost"),
    (Defect::LockAnswers201, "a plan locks, reads and unlocks"),
    (Defect::LockIgnoresTheHolder, "of two applies at once"),
    (Defect::HolderIsWrapped, "a lock that is held is shown"),
    (Defect::WriteIgnoresTheId, "whoever lost the lock cannot write"),
    (Defect::WriteIgnoresTheLock, "a write without locking is kept out"),
    (Defect::WriteIsRedirected, "a first apply writes once"),
    (Defect::WriteIsNotIdempotent, "the answer to a write is lost"),
    (Defect::WriteIgnoresContentMd5, "a body that is damaged on its way"),
    (Defect::WriteIgnoresTheSerial, "a push of an older serial"),
    (Defect::WriteIgnoresTheLineage, "a push of another lineage is refused"),
    (Defect::UnlockForgets, "the answer to UNLOCK is lost"),
    (Defect::UnlockIgnoresTheId, "a lock is given back by its own id only"),
    (Defect::ForceUnlockDoesNothing, "a force-unlock takes the lock away"),
    (Defect::BodyIsReencoded, "keys and outputs of every script"),
];

async fn run_on_naive(defect: Defect, cases: Vec<Case>) -> Option<Report> {
    let terraform = program("terraform").await?;
    let login = ("terraform".to_owned(), "none".to_owned());
    let template = naive::serve(defect).await;
    let target = AnyServer::new(&template, "naive".into(), login, Methods::USUAL).unwrap();
    let target: Arc<dyn Target> = Arc::new(target);
    Some(run_all(&terraform, &target, cases, AT_ONCE).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_naive_server_without_a_defect_passes_every_case_that_is_for_any_server() {
    // The same clients in the same cases: what only takes time is not repeated here.
    let quick = |case: &Case| !case.name.starts_with("a long apply") && !case.name.contains("MB");
    let cases: Vec<Case> = cases::all().into_iter().filter(quick).collect();
    let Some(report) = run_on_naive(Defect::None, cases).await else { return };
    println!("{report}");
    assert!(report.failed().is_empty(), "{report}");
    assert!(report.held() >= 30, "{} cases are for any server", report.held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_defect_is_found_by_the_case_that_is_for_it() {
    for (defect, name) in FOUND_BY {
        let mut cases = cases::all();
        cases.retain(|case| case.name.starts_with(name));
        assert_eq!(cases.len(), 1, "{name}");
        let Some(report) = run_on_naive(defect, cases).await else { return };
        assert_eq!(report.failed().len(), 1, "{defect:?} is not found: {report}");
        println!("{defect:?}\n{report}");
    }
}
