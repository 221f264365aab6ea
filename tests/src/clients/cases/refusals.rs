//! Who may not, and what the client tells them.

use super::FIRST_APPLY;
use crate::clients::case::{Case, Head, apply, case, init, plan, run};
use crate::clients::target::Who;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("a wrong password is told from a missing right")
            .only_exact()
            .step(init().by(Who::Stranger).exits(1).trace("GET 401").says("requires auth"))
            .step(init())
            .step(plan().by(Who::Stranger).exits(1).trace("LOCK 401").says("requires auth"))
            .step(
                apply().by(Who::Stranger).arg("-lock=false").exits(1).trace("GET 401").says("requires auth"),
            )
            .head(Head::None)
            .audit(""),
        case("a viewer reads no state and learns that the credentials are not enough")
            .only_exact()
            .step(init().by(Who::Viewer).exits(1).trace("GET 403").says("invalid auth"))
            .step(init())
            .step(plan().by(Who::Viewer).exits(1).trace("LOCK 403").says("invalid auth"))
            .head(Head::None)
            .audit(""),
        case("a password that is taken back in the middle leaves the state with its client")
            .only_exact()
            .step(init())
            .step(apply().trace(FIRST_APPLY))
            .step(run(&["state", "rm", "terraform_data.one"]).by(Who::Stranger).exits(1).trace("LOCK 401"))
            .head(Head::Serial(1))
            .versions(1),
    ]
}
