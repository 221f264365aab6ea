//! stub
#![allow(missing_docs, dead_code)]
#[cfg(feature = "store")]
pub mod service;
pub fn check_branch(_b: &str) -> Result<(), String> {
    Ok(())
}
pub struct Blocked {
    pub reason: String,
}
pub struct Workspace {
    pub id: crate::ids::WorkspaceId,
    pub business_unit_id: crate::ids::BusinessUnitId,
    pub repo_url: String,
    pub repo_ref: String,
    pub tf_working_dir: String,
    pub tool: String,
    pub tool_version: Option<String>,
    pub active_run_id: Option<crate::ids::RunId>,
    pub blocked: Option<Blocked>,
}
