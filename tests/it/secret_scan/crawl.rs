//! Reads whatever the API shows: every route of its document that only reads, for everything that the lists name.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::Value;

use super::fields::document;
use super::stage::Stage;

/// Hand out what a state or a plan holds, which is in the clear by Terraform's design. Each reading is recorded.
const HANDS_OUT: [&str; 2] = ["/download", "/artifacts/{kind}"];

/// Everything that can be read, and the audit log as it is exported.
pub async fn every_answer(stage: &Stage) {
    let document = document();
    let mut routes: Vec<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(path, methods)| {
            methods.get("get").is_some() && !HANDS_OUT.iter().any(|end| path.ends_with(end))
        })
        .map(|(path, _)| path.trim_start_matches("/api/v1/").to_owned())
        .collect();
    // Lists come before what they name.
    routes.sort_by_key(|path| path.matches('/').count());
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut answered = BTreeSet::new();
    for route in &routes {
        for path in filled(route, &known) {
            let (status, answer) = stage.call(Method::GET, &path, &stage.admin, None).await;
            assert!(status < 500, "{path}: {status} {answer}");
            if status == 200 {
                answered.insert(route.as_str());
            }
            remember(&mut known, route, &answer);
        }
    }
    let silent: Vec<&String> = routes.iter().filter(|route| !answered.contains(route.as_str())).collect();
    assert!(silent.len() <= SILENT_MAX, "these never answered: {silent:?}");
}

/// Routes that need what this test does not make: a quarantined state, logs of a step (which it reads elsewhere).
const SILENT_MAX: usize = 6;

/// The route for everything that is known under the names before its parameters.
fn filled(route: &str, known: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut before = "";
    for segment in route.split('/') {
        let choices: Vec<String> = if segment.starts_with('{') {
            known.get(before).into_iter().flatten().cloned().collect()
        } else {
            vec![segment.to_owned()]
        };
        paths = paths
            .iter()
            .flat_map(|path| choices.iter().map(move |choice| format!("{path}/{choice}")))
            .collect();
        before = segment;
    }
    paths.into_iter().map(|path| path.trim_start_matches('/').to_owned()).collect()
}

/// The ids, or names, that a list gives.
fn remember(known: &mut BTreeMap<String, BTreeSet<String>>, route: &str, answer: &Value) {
    let name = route.rsplit('/').next().unwrap_or_default();
    for item in answer["items"].as_array().into_iter().flatten() {
        let found = ["id", "key", "name"].iter().find_map(|field| item[*field].as_str());
        known.entry(name.to_owned()).or_default().extend(found.map(str::to_owned));
    }
}
