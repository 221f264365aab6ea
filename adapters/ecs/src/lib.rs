//! Executors as ECS tasks.
//!
//! A launch carries `clientToken` = task id and lease token, so that ECS starts one task per attempt however often it
//! is asked; the overrides hold no secret but the one-time ticket and have the same bytes at every try of an attempt.

mod failures;
mod settings;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_sdk_ecs::Client;
use aws_sdk_ecs::types::{
    AssignPublicIp, AwsVpcConfiguration, ContainerOverride, DesiredStatus, KeyValuePair, LaunchType,
    NetworkConfiguration, Tag, Task, TaskField, TaskOverride,
};
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use plumbline_core::ids::TaskId;
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};

use failures::{failure_error, sdk_error};
pub use settings::{EcsSettings, SettingsError};

/// How long one call to ECS may take, retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Tells the attempts of one task apart: `startedBy` names the task only.
const LEASE_TOKEN_TAG: &str = "plumbline-lease-token";
/// Longest reason that ECS takes for a stop, in characters.
const REASON_CHARS_MAX: usize = 1024;

/// Launches executors as tasks of one cluster.
#[derive(Clone, Debug)]
pub struct EcsLauncher {
    client: Client,
    settings: EcsSettings,
}

/// The lean client: rustls with ring, and no call without an end. Credentials and region come from the environment
/// unless they are set.
pub fn config_loader() -> ConfigLoader {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    aws_config::defaults(BehaviorVersion::latest()).http_client(http).timeout_config(timeouts)
}

impl EcsLauncher {
    /// A launcher over a configuration that [`config_loader`] made.
    pub fn new(config: &SdkConfig, settings: EcsSettings) -> Self {
        let mut config = aws_sdk_ecs::config::Builder::from(config);
        if let Some(url) = &settings.endpoint_url {
            config = config.endpoint_url(url);
        }
        Self { client: Client::from_conf(config.build()), settings }
    }

    /// A launcher with the settings of this process.
    pub async fn from_environment() -> Result<Self, SettingsError> {
        let settings = EcsSettings::from_environment()?;
        Ok(Self::new(&config_loader().load().await, settings))
    }

    async fn list(&self, task_id: TaskId, status: DesiredStatus) -> Result<Vec<String>, LaunchError> {
        let listed = self
            .client
            .list_tasks()
            .cluster(&self.settings.cluster)
            .started_by(task_id.to_string())
            .desired_status(status)
            .send()
            .await
            .map_err(|error| sdk_error(&error))?;
        Ok(listed.task_arns.unwrap_or_default())
    }

    async fn describe_tasks(&self, arns: &[String]) -> Result<Vec<Task>, LaunchError> {
        let described = self
            .client
            .describe_tasks()
            .cluster(&self.settings.cluster)
            .set_tasks(Some(arns.to_vec()))
            .include(TaskField::Tags)
            .send()
            .await
            .map_err(|error| sdk_error(&error))?;
        Ok(described.tasks.unwrap_or_default())
    }

    fn network(&self) -> Result<NetworkConfiguration, LaunchError> {
        let vpc = AwsVpcConfiguration::builder()
            .set_subnets(Some(self.settings.subnets.clone()))
            .set_security_groups(Some(self.settings.security_groups.clone()))
            .assign_public_ip(AssignPublicIp::Disabled)
            .build()
            .map_err(|error| LaunchError::Refused(error.to_string()))?;
        Ok(NetworkConfiguration::builder().awsvpc_configuration(vpc).build())
    }

    fn overrides(&self, request: &LaunchRequest) -> TaskOverride {
        let variable = |name: &str, value: &str| KeyValuePair::builder().name(name).value(value).build();
        let container = ContainerOverride::builder()
            .name(&self.settings.container)
            .environment(variable("PLUMBLINE_TASK_ID", &request.task_id.to_string()))
            .environment(variable("PLUMBLINE_CALLBACK_URL", &request.callback_url))
            .environment(variable("PLUMBLINE_TICKET", &request.ticket))
            .build();
        TaskOverride::builder().container_overrides(container).build()
    }
}

#[async_trait]
impl Launcher for EcsLauncher {
    fn name(&self) -> &'static str {
        "ecs"
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<String, LaunchError> {
        let answer = self
            .client
            .run_task()
            .cluster(&self.settings.cluster)
            .task_definition(&self.settings.task_definition)
            .launch_type(LaunchType::Fargate)
            .network_configuration(self.network()?)
            .overrides(self.overrides(request))
            .client_token(client_token(request.task_id, request.lease_token))
            .started_by(request.task_id.to_string())
            .tags(Tag::builder().key(LEASE_TOKEN_TAG).value(request.lease_token.to_string()).build())
            .count(1)
            .send()
            .await
            .map_err(|error| sdk_error(&error))?;
        // ECS answers 200 also when it started nothing.
        if let Some(failure) = answer.failures().first() {
            return Err(failure_error(failure));
        }
        answer
            .tasks()
            .first()
            .and_then(Task::task_arn)
            .map(str::to_owned)
            .ok_or_else(|| LaunchError::Unavailable("ECS answered with neither a task nor a failure".into()))
    }

    async fn find(&self, task_id: TaskId, lease_token: i64) -> Result<Option<String>, LaunchError> {
        let mut arns = self.list(task_id, DesiredStatus::Running).await?;
        arns.extend(self.list(task_id, DesiredStatus::Stopped).await?);
        if arns.is_empty() {
            return Ok(None);
        }
        let token = lease_token.to_string();
        let is_attempt = |task: &Task| {
            task.tags()
                .iter()
                .any(|tag| tag.key() == Some(LEASE_TOKEN_TAG) && tag.value() == Some(token.as_str()))
        };
        let tasks = self.describe_tasks(&arns).await?;
        Ok(tasks.into_iter().find(is_attempt).and_then(|task| task.task_arn))
    }

    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError> {
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = self.describe_tasks(handles).await?;
        let fates: HashMap<&str, ExecutorFate> =
            tasks.iter().filter_map(|task| Some((task.task_arn()?, fate(task)))).collect();
        // What ECS does not list may have stopped long ago or may not be visible yet: that proves nothing.
        let known = |handle: &String| fates.get(handle.as_str()).cloned().unwrap_or(ExecutorFate::Unknown);
        Ok(handles.iter().map(known).collect())
    }

    async fn stop(&self, handle: &str, reason: &str) -> Result<(), LaunchError> {
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        self.client
            .stop_task()
            .cluster(&self.settings.cluster)
            .task(handle)
            .reason(reason)
            .send()
            .await
            .map_err(|error| sdk_error(&error))?;
        Ok(())
    }
}

/// At most 64 ASCII characters.
fn client_token(task_id: TaskId, lease_token: i64) -> String {
    format!("{task_id}:{lease_token}")
}

fn fate(task: &Task) -> ExecutorFate {
    if task.last_status() != Some("STOPPED") {
        return ExecutorFate::Running;
    }
    let mut reason = task.stopped_reason().unwrap_or("stopped").to_owned();
    if let Some(code) = task.containers().iter().find_map(|container| container.exit_code()) {
        reason.push_str(&format!(" (exit code {code})"));
    }
    ExecutorFate::Stopped { reason }
}
