//! Names with dots, spaces, signs and letters of every script.

use super::{APPLY, FIRST_APPLY, NO_CHANGES};
use crate::clients::case::{Call, Case, Head, Request, Step, apply, case, init, run};

const KEYS: &str = r#"
terraform {
  backend "http" {}
}
resource "terraform_data" "each" {
  for_each = toset(["a.b", "with space", "50 %", "größe", "名前", "quote\"s", "back\\slash", "<&>", "🦀", "line\nbreak"])
  input    = each.key
}
output "größe" { value = "schön & <gut> 名前 🦀 %20 \u2028" }
output "all" { value = { for key, one in terraform_data.each : key => one.output } }
"#;

const MODULES: &str = r#"
terraform {
  backend "http" {}
}
module "größe-1_名前" {
  for_each = toset(["eu-west.1", "us east"])
  source   = "./modules/with space"
}
output "values" { value = { for key, one in module.größe-1_名前 : key => one.value } }
"#;

fn file(path: &'static str, text: &str) -> Step {
    Step::Write(path, text.to_owned())
}

fn remove(address: &str) -> Call {
    run(&["state", "rm", address])
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("keys and outputs of every script come back as they were")
            .module(KEYS)
            .step(init())
            .step(apply().trace(FIRST_APPLY).says("10 added"))
            .step(apply().trace("LOCK 200, GET 200 gzip, UNLOCK 200").says("No changes."))
            .step(run(&["output", "-raw", "größe"]).trace("GET 200 gzip").says("schön & <gut> 名前 🦀 %20"))
            .step(run(&["state", "list"]).trace("GET 200 gzip").says("terraform_data.each[\"50 %\"]"))
            .step(
                remove("terraform_data.each[\"名前\"]").trace("LOCK 200, GET 200 gzip, POST?ID 200, UNLOCK 200"),
            )
            .step(
                run(&["state", "mv", "terraform_data.each[\"a.b\"]", "terraform_data.each[\"c d.e\"]"])
                    .trace("LOCK 200, GET 200 gzip, POST?ID 200, UNLOCK 200"),
            )
            .versions(3),
        case("modules in folders with spaces and with names of every script")
            .module(MODULES)
            .step(file(
                "modules/with space/main.tf",
                "resource \"terraform_data\" \"one\" { input = path.module }\noutput \"value\" { value = terraform_data.one.output }",
            ))
            .step(init())
            .step(apply().trace(FIRST_APPLY).says("2 added"))
            .step(apply().trace(NO_CHANGES))
            .step(remove("module.größe-1_名前[\"us east\"]").trace(APPLY))
            .versions(2),
        case("lock ids with spaces, signs and letters of every script are told apart to the byte")
            .step(Step::Ask(Request::Lock("50 % größe + 名前 & more #?="), 200))
            .step(Step::Ask(Request::Write(1, Some("50%20%25%20gr%C3%B6%C3%9Fe%20%2B%20%E5%90%8D%E5%89%8D%20%26%20more%20%23%3F%3D")), 200))
            .step(Step::Ask(Request::Write(2, Some("50+%25+gr%C3%B6%C3%9Fe+%2B+%E5%90%8D%E5%89%8D+%26+more+%23%3F%3D")), 200))
            .step(Step::Ask(Request::Write(3, Some("50%20%25%20gr%C3%B6%C3%9Fe%20%20%20%E5%90%8D%E5%89%8D")), 409))
            .step(Step::Ask(Request::Unlock("50 % größe + 名前 & MORE #?="), 409))
            .step(Step::Ask(Request::Unlock("50 % größe + 名前 & more #?="), 200))
            .head(Head::Serial(2))
            .versions(2)
            .quarantined(1),
    ]
}
