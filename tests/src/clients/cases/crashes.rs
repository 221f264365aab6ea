//! Clients that are killed or interrupted, and applies that take long.

use super::{APPLY, FIRST_APPLY, NO_CHANGES};
use crate::clients::case::{Case, Head, Request, apply, case, init, run};
use crate::clients::faults::{Act, Fault};

/// Waits in the middle until the client is interrupted: the client ends the command itself.
const WAITING: &str = r#"
terraform {
  backend "http" {}
}
resource "terraform_data" "before" { input = "made" }
resource "terraform_data" "waiting" {
  input = terraform_data.before.output
  provisioner "local-exec" { command = "touch started; exec sleep 600" }
}
resource "terraform_data" "after" { input = terraform_data.waiting.output }
"#;

/// Longer than the 20 seconds between two snapshots, which no setting makes shorter.
const LONG: &str = r#"
terraform {
  backend "http" {}
}
resource "terraform_data" "one" { input = "one" }
resource "terraform_data" "two" {
  input = terraform_data.one.output
  provisioner "local-exec" { command = "sleep 20.5" }
}
resource "terraform_data" "three" { input = terraform_data.two.output }
"#;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("a client is killed between LOCK and its write: the lock stays until it is taken away")
            .only("terraform")
            .step(init())
            .step(
                apply()
                    .is_killed()
                    .fault(Fault::at_first("POST", Act::Kill))
                    .trace("LOCK 200, GET 204 x2, POST?ID killed"),
            )
            .step(apply().exits(1).trace("LOCK 423"))
            .step(run(&["force-unlock", "-force", "an-id"]).trace("UNLOCK 200"))
            .step(apply().trace(FIRST_APPLY))
            .head(Head::Serial(1))
            .versions(1),
        case("a client is killed between its write and UNLOCK: the state is there, the lock too")
            .only("terraform")
            .step(init())
            .step(
                apply()
                    .is_killed()
                    .fault(Fault::at_first("UNLOCK", Act::Kill))
                    .trace("LOCK 200, GET 204 x2, POST?ID 200, UNLOCK killed"),
            )
            .step(run(&["output", "-raw", "value"]).trace("GET 200").says("one"))
            .step(run(&["force-unlock", "-force", "an-id"]).trace("UNLOCK 200"))
            .step(apply().trace(NO_CHANGES))
            .head(Head::Serial(1))
            .versions(1),
        case("a client is killed while it waits for its lock: nothing is held")
            .step(init())
            .step(apply().is_killed().fault(Fault::at_first("LOCK", Act::Kill)).trace("LOCK killed"))
            .step(apply().trace(FIRST_APPLY))
            .versions(1),
        case("an apply is interrupted: what was made is in the state, and the rest is made by the next one")
            .module(WAITING)
            .step(init())
            .step(
                apply()
                    .exits(1)
                    .interrupted_at("started")
                    .trace("LOCK 200, GET 204 x2, POST?ID 200, GET 200 x0+, POST?ID 200 x1+, UNLOCK 200")
                    .says("Interrupt received"),
            )
            .step(run(&["state", "list"]).trace("GET 200").says("terraform_data.before")),
        case("a long apply writes snapshots, each the next version")
            .module(LONG)
            .step(init())
            .step(
                apply()
                    .env("TF_STATE_PERSIST_INTERVAL", "1")
                    .trace("LOCK 200, GET 204 x2, POST?ID 200 x2+, UNLOCK 200")
                    .says("3 added"),
            )
            .step(apply().trace(NO_CHANGES)),
        case("a long apply whose lock is taken away after a snapshot keeps its last state")
            .module(LONG)
            .step(init())
            .step(
                apply()
                    .env("TF_STATE_PERSIST_INTERVAL", "1")
                    .exits(1)
                    .fault(Fault::at_first("POST", Act::After(Request::ForceUnlock)))
                    .trace("LOCK 200, GET 204 x2, POST?ID 200, POST?ID 409 x1+, UNLOCK 409")
                    .keeps_state(),
            )
            .step(run(&["state", "push", "kept.tfstate"]).trace(APPLY))
            .step(apply().trace(NO_CHANGES))
            .quarantined(1),
    ]
}
