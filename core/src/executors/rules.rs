//! Whether a caller of the cloud is the task that was launched.

/// Executors on this machine are known by their ticket alone; all others prove who they are.
pub(crate) fn must_prove(launcher: &str) -> bool {
    launcher != "local"
}

/// Why a caller is not the task. Each says what to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stranger {
    #[error("what the launch recorded is not the ARN of an ECS task")]
    NoTask,
    #[error("the caller is not a session of a role")]
    NoSession,
    #[error("the caller is of another account")]
    Account,
    #[error("the caller has another role than executors have")]
    Role,
    #[error("the caller is another task")]
    Task,
}

/// Compares an ECS task, by its ARN, with who the cloud says has called. The session of a task's role is named by the
/// task's id. Whoever may assume some role can name the session as he likes, therefore the role counts, too.
pub(crate) fn check_caller(task_arn: &str, role: &str, caller_arn: &str) -> Result<(), Stranger> {
    let task = EcsTask::parse(task_arn).ok_or(Stranger::NoTask)?;
    let session = RoleSession::parse(caller_arn).ok_or(Stranger::NoSession)?;
    if (session.partition, session.account) != (task.partition, task.account) {
        return Err(Stranger::Account);
    }
    if session.role != role {
        return Err(Stranger::Role);
    }
    if session.name == task.id { Ok(()) } else { Err(Stranger::Task) }
}

/// `arn:<partition>:ecs:<region>:<account>:task/<cluster>/<id>`; the oldest ARNs have no cluster.
struct EcsTask<'a> {
    partition: &'a str,
    account: &'a str,
    id: &'a str,
}

impl<'a> EcsTask<'a> {
    fn parse(arn: &'a str) -> Option<Self> {
        let ["arn", partition, "ecs", _region, account, resource] = parts(arn)[..] else { return None };
        let ids: Vec<&str> = resource.strip_prefix("task/")?.split('/').collect();
        let ([id] | [_, id]) = ids[..] else { return None };
        let is_whole = ![partition, account].contains(&"") && !ids.contains(&"");
        is_whole.then_some(Self { partition, account, id })
    }
}

/// `arn:<partition>:sts::<account>:assumed-role/<role>/<session>`.
struct RoleSession<'a> {
    partition: &'a str,
    account: &'a str,
    role: &'a str,
    name: &'a str,
}

impl<'a> RoleSession<'a> {
    fn parse(arn: &'a str) -> Option<Self> {
        let ["arn", partition, "sts", "", account, resource] = parts(arn)[..] else { return None };
        let resource: Vec<&str> = resource.split('/').collect();
        let ["assumed-role", role, name] = resource[..] else { return None };
        let is_whole = ![partition, account, role, name].contains(&"");
        is_whole.then_some(Self { partition, account, role, name })
    }
}

fn parts(arn: &str) -> Vec<&str> {
    arn.split(':').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "arn:aws:ecs:eu-central-1:123456789012:task/plumbline/0123456789abcdef";
    const CALLER: &str = "arn:aws:sts::123456789012:assumed-role/executor/0123456789abcdef";

    fn check(task: &str, caller: &str) -> Result<(), Stranger> {
        check_caller(task, "executor", caller)
    }

    #[test]
    fn a_task_is_its_role_s_session_with_its_id() {
        assert_eq!(check(TASK, CALLER), Ok(()));
        let old = "arn:aws:ecs:eu-central-1:123456789012:task/0123456789abcdef";
        assert_eq!(check(old, CALLER), Ok(()));
        let china = |arn: &str| arn.replace("arn:aws:", "arn:aws-cn:");
        assert_eq!(check(&china(TASK), &china(CALLER)), Ok(()));
    }

    #[test]
    fn whatever_differs_is_a_stranger() {
        for (from, to, expected) in [
            ("0123456789abcdef", "0123456789abcde0", Stranger::Task),
            ("0123456789abcdef", "0123456789ABCDEF", Stranger::Task),
            ("/executor/", "/admin/", Stranger::Role),
            (":123456789012:", ":123456789013:", Stranger::Account),
            ("arn:aws:", "arn:aws-cn:", Stranger::Account),
            ("assumed-role/executor/0123456789abcdef", "user/0123456789abcdef", Stranger::NoSession),
            ("assumed-role/executor", "federated-user/executor", Stranger::NoSession),
            ("/executor/0123456789abcdef", "/executor/", Stranger::NoSession),
            ("/executor/", "/executor/x/", Stranger::NoSession),
            ("sts::", "sts:eu-central-1:", Stranger::NoSession),
            ("sts::", "iam::", Stranger::NoSession),
            ("arn:", "", Stranger::NoSession),
            ("abcdef", "abcdef:x", Stranger::NoSession),
        ] {
            assert_eq!(check(TASK, &CALLER.replace(from, to)), Err(expected), "{to}");
        }
    }

    #[test]
    fn what_is_no_task_is_nobody() {
        for handle in [
            "",
            "42:777",
            "arn:aws:ecs:eu-central-1:123456789012:task/",
            "arn:aws:ecs:eu-central-1:123456789012:task/plumbline/",
            "arn:aws:ecs:eu-central-1:123456789012:task/a/b/0123456789abcdef",
            "arn:aws:ecs:eu-central-1::task/plumbline/0123456789abcdef",
            "arn:aws:ecs:eu-central-1:123456789012:service/plumbline/0123456789abcdef",
        ] {
            assert_eq!(check(handle, CALLER), Err(Stranger::NoTask), "{handle}");
        }
    }

    #[test]
    fn only_this_machine_s_executors_need_no_proof() {
        assert!(!must_prove("local"));
        assert!(must_prove("ecs") && must_prove("") && must_prove("something new"));
    }
}
