//! What OpenSSH's client is told so that it uses one key, believes one host, and looks at nothing of the machine's own:
//! a configuration of ours, the key, the pinned keys, and a script for pinned fingerprints.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The name under which the pinned keys are looked up, whatever the host is called.
const ALIAS: &str = "plumbline-pinned";

/// Files of one connection. They go with the directory that they lie in.
#[derive(Clone, Debug)]
pub struct Files {
    directory: PathBuf,
}

impl Files {
    /// Writes the files into a directory that nobody else reads. `address` is the only one that is connected to; `None`
    /// is what the name means.
    pub fn write(
        directory: &Path,
        private_key: &str,
        host_keys: &[String],
        address: Option<IpAddr>,
    ) -> std::io::Result<Self> {
        let files = Self { directory: directory.to_owned() };
        let (prints, keys): (Vec<&String>, Vec<&String>) =
            host_keys.iter().partition(|key| key.starts_with("SHA256:"));
        files.put("ssh-key", private_key)?;
        files.put("ssh-hosts", &keys.iter().map(|key| format!("{ALIAS} {key}\n")).collect::<String>())?;
        files.put("ssh-pins.sh", &pins(&prints))?;
        files.put("ssh-config", &files.configuration(!prints.is_empty(), address))?;
        Ok(files)
    }

    /// For `GIT_SSH_COMMAND`.
    pub fn command(&self) -> String {
        format!("ssh -F '{}'", self.at("ssh-config"))
    }

    /// Removes them.
    pub fn remove(&self) -> std::io::Result<()> {
        ["ssh-key", "ssh-hosts", "ssh-pins.sh", "ssh-config"]
            .iter()
            .try_for_each(|name| std::fs::remove_file(self.directory.join(name)))
    }

    fn at(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn put(&self, name: &str, text: &str) -> std::io::Result<()> {
        let path = self.directory.join(name);
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    }

    fn configuration(&self, has_prints: bool, address: Option<IpAddr>) -> String {
        let mut lines = vec![
            "Host *".to_owned(),
            "BatchMode yes".to_owned(),
            "ConnectTimeout 10".to_owned(),
            "StrictHostKeyChecking yes".to_owned(),
            "CheckHostIP no".to_owned(),
            "UpdateHostKeys no".to_owned(),
            "GlobalKnownHostsFile /dev/null".to_owned(),
            format!("HostKeyAlias {ALIAS}"),
            format!("UserKnownHostsFile \"{}\"", self.at("ssh-hosts")),
            format!("IdentityFile \"{}\"", self.at("ssh-key")),
            // Nothing of the machine's: a key in ~/.ssh or an agent would let every unit in.
            "IdentitiesOnly yes".to_owned(),
            "IdentityAgent none".to_owned(),
            "PreferredAuthentications publickey".to_owned(),
        ];
        if has_prints {
            lines.push(format!("KnownHostsCommand /bin/sh \"{}\" %H %t %K %f", self.at("ssh-pins.sh")));
        }
        if let Some(address) = address {
            lines.push(format!("HostName {address}"));
        }
        lines.join("\n") + "\n"
    }
}

/// Prints the key that a host shows as a known one if its fingerprint is pinned. Fingerprints are base64: no character
/// of them means something to a shell.
fn pins(prints: &[&String]) -> String {
    if prints.is_empty() {
        return "exit 0\n".into();
    }
    let patterns: Vec<&str> = prints.iter().map(|print| print.as_str()).collect();
    format!("case \"$4\" in {}) printf '%s %s %s\\n' \"$1\" \"$2\" \"$3\" ;; esac\n", patterns.join("|"))
}
