//! What people do all day.

use super::{APPLY, FIRST_APPLY, NO_CHANGES};
use crate::clients::case::{Case, Head, apply, case, init, plan, run};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("init reads, and makes nothing").step(init()).head(Head::None).versions(0).audit(""),
        case("a plan locks, reads and unlocks, and makes nothing")
            .step(init())
            .step(plan().trace("LOCK 200, GET 204, UNLOCK 200").says("1 to add"))
            .head(Head::None)
            .versions(0)
            .audit("state.lock state.unlock"),
        case("a first apply writes once")
            .step(init())
            .step(apply().trace(FIRST_APPLY).says("1 added"))
            .head(Head::Serial(1))
            .versions(1)
            .audit("state.lock state.write state.unlock"),
        case("an apply without changes writes nothing")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(apply().trace(NO_CHANGES).says("No changes."))
            .head(Head::Serial(1))
            .versions(1),
        case("a plan finds changes, and an apply writes them as the next version")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(plan().arg("-detailed-exitcode").arg("-var=value=two").exits(2).trace(NO_CHANGES))
            .step(apply().arg("-var=value=two").trace(APPLY).says("1 changed"))
            .step(run(&["output", "-raw", "value"]).trace("GET 200").says("two"))
            .head(Head::Serial(2))
            .versions(2),
        case("a destroy leaves a state without resources")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(run(&["destroy", "-auto-approve", "-input=false"]).trace(APPLY).says("1 destroyed"))
            .step(run(&["state", "list"]).trace("GET 200"))
            .step(plan().trace(NO_CHANGES).says("1 to add"))
            .versions(2),
        case("a saved plan is applied under a lock of its own")
            .step(init())
            .step(plan().arg("-out=plan.tfplan").trace("LOCK 200, GET 204, UNLOCK 200"))
            .step(run(&["apply", "-input=false", "plan.tfplan"]).trace(FIRST_APPLY))
            .versions(1),
        case("outputs, show and lists read once and take no lock")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(run(&["output"]).trace("GET 200").says("value = \"one\""))
            .step(run(&["output", "-json"]).trace("GET 200"))
            .step(run(&["show"]).trace("GET 200").says("terraform_data.one"))
            .step(run(&["state", "list"]).trace("GET 200").says("terraform_data.one"))
            .step(run(&["state", "show", "terraform_data.one"]).trace("GET 200 x2").says("terraform_data"))
            .step(run(&["state", "pull"]).trace("GET 200").says("\"serial\": 1"))
            .head(Head::Serial(1))
            .audit("state.lock state.write state.unlock"),
        case("a resource is removed from the state")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(run(&["state", "rm", "terraform_data.one"]).trace(APPLY).says("Removed"))
            .step(run(&["state", "list"]).trace("GET 200"))
            .head(Head::Serial(2))
            .versions(2),
        case("a resource is moved within the state")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(run(&["state", "mv", "terraform_data.one", "terraform_data.two"]).trace(APPLY))
            .step(run(&["state", "list"]).trace("GET 200").says("terraform_data.two"))
            .head(Head::Serial(2))
            .versions(2),
        case("taint, untaint, import and refresh each hold the lock while they write")
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(run(&["taint", "terraform_data.one"]).trace(APPLY))
            .step(run(&["untaint", "terraform_data.one"]).trace(APPLY))
            .step(run(&["state", "rm", "terraform_data.one"]).trace(APPLY))
            .step(
                run(&["import", "-input=false", "terraform_data.one", "an-id"])
                    .trace(APPLY)
                    .says("Import successful"),
            )
            .step(run(&["refresh", "-input=false"]).trace(NO_CHANGES)),
        case("a workspace of the command line is refused by the client itself")
            .step(init())
            .step(run(&["workspace", "new", "other"]).exits(1).trace("").says("workspaces not supported"))
            .head(Head::None),
    ]
}
