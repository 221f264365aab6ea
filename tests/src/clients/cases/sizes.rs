//! States from a few bytes to more than a request can carry.

use crate::clients::case::{Case, Head, Step, case, init, plan, run};
use crate::clients::target::Favour;

const MB: usize = 1_000_000;

/// A state whose one output has about so many bytes.
fn state(bytes: usize) -> String {
    let value = "0123456789abcdef".repeat(bytes / 16);
    format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"00000000-0000-4000-8000-000000000002","outputs":{{"big":{{"value":"{value}","type":"string"}}}},"resources":[],"check_results":null}}"#
    )
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("a state of 3 MB is written in one request and read again")
            .step(init())
            .step(Step::Write("big.json", state(3 * MB)))
            .step(run(&["state", "push", "big.json"]).trace("LOCK 200, GET 204 x1+, POST?ID 200, UNLOCK 200"))
            .step(run(&["state", "pull"]).trace("GET 307").into_file("pulled.json"))
            .step(run(&["state", "push", "pulled.json"]).trace("LOCK 200, GET 307, UNLOCK 200"))
            .head(Head::Serial(1))
            .versions(1),
        case("a state of 6 MB is refused with the way out, and the last one stays")
            .only_exact()
            .step(init())
            .step(Step::Write("small.json", state(16)))
            .step(Step::Write("big.json", state(6 * MB).replace(r#""serial":1"#, r#""serial":2"#)))
            .step(
                run(&["state", "push", "small.json"]).trace("LOCK 200, GET 204 x1+, POST?ID 200, UNLOCK 200"),
            )
            .step(
                run(&["state", "push", "-force", "big.json"])
                    .exits(1)
                    .trace("LOCK 200, GET 200, POST?ID 413, UNLOCK 200")
                    .says("413"),
            )
            .head(Head::Serial(1))
            .versions(1),
        case("a state of 20 KB is read compressed")
            .step(init())
            .step(Step::Write("big.json", state(20_000)))
            .step(run(&["state", "push", "big.json"]).trace("LOCK 200, GET 204 x1+, POST?ID 200, UNLOCK 200"))
            .step(run(&["output", "-raw", "big"]).trace("GET 200 gzip").says("0123456789abcdef"))
            .versions(1),
        case("a state of 30 MB is read, planned against and pulled by way of the object store")
            .only_exact()
            .step(init())
            .step(Step::Favour(Favour::Fill(30 * MB)))
            .step(run(&["output", "-raw", "small"]).trace("GET 307").says("a small output"))
            .step(plan().trace("LOCK 200, GET 307, UNLOCK 200"))
            .step(run(&["state", "pull"]).trace("GET 307").into_file("pulled.json"))
            .head(Head::Serial(1))
            .versions(1),
        case("a state of 120 MB is read by way of the object store")
            .only_exact()
            .step(init())
            .step(Step::Favour(Favour::Fill(120 * MB)))
            .step(run(&["output", "-raw", "small"]).trace("GET 307").says("a small output"))
            .head(Head::Serial(1))
            .versions(1),
    ]
}
