//! A server, or something before it, that is busy or away.

use super::{FIRST_APPLY, NO_CHANGES};
use crate::clients::case::{Address, Case, Head, apply, case, init, plan, run};
use crate::clients::faults::{Act, Fault};

fn once(operation: &'static str, status: u16, retry_after: Option<u32>) -> Fault {
    Fault::at_first(operation, Act::Answer { status, retry_after })
}

fn always(operation: &'static str, status: u16) -> Fault {
    Fault::always(operation, Act::Answer { status, retry_after: None })
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("503 with Retry-After on every call once: each is tried again")
            .step(init().fault(once("GET", 503, Some(1))).trace("GET 503 answered, GET 204"))
            .step(
                apply()
                    .fault(once("LOCK", 503, Some(1)))
                    .fault(once("GET", 503, Some(1)))
                    .fault(once("POST", 503, Some(1)))
                    .fault(once("UNLOCK", 503, Some(1)))
                    .trace(
                        "LOCK 503 answered, LOCK 200, GET 503 answered, GET 204 x2, POST?ID 503 answered, POST?ID 200, \
                         UNLOCK 503 answered, UNLOCK 200",
                    ),
            )
            .head(Head::Serial(1))
            .versions(1),
        case("429 with Retry-After: tried again")
            .step(init().fault(once("GET", 429, Some(1))).trace("GET 429 answered, GET 204"))
            .step(
                apply()
                    .fault(once("LOCK", 429, Some(1)))
                    .fault(once("POST", 429, None))
                    .trace("LOCK 429 answered, LOCK 200, GET 204 x2, POST?ID 429 answered, POST?ID 200, UNLOCK 200"),
            )
            .versions(1),
        case("500 and 502 are tried again, 501 is not")
            .step(init())
            .step(
                apply()
                    .fault(once("LOCK", 500, None))
                    .fault(once("POST", 502, None))
                    .trace("LOCK 500 answered, LOCK 200, GET 204 x2, POST?ID 502 answered, POST?ID 200, UNLOCK 200"),
            )
            .step(plan().exits(1).fault(once("LOCK", 501, None)).trace("LOCK 501 answered"))
            .versions(1),
        case("503 to every write: the state stays with the client, and is pushed later")
            .step(init())
            .step(
                apply()
                    .exits(1)
                    .fault(always("POST", 503))
                    .trace("LOCK 200, GET 204 x2, POST?ID 503 answered x3, UNLOCK 200")
                    .says("giving up after 3 attempt(s)")
                    .keeps_state(),
            )
            .step(run(&["state", "push", "kept.tfstate"]).trace("LOCK 200, GET 204 x1+, POST?ID 200, UNLOCK 200"))
            .step(apply().trace(NO_CHANGES))
            .head(Head::Serial(1))
            .versions(1),
        case("503 to every LOCK: nothing is done")
            .step(init())
            .step(apply().exits(1).fault(always("LOCK", 503)).trace("LOCK 503 answered x3"))
            .head(Head::None),
        case("503 to every UNLOCK: what was applied is stored, and the lock waits to be taken away")
            .step(init())
            .step(
                apply()
                    .exits(1)
                    .fault(always("UNLOCK", 503))
                    .trace("LOCK 200, GET 204 x2, POST?ID 200, UNLOCK 503 answered x3")
                    .says("Error releasing the state lock"),
            )
            .step(apply().exits(1).trace("LOCK 423"))
            .step(run(&["force-unlock", "-force", "an-id"]).trace("UNLOCK 200"))
            .step(apply().trace(NO_CHANGES))
            .only("terraform")
            .versions(1),
        case("nobody listens: the client says so and nothing is done")
            .at(Address::Nobody)
            .step(init().exits(1).trace("").says("connection refused"))
            .head(Head::None),
        case("without retries one 503 ends an apply, and its lock is given back")
            .step(init())
            .step(
                apply()
                    .env("TF_HTTP_RETRY_MAX", "0")
                    .exits(1)
                    .fault(once("POST", 503, None))
                    .trace("LOCK 200, GET 204 x2, POST?ID 503 answered, UNLOCK 200")
                    .keeps_state(),
            )
            .step(run(&["state", "push", "kept.tfstate"]).trace("LOCK 200, GET 204 x1+, POST?ID 200, UNLOCK 200"))
            .step(apply().trace(NO_CHANGES))
            .versions(1),
        case("five clients in a row after a storm of 503s find one state")
            .step(init().fault(Fault::at_the_first("GET", 2, Act::Answer { status: 503, retry_after: None })).trace("GET 503 answered x2, GET 204"))
            .step(apply().trace(FIRST_APPLY))
            .step(apply().trace(NO_CHANGES))
            .step(plan().fault(Fault::at_the_first("LOCK", 2, Act::Answer { status: 503, retry_after: None })).trace("LOCK 503 answered x2, LOCK 200, GET 200, UNLOCK 200"))
            .head(Head::Serial(1))
            .versions(1),
    ]
}
