//! Spellings of the address, methods, credentials, and other modules that read the state.

use super::{FIRST_APPLY, NO_CHANGES, ONE};
use crate::clients::case::{Address, Case, Head, Step, apply, case, init, plan, run};
use crate::clients::target::{Favour, Methods, Who};

/// Reads its own state as another module's would be read.
const READER: &str = r#"
variable "address" { type = string }
variable "username" { type = string }
variable "password" {
  type      = string
  sensitive = true
}
data "terraform_remote_state" "other" {
  backend = "http"
  config  = { address = var.address, username = var.username, password = var.password }
}
output "value" { value = data.terraform_remote_state.other.outputs.value }
"#;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("methods that every gateway knows do the same")
            .only_exact()
            .methods(Methods::TWINS)
            .step(init())
            .step(apply().trace("POST/lock 200, GET 204 x2, PUT?ID 200, DELETE/lock 200"))
            .step(plan().trace("POST/lock 200, GET 200, DELETE/lock 200"))
            .step(run(&["force-unlock", "-force", "an-id"]).exits(1).trace("DELETE/lock 409"))
            .head(Head::Serial(1))
            .versions(1),
        case("a slash at the end of the address is the same state")
            .only_exact()
            .at(Address::Slash)
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .head(Head::Serial(1))
            .versions(1),
        case("doubled slashes in the address are the same state")
            .only_exact()
            .at(Address::Doubled)
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .head(Head::Serial(1))
            .versions(1),
        case("an address in upper case is refused, never redirected, and nothing is lost")
            .only_exact()
            .at(Address::UpperCase)
            .step(init().trace("GET 404"))
            .step(apply().exits(1).trace("LOCK 404"))
            .head(Head::None),
        case("an API key is a password")
            .by(Who::ApiKey)
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(apply().trace(NO_CHANGES))
            .versions(1),
        case("a unit is named by the user name")
            .by(Who::OfANamedUnit)
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .versions(1),
        case("an operator may write")
            .by(Who::Writer)
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .versions(1),
        case("another module reads the outputs with an API key")
            .only_exact()
            .by(Who::ApiKey)
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(Step::Write(
                "main.tf",
                [ONE, READER].concat().replace("output \"value\" { value = terraform_data.one.output }", ""),
            ))
            .step(plan().trace("LOCK 200, GET 200 x2, UNLOCK 200"))
            .head(Head::Serial(1)),
        case("where only runs write people plan without a lock, and can neither lock nor write")
            .only_exact()
            .step(init())
            .step(Step::Favour(Favour::RunsOnly))
            .step(plan().arg("-lock=false").trace("GET 204").says("1 to add"))
            .step(plan().exits(1).trace("LOCK 403"))
            .step(apply().arg("-lock=false").exits(1).trace("GET 204 x2, POST 403").keeps_state())
            .head(Head::None)
            .versions(0)
            .audit(""),
    ]
}
