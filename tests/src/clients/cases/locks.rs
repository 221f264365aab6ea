//! The lock: held by others, waited for, taken away.

use super::{FIRST_APPLY, NO_CHANGES};
use crate::clients::case::{Case, Head, Request, Step, apply, case, init, plan, run};
use crate::clients::faults::{Act, Fault};
use crate::clients::target::Who;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("of two applies at once the second sees the holder, and the first is not disturbed")
            .step(init())
            .step(init().client(1))
            .step(Step::Start(apply().fault(Fault::at_first("POST", Act::Hold)).trace(FIRST_APPLY)))
            .step(apply().client(1).exits(1).trace("LOCK 423").says("Error acquiring the state lock").says("ID: "))
            .step(plan().client(1).arg("-lock=false").trace("GET 204").says("1 to add"))
            .step(Step::Finish)
            .step(apply().client(1).trace(NO_CHANGES))
            .head(Head::Serial(1))
            .versions(1),
        case("a lock that is held is shown with its holder's id")
            .step(init())
            .step(Step::Ask(Request::Lock("the-holders-id"), 200))
            .step(apply().exits(1).trace("LOCK 423").says("the-holders-id"))
            .step(run(&["state", "list"]).exits(1).trace("GET 204"))
            .head(Head::None)
            .versions(0)
            .locked_by("the-holders-id"),
        case("who waits for the lock gets it once it is free")
            .step(init())
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(
                apply()
                    .arg("-lock-timeout=60s")
                    .fault(Fault::at("LOCK", 2, Act::After(Request::Unlock("somebodys"))))
                    .trace("LOCK 423 x2, LOCK 200, GET 204 x2, POST?ID 200, UNLOCK 200"),
            )
            .head(Head::Serial(1))
            .versions(1),
        case("who waits for the lock in vain gives up and changes nothing")
            .step(init())
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(apply().arg("-lock-timeout=2s").exits(1).trace("LOCK 423 x2+").says("somebodys"))
            .head(Head::None)
            .locked_by("somebodys"),
        case("without locking only the state is asked for")
            .step(init())
            .step(plan().arg("-lock=false").trace("GET 204"))
            .step(apply().arg("-lock=false").trace("GET 204 x2, POST 200"))
            .step(apply().arg("-lock=false").arg("-var=value=two").trace("GET 200, POST 200"))
            .head(Head::Serial(2))
            .versions(2)
            .audit("state.write state.write"),
        case("a write without locking is kept out while somebody holds the lock, and the state is left with its client")
            .step(init())
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(apply().arg("-lock=false").exits(1).trace("GET 204 x2, POST 423").says("423").keeps_state())
            .step(Step::Ask(Request::Unlock("somebodys"), 200))
            .step(run(&["state", "push", "kept.tfstate"]).trace("LOCK 200, GET 204 x1+, POST?ID 200, UNLOCK 200"))
            .step(apply().trace(NO_CHANGES))
            .versions(1),
        case("a lock is given back by its own id only")
            .step(Step::Ask(Request::Lock("first"), 200))
            .step(Step::Ask(Request::Unlock("second"), 409))
            .step(Step::Ask(Request::Lock("second"), 423))
            .step(Step::Ask(Request::Unlock("first"), 200))
            .step(Step::Ask(Request::Unlock("first"), 200))
            .step(Step::Ask(Request::Lock("second"), 200))
            .step(Step::Ask(Request::Unlock("first"), 409))
            .locked_by("second"),
        case("a force-unlock takes the lock away, whatever id was typed")
            .step(init())
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(run(&["force-unlock", "-force", "another-id"]).trace("UNLOCK 200"))
            .step(apply().trace(FIRST_APPLY))
            .audit("state.lock state.force_unlock state.lock state.write state.unlock")
            .only("terraform"),
        case("a force-unlock with the holder's id takes the lock away, one with another does not")
            .step(init())
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(run(&["force-unlock", "-force", "another-id"]).exits(1).trace("UNLOCK 409"))
            .step(run(&["force-unlock", "-force", "somebodys"]).trace("UNLOCK 200"))
            .step(apply().trace(FIRST_APPLY))
            .only("tofu"),
        case("a force-unlock of what nobody holds says so")
            .only_exact()
            .step(init())
            .step(run(&["force-unlock", "-force", "an-id"]).exits(1).trace("UNLOCK 409"))
            .head(Head::None),
        case("a force-unlock needs more than the right to write")
            .only_exact()
            .only("terraform")
            .step(init().by(Who::Writer))
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(run(&["force-unlock", "-force", "somebodys"]).by(Who::Writer).exits(1).trace("UNLOCK 403"))
            .locked_by("somebodys")
            .audit("state.lock"),
        case("whoever lost the lock cannot write any more, and keeps its state")
            .step(init())
            .step(
                apply()
                    .exits(1)
                    .fault(Fault::at_first("POST", Act::Before(Request::ForceUnlock)))
                    .trace("LOCK 200, GET 204 x2, POST?ID 409, UNLOCK 409")
                    .says("409")
                    .keeps_state(),
            )
            .head(Head::None)
            .versions(0)
            .quarantined(1),
        case("a lock that somebody took and gave back meanwhile does not let an old holder write")
            .step(init())
            .step(Step::Ask(Request::Lock("old"), 200))
            .step(Step::Ask(Request::ForceUnlock, 200))
            .step(apply().trace(FIRST_APPLY))
            .step(Step::Ask(Request::Write(9, Some("old")), 409))
            .head(Head::Serial(1))
            .versions(1)
            .quarantined(1),
    ]
}
