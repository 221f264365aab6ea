//! States that people bring: pulled, edited, pushed.

use super::FIRST_APPLY;
use crate::clients::case::{Call, Case, Head, Request, Step, apply, case, init, run};
use crate::clients::faults::{Act, Fault};
use crate::clients::target::Favour;

fn applied(name: &'static str) -> Case {
    case(name)
        .step(init())
        .step(apply().trace(FIRST_APPLY))
        .step(run(&["state", "pull"]).trace("GET 200").into_file("pulled.json"))
}

fn push(file: &str) -> Call {
    run(&["state", "push", file])
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        applied("a push with a newer serial is the next version")
            .step(Step::Rewrite("pulled.json", "next.json", 5, None))
            .step(push("next.json").trace("LOCK 200, GET 200, POST?ID 200, UNLOCK 200"))
            .versions(2),
        applied("a push of what is stored writes nothing")
            .step(push("pulled.json").trace("LOCK 200, GET 200, UNLOCK 200"))
            .head(Head::Serial(1))
            .versions(1),
        applied(
            "a push of another lineage is refused by the client, and by the server if the client is forced",
        )
        .step(Step::Rewrite("pulled.json", "foreign.json", 5, Some("of-something-else")))
        .step(push("foreign.json").exits(1).trace("LOCK 200, GET 200, UNLOCK 200").says("lineage"))
        .step(
            run(&["state", "push", "-force", "foreign.json"])
                .exits(1)
                .trace("LOCK 200, GET 200, POST?ID 409, UNLOCK 200"),
        )
        .head(Head::Serial(1))
        .versions(1),
        applied("a push of another lineage is taken once after somebody allowed it")
            .only_exact()
            .step(Step::Rewrite("pulled.json", "foreign.json", 5, Some("of-something-else")))
            .step(Step::Favour(Favour::AcceptNextLineage))
            .step(
                run(&["state", "push", "-force", "foreign.json"])
                    .trace("LOCK 200, GET 200, POST?ID 200, UNLOCK 200"),
            )
            .step(Step::Rewrite("pulled.json", "third.json", 9, Some("a-third")))
            .step(
                run(&["state", "push", "-force", "third.json"])
                    .exits(1)
                    .trace("LOCK 200, GET 200, POST?ID 409, UNLOCK 200"),
            )
            .versions(2),
        applied(
            "a push of an older serial is refused by the client, and by the server if the client is forced",
        )
        .step(Step::Rewrite("pulled.json", "older.json", -1, None))
        .step(apply().arg("-var=value=two").trace(super::APPLY))
        .step(push("older.json").exits(1).trace("LOCK 200, GET 200, UNLOCK 200").says("serial"))
        .step(
            run(&["state", "push", "-force", "older.json"])
                .exits(1)
                .trace("LOCK 200, GET 200, POST?ID 409, UNLOCK 200")
                .says("409"),
        )
        .head(Head::Serial(2))
        .versions(2),
        applied("the same serial with other content is kept for a person and is not the state")
            .step(Step::Ask(Request::Write(1, None), 409))
            .step(run(&["output", "-raw", "value"]).trace("GET 200").says("one"))
            .head(Head::Serial(1))
            .versions(1)
            .quarantined(1),
        applied("a body that is damaged on its way is refused, and the undamaged one comes again")
            .step(Step::Rewrite("pulled.json", "next.json", 5, None))
            .step(
                push("next.json")
                    .exits(1)
                    .fault(Fault::at_first("POST", Act::Damage))
                    .trace("LOCK 200, GET 200, POST?ID 400 damaged, UNLOCK 200"),
            )
            .step(push("next.json").trace("LOCK 200, GET 200, POST?ID 200, UNLOCK 200"))
            .versions(2),
        applied("a body that breaks off is not stored, and the client sends it again")
            .step(Step::Rewrite("pulled.json", "next.json", 5, None))
            .step(
                push("next.json")
                    .fault(Fault::at_first("POST", Act::Cut))
                    .trace("LOCK 200, GET 200, POST?ID cut, POST?ID 200, UNLOCK 200"),
            )
            .versions(2),
        applied("what is no state is refused by the client itself")
            .step(Step::Write("empty.json", String::new()))
            .step(Step::Write("plan.json", r#"{"format_version":"1.2","planned_values":{}}"#.into()))
            .step(push("empty.json").exits(1).trace(""))
            .step(push("plan.json").exits(1).trace(""))
            .head(Head::Serial(1))
            .versions(1),
        applied("a writer without the lock's id is kept out while somebody holds it")
            .step(Step::Ask(Request::Lock("somebodys"), 200))
            .step(Step::Ask(Request::Write(7, None), 423))
            .step(Step::Ask(Request::Unlock("somebodys"), 200))
            .step(Step::Ask(Request::Write(7, None), 200))
            .versions(2)
            .head(Head::Serial(7)),
    ]
}
