//! Where executors run on ECS.

/// A cluster, a task definition and a network.
#[derive(Clone, Debug)]
pub struct EcsSettings {
    /// Name or ARN of the cluster.
    pub cluster: String,
    /// Family, family and revision, or ARN.
    pub task_definition: String,
    /// The container that runs `executor-task`.
    pub container: String,
    /// Subnets of executors.
    pub subnets: Vec<String>,
    /// Security groups of executors.
    pub security_groups: Vec<String>,
    /// Replaces AWS's own endpoint.
    pub endpoint_url: Option<String>,
}

/// A setting is missing.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not set: the worker needs it to launch executors on ECS")]
pub struct SettingsError(&'static str);

impl EcsSettings {
    /// Reads `PLUMBLINE_ECS_*`.
    pub fn from_environment() -> Result<Self, SettingsError> {
        let list = |name| Ok(required(name)?.split(',').map(|item| item.trim().to_owned()).collect());
        Ok(Self {
            cluster: required("PLUMBLINE_ECS_CLUSTER")?,
            task_definition: required("PLUMBLINE_ECS_TASK_DEFINITION")?,
            container: optional("PLUMBLINE_ECS_CONTAINER").unwrap_or_else(|| "executor".into()),
            subnets: list("PLUMBLINE_ECS_SUBNETS")?,
            security_groups: list("PLUMBLINE_ECS_SECURITY_GROUPS")?,
            endpoint_url: optional("PLUMBLINE_ECS_ENDPOINT_URL"),
        })
    }
}

fn optional(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn required(name: &'static str) -> Result<String, SettingsError> {
    optional(name).ok_or(SettingsError(name))
}
