//! Programs that a kubeconfig may run to get a token: by name, with these arguments and this environment, no others.
//!
//! A plugin is run with the run's credentials. A free argument or variable would let whoever writes the kubeconfig send
//! them elsewhere, read files or run another program.

use serde::{Deserialize, Serialize};

const VALUE_CHARS_MAX: usize = 256;
const ARGS_MAX: usize = 24;

/// `exec` of a user, as kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExecPlugin {
    api_version: String,
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<Vec<Variable>>,
    #[serde(default, skip_serializing)]
    install_hint: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    provide_cluster_info: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interactive_mode: Option<String>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    value: String,
}

/// How one program may be called: the words that come first or after options, and the options with a value.
struct Shape {
    command: &'static str,
    words: &'static [&'static str],
    options: &'static [&'static str],
    /// Options without a value, and words that may be left out.
    flags: &'static [&'static str],
}

const SHAPES: [Shape; 6] = [
    Shape {
        command: "aws",
        words: &["eks", "get-token"],
        options: &["--cluster-name", "--cluster-id", "--region", "--role-arn", "--output", "--profile"],
        flags: &[],
    },
    Shape {
        command: "aws-iam-authenticator",
        words: &["token"],
        options: &["-i", "--cluster-id", "-r", "--role", "--region", "-s", "--session-name"],
        flags: &[],
    },
    Shape {
        command: "gke-gcloud-auth-plugin",
        words: &[],
        options: &[],
        flags: &["--use_application_default_credentials"],
    },
    Shape {
        command: "gcloud",
        words: &["config", "config-helper"],
        options: &["--format"],
        flags: &["--format=json"],
    },
    Shape {
        command: "kubelogin",
        words: &["get-token"],
        options: &["--environment", "--server-id", "--client-id", "--tenant-id", "-t", "--login", "-l"],
        flags: &["--use-azurerm-env-vars", "--legacy"],
    },
    Shape {
        command: "doctl",
        words: &["kubernetes", "cluster", "kubeconfig", "exec-credential"],
        options: &["--context"],
        flags: &["--version=v1beta1"],
    },
];

/// Variables that say where and as whom, never a file, a program or an address.
const VARIABLES: [&str; 9] = [
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "USE_GKE_GCLOUD_AUTH_PLUGIN",
    "AAD_LOGIN_METHOD",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_SUBSCRIPTION_ID",
];
const API_VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

impl ExecPlugin {
    /// Why it may not be run.
    pub(super) fn check(&self) -> Result<(), String> {
        let names: Vec<&str> = SHAPES.iter().map(|shape| shape.command).collect();
        let Some(shape) = SHAPES.iter().find(|shape| shape.command == self.command) else {
            return Err(format!("command: must be one of {}, without a path", names.join(", ")));
        };
        if !API_VERSIONS.contains(&self.api_version.as_str()) {
            return Err(format!("apiVersion: must be one of {}", API_VERSIONS.join(", ")));
        }
        if self.interactive_mode.as_deref().is_some_and(|mode| !["Never", "IfAvailable"].contains(&mode)) {
            return Err("interactiveMode: must be Never or IfAvailable: nobody is there to answer".into());
        }
        shape.check(self.args.as_deref().unwrap_or_default()).map_err(|why| format!("args: {why}"))?;
        for Variable { name, value } in self.env.iter().flatten() {
            if !VARIABLES.contains(&name.as_str()) {
                return Err(format!("env: may have {} only", VARIABLES.join(", ")));
            }
            if !is_value(value) {
                return Err(format!("env: the value of {name} is no plain word"));
            }
        }
        Ok(())
    }
}

impl ExecPlugin {
    /// The cluster whose token AWS's own programs would make, where they would make it of the given credentials alone: no
    /// other role, no profile.
    pub(super) fn eks_cluster_name(&self) -> Option<&str> {
        let name_options: &[&str] = match self.command.as_str() {
            "aws" => &["--cluster-name", "--cluster-id"],
            "aws-iam-authenticator" => &["-i", "--cluster-id"],
            _ => return None,
        };
        let args: Vec<&str> = self.args.iter().flatten().map(String::as_str).collect();
        let takes_another_way = |arg: &&str| {
            ["--role-arn", "--role", "-r", "--profile"].contains(&arg.split('=').next().unwrap_or_default())
        };
        if args.iter().any(takes_another_way) {
            return None;
        }
        args.iter().enumerate().find_map(|(at, arg)| match arg.split_once('=') {
            Some((option, value)) => name_options.contains(&option).then_some(value),
            None if name_options.contains(arg) => args.get(at + 1).copied(),
            None => None,
        })
    }
}

impl Shape {
    fn check(&self, args: &[String]) -> Result<(), String> {
        if args.len() > ARGS_MAX {
            return Err(format!("there may be at most {ARGS_MAX}"));
        }
        let mut words = Vec::new();
        let mut rest = args.iter().map(String::as_str);
        while let Some(arg) = rest.next() {
            if self.flags.contains(&arg) {
                continue;
            }
            let (option, value) = match arg.split_once('=') {
                Some((option, value)) if option.starts_with('-') => (option, Some(value)),
                _ => (arg, None),
            };
            if self.options.contains(&option) {
                let value = value.or_else(|| rest.next()).unwrap_or_default();
                if !is_value(value) {
                    return Err(format!("the value of {option} is no plain word"));
                }
            } else if option.starts_with('-') {
                // Ours to repeat: an option is no secret unless it holds a value, which is left out.
                return Err(format!("{} takes no option but {}", self.command, self.allowed()));
            } else {
                words.push(arg);
            }
        }
        // What `doctl` is called for is named by an id after its words.
        let extra = words.split_off(words.len().min(self.words.len()));
        let may_follow = self.command == "doctl" && extra.len() <= 1 && extra.iter().all(|id| is_value(id));
        if words != self.words || !(extra.is_empty() || may_follow) {
            return Err(format!("{} may be called with {:?} only", self.command, self.words.join(" ")));
        }
        Ok(())
    }

    fn allowed(&self) -> String {
        let all: Vec<&str> = self.options.iter().chain(self.flags).copied().collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }
}

/// A name, a number or an ARN: no option, no file, no address.
fn is_value(value: &str) -> bool {
    (1..=VALUE_CHARS_MAX).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/=@+,-".contains(&b))
        && !value.contains("..")
        && !value.contains("//")
        && !value.starts_with("file:")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(plugin: Value) -> Result<(), String> {
        let mut plugin = plugin;
        if plugin.get("apiVersion").is_none() {
            plugin["apiVersion"] = json!("client.authentication.k8s.io/v1beta1");
        }
        serde_json::from_value::<ExecPlugin>(plugin).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn what_clouds_write_is_taken() {
        for plugin in [
            json!({"command": "aws", "args": ["--region", "eu-central-1", "eks", "get-token", "--cluster-name", "prod",
                   "--output", "json"], "env": [{"name": "AWS_STS_REGIONAL_ENDPOINTS", "value": "regional"}]}),
            json!({"command": "aws", "args": ["eks", "get-token", "--cluster-name=prod",
                   "--role-arn", "arn:aws:iam::123456789012:role/eks"], "env": null, "interactiveMode": "IfAvailable"}),
            json!({"command": "aws-iam-authenticator", "args": ["token", "-i", "prod"]}),
            json!({"command": "gke-gcloud-auth-plugin", "installHint": "install it", "provideClusterInfo": true}),
            json!({"command": "kubelogin", "args": ["get-token", "--login", "spn", "--server-id",
                   "6dae42f8-4368-4678-94ff-3960e28e3630", "--environment", "AzurePublicCloud"]}),
            json!({"command": "doctl", "args": ["kubernetes", "cluster", "kubeconfig", "exec-credential",
                   "--version=v1beta1", "--context=default", "3c8ab1f0"]}),
        ] {
            assert_eq!(check(plugin.clone()), Ok(()), "{plugin}");
        }
    }

    #[test]
    fn every_other_program_argument_and_variable_is_refused() {
        let aws = |args: &[&str]| json!({"command": "aws", "args": args});
        let token = ["eks", "get-token", "--cluster-name", "prod"];
        let with = |more: &[&str]| aws(&[&token[..], more].concat());
        for plugin in [
            json!({"command": "/bin/sh"}),
            json!({"command": "./aws", "args": token}),
            json!({"command": "/tmp/evil/aws", "args": token}),
            json!({"command": "bash", "args": ["-c", "id"]}),
            json!({"command": "curl"}),
            json!({"command": "AWS", "args": token}),
            json!({"command": "aws ", "args": token}),
            aws(&[]),
            aws(&["s3", "cp", "x", "y"]),
            aws(&["eks"]),
            with(&["--endpoint-url", "https://example.com"]),
            with(&["--endpoint-url=https://example.com"]),
            with(&["--debug"]),
            with(&["--cli-input-json", "file:///etc/passwd"]),
            with(&["--cluster-id", "file:///etc/passwd"]),
            with(&["--cluster-id", "file:x"]),
            with(&["--cluster-id", "/etc/passwd"]),
            with(&["--cluster-id", "../x"]),
            with(&["--cluster-id", "--debug"]),
            with(&["--cluster-id", "a\nb"]),
            with(&["--cluster-id"]),
            with(&["extra"]),
            aws(&["x"; 25]),
            json!({"command": "aws", "args": token, "env": [{"name": "AWS_CONFIG_FILE", "value": "x"}]}),
            json!({"command": "aws", "args": token, "env": [{"name": "LD_PRELOAD", "value": "x"}]}),
            json!({"command": "aws", "args": token, "env": [{"name": "AWS_ENDPOINT_URL", "value": "x"}]}),
            json!({"command": "aws", "args": token, "env": [{"name": "AWS_PROFILE", "value": "/etc/x"}]}),
            json!({"command": "aws", "args": token, "env": [{"name": "AWS_PROFILE", "value": "a", "more": 1}]}),
            json!({"command": "aws", "args": token, "interactiveMode": "Always"}),
            json!({"command": "aws", "args": token, "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
            json!({"command": "aws", "args": token, "more": true}),
            json!({"command": "kubelogin", "args": ["get-token", "--client-certificate", "x"]}),
            json!({"command": "kubelogin", "args": ["get-token", "--authority-host", "x"]}),
        ] {
            assert!(check(plugin.clone()).is_err(), "{plugin}");
        }
    }
}
