//! Bodies that benchmarks of the state backend send.

use bytes::Bytes;
use serde_json::json;

/// A state of about the given size.
pub(crate) fn state(serial: usize, bytes: usize) -> Bytes {
    let filler = "x".repeat(bytes.saturating_sub(300));
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "bench", "outputs": {},
        "resources": [{ "mode": "managed", "type": "terraform_data", "name": "one",
                        "provider": "provider[\"terraform.io/builtin/terraform\"]",
                        "instances": [{ "schema_version": 0, "attributes": { "id": "x", "input": filler } }] }],
        "check_results": null,
    })
    .to_string()
    .into()
}

pub(crate) fn lock_info(id: &str) -> Bytes {
    json!({ "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "bench@here", "Version": "1.11.4",
            "Created": "2026-01-01T00:00:00Z", "Path": "" })
    .to_string()
    .into()
}
