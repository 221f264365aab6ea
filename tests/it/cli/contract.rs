//! The command line and the server agree on what can be called.

use plumbline_cli::api::routes::{Method, TABLE};
use serde_json::{Value, json};

/// A path with its parameters' names taken out: they are the server's own business.
fn shape(path: &str) -> String {
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// The declared calls that an OpenAPI document does not have, by path or by method.
fn unserved(table: &[(Method, &str)], document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().expect("the server has routes");
    let is_served = |method: Method, template: &str| {
        let method = method.as_str().to_lowercase();
        paths.iter().any(|(path, item)| shape(path) == shape(template) && item.get(&method).is_some())
    };
    table
        .iter()
        .filter(|(method, template)| !is_served(*method, template))
        .map(|(method, template)| format!("{} {template}", method.as_str()))
        .collect()
}

#[test]
fn every_call_of_the_command_line_is_a_route_of_the_server() {
    let (_router, document) = plumbline_api::openapi::documented_router();
    let document = serde_json::to_value(document).expect("a document is JSON");

    let unserved = unserved(TABLE, &document);

    assert!(unserved.is_empty(), "the server does not serve what plumb calls:\n{}", unserved.join("\n"));
}

#[test]
fn the_comparison_sees_a_wrong_path_and_a_wrong_method() {
    let document = json!({ "paths": { "/api/v1/runs/{run_id}": { "get": {} } } });
    let table = [
        (Method::Get, "/api/v1/runs/{id}"),
        (Method::Delete, "/api/v1/runs/{id}"),
        (Method::Get, "/api/v1/runs/{id}/steps"),
    ];

    assert_eq!(unserved(&table, &document), ["DELETE /api/v1/runs/{id}", "GET /api/v1/runs/{id}/steps"]);
}
