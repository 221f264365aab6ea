//! Writes the OpenAPI document to standard output: `cargo run -p plumbline-api --bin openapi > docs/openapi.json`.

use std::io::Write as _;

fn main() -> anyhow::Result<()> {
    let (_, document) = plumbline_api::openapi::documented_router();
    std::io::stdout().write_all(plumbline_api::openapi::document_text(&document).as_bytes())?;
    Ok(())
}
