//! What terraform sees of variables: byte for byte what the API was given, through the whole path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use plumbline_core::protocol::Variable;
use serde_json::{Value, json};

use super::world::{Finished, World};
use crate::executors::FakeExecutor;

/// One variable of each way to declare a type that takes text.
const STACK: &str = r#"
variable "typed" { type = string }
variable "untyped" {}
variable "any" { type = any }
output "typed" { value = base64encode(var.typed) }
output "untyped" { value = base64encode(var.untyped) }
output "any" { value = base64encode(var.any) }
"#;

/// Texts that something on the way could take for something else.
fn nasty() -> Vec<(&'static str, String)> {
    let plain = [
        ("empty", ""),
        ("blank", " "),
        ("leading equals sign", "=value"),
        ("assignment", "a = b"),
        ("looks like a flag", "-var=x"),
        ("looks like a file", "@/etc/passwd"),
        ("number", "007"),
        ("true", "true"),
        ("null", "null"),
        ("a list in text", "[\"a\", 1]"),
        ("an object in text", "{ a = 1 }"),
        ("a reference", "var.typed"),
        ("double quotes", "\"quoted\""),
        ("quotes and backslashes", r#"it's "q" \ \\ \" \n \u0041"#),
        ("interpolation", "${path.module} $${x} $$${y}"),
        ("directive", "%{ if true }x%{ endif } %%{y}"),
        ("newlines", "one\ntwo\n\nfour"),
        ("trailing newline", "one\n"),
        ("trailing newlines", "one\n\n\n"),
        ("only a newline", "\n"),
        ("windows newlines", "one\r\ntwo\r\n"),
        ("old newlines", "one\rtwo\r"),
        ("tabs and spaces at the ends", "\t  x  \t"),
        ("here document", "<<EOT\ntext\nEOT\n"),
        ("comments", "# a // b /* c */"),
        ("shell", "$(id) `id` $HOME ; & | > < * ? ~"),
        ("json", r#"{"a": ["b", null], "c": "\n"}"#),
        ("unicode", "Grüße 你好 🎉 \u{202e}rtl"),
        ("separators", "\u{2028}\u{2029}\u{85}\u{a0}"),
        ("byte order mark", "\u{feff}x\u{feff}"),
        ("last code point", "\u{10ffff}\u{fffd}\u{ffff}"),
        ("control characters", "\u{1}\u{7}\u{8}\u{b}\u{1b}[31m\u{7f}\u{9f}"),
        ("pem", "-----BEGIN KEY-----\nMIIB\n-----END KEY-----\n"),
    ];
    let mut all: Vec<(&str, String)> = plain.into_iter().map(|(name, text)| (name, text.into())).collect();
    all.push(("64 KiB", "0123456789abcdef".repeat(4 << 10)));
    all.push(("64 KiB of what must be escaped", "\"\\\n\r".repeat(16 << 10)));
    all
}

/// The outputs of an applied state.
fn outputs(applied: &Finished) -> Value {
    let told = applied.fake.told();
    let state: Value = serde_json::from_slice(told.states.last().expect("a state")).unwrap();
    state["outputs"].clone()
}

fn decoded(outputs: &Value, name: &str) -> String {
    let encoded = outputs[name]["value"].as_str().unwrap_or_else(|| panic!("no output {name}: {outputs}"));
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

/// The variables of a run that was asked for over the API, as the executor gets them from `callback`.
async fn through_the_api(variables: &[Value]) -> Vec<Variable> {
    let world = crate::world::World::new().await;
    let place = format!("workspaces/{}/variables", world.workspace);
    for variable in variables {
        let (status, answer) = world.post(&place, variable.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }
    world.trigger("plan").await;
    FakeExecutor::start(&world.plane).await.bundle.variables
}

#[tokio::test]
async fn terraform_sees_every_text_exactly_whatever_the_type_of_its_variable() {
    let nasty = nasty();
    // One module with an output for each; the long ones have runs of their own.
    let mut stack = String::new();
    let (mut variables, mut expected) = (Vec::new(), Vec::new());
    let mut long = Vec::new();
    for (n, (name, text)) in nasty.iter().enumerate() {
        if text.len() > 4 << 10 {
            long.push((*name, text.clone()));
            continue;
        }
        for (kind, declared) in [("typed", "type = string"), ("untyped", ""), ("any", "type = any")] {
            let key = format!("{kind}_{n}");
            stack += &format!("variable \"{key}\" {{ {declared} }}\n");
            stack += &format!("output \"{key}\" {{ value = base64encode(var.{key}) }}\n");
            variables.push(json!({"key": key, "value": text, "is_secret": kind == "any"}));
            expected.push((key, *name, text.clone()));
        }
    }
    let mut world = World::with(&[("main.tf", &stack)]);
    world.bundle.variables = through_the_api(&variables).await;
    let applied = world.apply(&world.run().await).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    let outputs = outputs(&applied);
    for (key, name, text) in expected {
        assert_eq!(decoded(&outputs, &key), text, "{key}: {name}");
    }
    for (name, text) in long {
        let variables: Vec<Value> =
            ["typed", "untyped", "any"].iter().map(|key| json!({"key": key, "value": text})).collect();
        let mut world = World::with(&[("main.tf", STACK)]);
        world.bundle.variables = through_the_api(&variables).await;
        let planned = world.run().await;
        let told = planned.fake.told();
        let plan: Value = serde_json::from_slice(&told.artifacts["plan_json"]).unwrap();
        for key in ["typed", "untyped", "any"] {
            assert_eq!(plan["variables"][key]["value"], *text, "{key}: {name}");
        }
    }
}

#[tokio::test]
async fn an_expression_is_an_expression_whatever_the_type_of_its_variable() {
    let stack = r#"
variable "list" { type = list(string) }
variable "any" { type = any }
variable "untyped" {}
variable "text" { type = string }
variable "number" { type = number }
variable "nothing" {
  type    = string
  default = "the default"
}
output "all" {
  value = jsonencode([var.list, var.any, var.untyped, var.text, var.number, var.nothing])
}
"#;
    let variables = [
        ("list", "[\"a\", # one\n \"b\", // two\n]\n"),
        ("any", "{ a = [1, true, null], \"b c\" = { d = \"}\" } }"),
        ("untyped", "[for n in [1, 2] : n * 2]"),
        ("text", "<<-EOT\n    two )\n      lines\n    EOT\n"),
        ("number", "1 < 2 ? 40 + 2 : 0"),
        ("nothing", "null"),
    ];
    let variables: Vec<Value> =
        variables.iter().map(|(key, value)| json!({"key": key, "value": value, "is_hcl": true})).collect();
    let mut world = World::with(&[("main.tf", stack)]);
    world.bundle.variables = through_the_api(&variables).await;
    let applied = world.apply(&world.run().await).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    let text = outputs(&applied)["all"]["value"].as_str().unwrap().to_owned();
    let seen: Value = serde_json::from_str(&text).unwrap();
    let expected = json!([
        ["a", "b"],
        {"a": [1, true, null], "b c": {"d": "}"}},
        [2, 4],
        "two )\n  lines\n",
        42,
        null
    ]);
    assert_eq!(seen, expected);
}

fn variable(key: &str, value: &str, is_secret: bool, is_hcl: bool) -> Variable {
    Variable { key: key.into(), value: value.into(), is_secret, is_hcl }
}

#[tokio::test]
async fn a_run_s_variables_win_over_every_file_of_the_repository_and_unknown_ones_are_ignored_quietly() {
    let world_files = [
        ("main.tf", STACK),
        ("terraform.tfvars", "typed = \"repository\"\nuntyped = \"repository\"\n"),
        ("zzz.auto.tfvars", "typed = \"repository\"\nany = \"from the repository\"\n"),
    ];
    let mut world = World::with(&world_files);
    world.bundle.variables = vec![
        variable("typed", "given", false, false),
        variable("not_declared_anywhere", "x", false, false),
        variable("nor_this_expression", "[1]", true, true),
    ];
    let planned = world.run().await;
    let log = planned.fake.log_of("Terraform Plan");
    assert!(!log.contains("undeclared") && !log.contains("Warning"), "{log}");
    let applied = world.apply(&planned).await;
    let logs = applied.fake.all_logs();
    assert!(applied.fake.told().apply_done, "{logs}");
    assert!(!logs.contains("undeclared"), "{logs}");
    let outputs = outputs(&applied);
    let seen = ["typed", "untyped", "any"].map(|name| decoded(&outputs, name));
    assert_eq!(seen, ["given", "repository", "from the repository"]);
}

#[tokio::test]
async fn a_value_that_terraform_refuses_is_shown_in_no_log_nor_are_the_parts_of_a_secret_expression() {
    const STACK: &str = r#"
variable "number" { type = number }
variable "object" { type = object({ user = string, password = string }) }
output "shown" { value = "the password is ${var.object.password}" }
"#;
    let long: String = (0..3000).map(|n| format!("{n:04}-")).collect();
    let object = "{ user = \"somebody-known\", password = \"hidden-in-an-expression\" }";
    for number in ["secret-that-is-no-number", &long, "1"] {
        let mut world = World::with(&[("main.tf", STACK)]);
        world.bundle.variables =
            vec![variable("number", number, true, false), variable("object", object, true, true)];
        let planned = world.run().await;
        let logs = planned.fake.all_logs();
        assert_eq!(planned.fake.told().plan_done.is_some(), number == "1", "{logs}");
        for secret in ["secret-that-is-no-number", "hidden-in-an-expression", &long[12_000..12_100]] {
            assert!(!logs.contains(secret), "{secret}: {logs}");
            assert!(!world.executor_log().contains(secret), "{secret}");
        }
        if number == "1" {
            let told = planned.fake.told();
            for kind in ["plan_text", "plan_json_redacted"] {
                let text = String::from_utf8_lossy(&told.artifacts[kind]);
                assert!(!text.contains("hidden-in-an-expression"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_expression_never_reaches_terraform() {
    let mut world = World::with(&[("main.tf", STACK)]);
    world.bundle.variables = vec![variable("any", "1)\ntyped = (\"injected\"", false, true)];
    let planned = world.run().await;
    let failed = planned.fake.told().failed.clone().expect("a report");
    assert!(failed.error.contains("the variable any is no HCL expression"), "{}", failed.error);
}

#[tokio::test]
async fn the_files_with_the_values_are_gone_when_terraform_has_ended() {
    let signs = super::world::open_directory();
    let stack = format!(
        r#"
variable "typed" {{ type = string }}
resource "terraform_data" "one" {{
  input = var.typed
  provisioner "local-exec" {{ command = "cat /proc/$PPID/cmdline | tr '\\0' '\\n' > {0}/arguments; cp $(grep -o '/.*variables.tfvars.json' {0}/arguments) {0}/values" }}
}}
"#,
        signs.path().display()
    );
    let mut world = World::with(&[("main.tf", &stack)]);
    world.bundle.variables = vec![variable("typed", "planted-5c1d", true, false)];
    let applied = world.apply(&world.run().await).await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());
    let arguments = std::fs::read_to_string(signs.path().join("arguments")).unwrap();
    assert!(!arguments.contains("planted-5c1d"), "no value is an argument");
    let file = arguments.lines().find_map(|line| line.strip_prefix("-var-file=")).expect("the file is named");
    assert!(std::fs::read_to_string(signs.path().join("values")).unwrap().contains("planted-5c1d"));
    assert!(!std::path::Path::new(file).exists());
}
