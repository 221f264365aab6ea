//! The matrix, one file per subject.

mod crashes;
mod everyday;
mod locks;
mod lost;
mod names;
mod pushes;
mod refusals;
mod sizes;
mod unavailable;
mod ways_in;

use super::case::Case;

/// One resource and one output.
pub(super) const ONE: &str = r#"
terraform {
  backend "http" {}
}
variable "value" { default = "one" }
resource "terraform_data" "one" { input = var.value }
output "value" { value = terraform_data.one.output }
"#;

/// What a first apply asks for.
const FIRST_APPLY: &str = "LOCK 200, GET 204 x2, POST?ID 200, UNLOCK 200";
/// What an apply with changes asks for.
const APPLY: &str = "LOCK 200, GET 200, POST?ID 200, UNLOCK 200";
/// What an apply or a plan without changes asks for.
const NO_CHANGES: &str = "LOCK 200, GET 200, UNLOCK 200";

/// The parts of the matrix by name.
pub fn groups() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("everyday", everyday::cases()),
        ("pushes", pushes::cases()),
        ("locks", locks::cases()),
        ("lost", lost::cases()),
        ("unavailable", unavailable::cases()),
        ("crashes", crashes::cases()),
        ("sizes", sizes::cases()),
        ("names", names::cases()),
        ("ways_in", ways_in::cases()),
        ("refusals", refusals::cases()),
    ]
}

/// The whole matrix.
pub fn all() -> Vec<Case> {
    groups().into_iter().flat_map(|(_, cases)| cases).collect()
}
