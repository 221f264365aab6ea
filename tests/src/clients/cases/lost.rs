//! Answers that never arrive: the server has acted, and the client asks again.

use super::{APPLY, FIRST_APPLY};
use crate::clients::case::{Case, Head, Step, apply, case, init, run};
use crate::clients::faults::{Act, Fault};

fn lost(operation: &'static str) -> Fault {
    Fault::at_first(operation, Act::LoseAnswer)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("the answer to LOCK is lost: the same lock is had again")
            .step(init())
            .step(apply().fault(lost("LOCK")).trace("LOCK 200 lost, LOCK 200, GET 204 x2, POST?ID 200, UNLOCK 200"))
            .head(Head::Serial(1))
            .versions(1)
            .audit("state.lock state.write state.unlock"),
        case("the answer to a write is lost: it is one version")
            .step(init())
            .step(apply().fault(lost("POST")).trace("LOCK 200, GET 204 x2, POST?ID 200 lost, POST?ID 200, UNLOCK 200"))
            .step(apply().arg("-var=value=two").trace(APPLY))
            .head(Head::Serial(2))
            .versions(2)
            .audit("state.lock state.write state.unlock state.lock state.write state.unlock"),
        case("the answer to UNLOCK is lost: the second one succeeds too")
            .step(init())
            .step(apply().fault(lost("UNLOCK")).trace("LOCK 200, GET 204 x2, POST?ID 200, UNLOCK 200 lost, UNLOCK 200"))
            .versions(1)
            .audit("state.lock state.write state.unlock"),
        case("the answer to a read is lost: it is read again")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(apply().arg("-var=value=two").fault(lost("GET")).trace("LOCK 200, GET 200 lost, GET 200, POST?ID 200, UNLOCK 200"))
            .versions(2),
        case("the answers to all of them are lost once")
            .step(init().fault(lost("GET")).trace("GET 204 lost, GET 204"))
            .step(
                apply().fault(lost("LOCK")).fault(lost("GET")).fault(lost("POST")).fault(lost("UNLOCK")).trace(
                    "LOCK 200 lost, LOCK 200, GET 204 lost, GET 204 x2, POST?ID 200 lost, POST?ID 200, \
                     UNLOCK 200 lost, UNLOCK 200",
                ),
            )
            .head(Head::Serial(1))
            .versions(1)
            .audit("state.lock state.write state.unlock"),
        case("the answers to a write are lost until the client gives up: the state is stored, and its copy is known")
            .step(init())
            .step(
                apply()
                    .exits(1)
                    .fault(Fault::always("POST", Act::LoseAnswer))
                    .trace("LOCK 200, GET 204 x2, POST?ID 200 lost x3, UNLOCK 200")
                    .keeps_state(),
            )
            .step(run(&["state", "push", "kept.tfstate"]).trace("LOCK 200, GET 200, UNLOCK 200"))
            .step(apply().trace(super::NO_CHANGES))
            .head(Head::Serial(1))
            .versions(1),
        case("connections break before the server hears anything: each is tried again")
            .step(init())
            .step(
                apply()
                    .fault(Fault::at_first("LOCK", Act::Refuse))
                    .fault(Fault::at_first("GET", Act::Refuse))
                    .fault(Fault::at_first("POST", Act::Refuse))
                    .fault(Fault::at_first("UNLOCK", Act::Refuse))
                    .trace(
                        "LOCK refused, LOCK 200, GET refused, GET 204 x2, POST?ID refused, POST?ID 200, UNLOCK refused, \
                         UNLOCK 200",
                    ),
            )
            .versions(1),
        case("the answers to UNLOCK are lost until the client gives up: the lock is free all the same")
            .step(init())
            .step(
                apply()
                    .exits(1)
                    .fault(Fault::always("UNLOCK", Act::LoseAnswer))
                    .trace("LOCK 200, GET 204 x2, POST?ID 200, UNLOCK 200 lost x3"),
            )
            .step(Step::from(apply().trace(super::NO_CHANGES)))
            .versions(1),
    ]
}
