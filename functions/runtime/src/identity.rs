//! How `callback` knows executors that are not on this machine.

use std::sync::Arc;

use plumbline_core::executors::TaskIdentity;
use plumbline_sts::StsCallers;

use crate::environment::{Environment, STS_ENDPOINT as ENDPOINT, SettingError};

const LAUNCHER: &str = "PLUMBLINE_LAUNCHER";
const ROLE: &str = "PLUMBLINE_EXECUTOR_ROLE";

/// `None` where executors are processes of this machine. The default of rustls must be installed.
pub fn task_identity(environment: &Environment) -> Result<Option<TaskIdentity>, SettingError> {
    match environment.find(LAUNCHER) {
        Some("local") => return Ok(None),
        None | Some("ecs") => {}
        Some(_) => return Err(SettingError::wrong(LAUNCHER, "must be ecs or local")),
    }
    let region = environment.get("AWS_REGION", "the region whose STS is asked who an executor is")?;
    let role = environment.get(ROLE, "the name of the role that executors on ECS have as their task role")?;
    if role.contains([':', '/']) {
        return Err(SettingError::wrong(ROLE, "must be the name of a role, not its ARN or path"));
    }
    let callers = StsCallers::new(region, environment.find(ENDPOINT))
        .map_err(|error| SettingError::wrong(ENDPOINT, error.to_string()))?;
    Ok(Some(TaskIdentity { callers: Arc::new(callers), role: role.into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<TaskIdentity>, SettingError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        task_identity(&variables.iter().copied().collect())
    }

    #[test]
    fn executors_on_ecs_are_known_by_a_role_that_must_be_named() {
        let whole = [("AWS_REGION", "eu-central-1"), (ROLE, "executor")];
        assert_eq!(read(&whole).expect("fine").expect("there").role.as_ref(), "executor");
        for missing in ["AWS_REGION", ROLE] {
            let rest: Vec<_> = whole.into_iter().filter(|(name, _)| *name != missing).collect();
            assert!(read(&rest).expect_err("refused").to_string().contains(missing));
        }
        let arn = [("AWS_REGION", "eu-central-1"), (ROLE, "arn:aws:iam::1:role/executor")];
        assert!(read(&arn).expect_err("refused").to_string().contains("not its ARN"));
    }

    #[test]
    fn executors_of_this_machine_are_known_by_their_ticket() {
        assert!(read(&[(LAUNCHER, "local")]).expect("fine").is_none());
        assert!(read(&[(LAUNCHER, "docker")]).is_err());
    }
}
