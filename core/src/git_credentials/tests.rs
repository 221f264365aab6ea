//! The pure half: what may be stored, and which repositories it is for.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::workspaces::{LocalRepos, RepoUrl, Transport};

fn block(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// A private key in OpenSSH's format, with bytes that mean nothing.
fn ssh_key(kind: &str, values: &[&[u8]], cipher: &str, second_check: u32) -> String {
    let public = [block(kind.as_bytes()), block(values[0]), block(values[1])].concat();
    let mut private = [7_u32.to_be_bytes(), second_check.to_be_bytes()].concat();
    private.extend(block(kind.as_bytes()));
    values.iter().for_each(|value| private.extend(block(value)));
    private.extend(block(b"a comment"));
    private.extend([1, 2, 3]);
    let function = if cipher == "none" { "none" } else { "bcrypt" };
    let bytes = [
        b"openssh-key-v1\0".to_vec(),
        block(cipher.as_bytes()),
        block(function.as_bytes()),
        block(b""),
        1_u32.to_be_bytes().to_vec(),
        block(&public),
        block(&private),
    ]
    .concat();
    pem::close("OPENSSH PRIVATE KEY", &bytes)
}

fn ed25519() -> String {
    ssh_key("ssh-ed25519", &[&[5; 32], &[6; 64]], "none", 7)
}

fn host_key() -> String {
    let blob = [block(b"ssh-ed25519"), block(&[9; 32])].concat();
    format!("ssh-ed25519 {}", STANDARD.encode(blob))
}

fn app_key() -> String {
    let mut bytes = vec![0x30, 0x82, 0x01, 0x00];
    bytes.resize(4 + 256, 3);
    pem::close("RSA PRIVATE KEY", &bytes)
}

fn settings(body: Value) -> Result<Settings, (&'static str, String)> {
    let new: NewGitCredential = serde_json::from_value(body).unwrap();
    Settings::validate(new, false).map_err(|wrong| (wrong.field, wrong.reason))
}

fn place(url: &str) -> Place {
    Place::of(&RepoUrl::parse(url, LocalRepos::Refused).unwrap()).unwrap()
}

#[test]
fn the_longest_prefix_of_the_same_host_and_transport_wins() {
    let all = [
        (Transport::Http, "git.example", ""),
        (Transport::Http, "git.example", "org"),
        (Transport::Http, "git.example", "org/team"),
        (Transport::Http, "git.example:8443", "org"),
        (Transport::Ssh, "git.example", ""),
    ];
    let of = |url: &str| best(all, &place(url), |one| *one);
    for (url, chosen) in [
        ("https://git.example/org/team/x.git", Some(all[2])),
        ("https://git.example/org/team.git", Some(all[2])),
        ("https://git.example/org/teams/x", Some(all[1])),
        ("https://git.example/organisation/x", Some(all[0])),
        ("https://GIT.example:443/org/x/", Some(all[1])),
        ("https://git.example:8443/org/x", Some(all[3])),
        ("https://git.example:8443/other/x", None),
        ("https://git.example.evil.example/org/x", None),
        ("https://evil.example/git.example/org/x", None),
        ("http://git.example/org/x", None),
        ("ssh://git@git.example/org/team/x", Some(all[4])),
        ("git@git.example:org/team/x.git", Some(all[4])),
        ("ssh://git@git.example:2222/org/x", None),
    ] {
        assert_eq!(of(url), chosen, "{url}");
    }
    // A server may read such a path as another one.
    assert_eq!(of("git@git.example:org/../other/x"), Some(all[4]));
    assert!(!covers(Transport::Ssh, "git.example", "org", &place("git@git.example:org/../other/x")));
    assert!(!covers(Transport::Http, "git.example", "org", &place("https://git.example/org//x")));
}

#[test]
fn hosts_and_prefixes_have_one_spelling() {
    let with = |host: &str, prefix: &str| {
        settings(json!({ "name": "n", "kind": "token", "host": host, "path_prefix": prefix, "token": "t" }))
    };
    for (host, prefix, stored) in [
        ("GitHub.com", "/Org/", ("github.com", "Org")),
        ("git.example:443", "org/team.git", ("git.example", "org/team")),
        ("git.example:8443", "", ("git.example:8443", "")),
        ("10.0.0.1", "/", ("10.0.0.1", "")),
        ("[::1]:8443", "a", ("[::1]:8443", "a")),
    ] {
        let settings = with(host, prefix).unwrap();
        assert_eq!((settings.host.as_str(), settings.path_prefix.as_str()), stored);
    }
    for bad in [
        "",
        "https://git.example",
        "git.example/org",
        "u@git.example",
        "git.example:0",
        "git.example:x",
        "-git",
        "git.example:99999",
        "a b",
        "[::1",
        "git.example:",
        "git'example",
        "::1",
    ] {
        assert_eq!(with(bad, "").map(|_| ()).unwrap_err().0, "host", "{bad}");
    }
    for bad in ["a/../b", "a//b", "a b", "a'b", "$(id)", "ünï", "a\nb", "."] {
        assert_eq!(with("git.example", bad).map(|_| ()).unwrap_err().0, "path_prefix", "{bad}");
    }
}

#[test]
fn a_token_gets_the_name_that_its_forge_takes_and_shows_its_end_if_it_is_long() {
    let with = |host: &str, token: &str| {
        settings(json!({ "name": "n", "kind": "token", "host": host, "token": token })).unwrap()
    };
    for (host, username) in [
        ("github.com", "x-access-token"),
        ("gitlab.com", "oauth2"),
        ("gitlab.example.com:8443", "oauth2"),
        ("bitbucket.org", "x-token-auth"),
        ("mygitlab.example", "x-access-token"),
    ] {
        assert_eq!(with(host, "t").username.as_deref(), Some(username), "{host}");
    }
    let tail = |token: &str| with("h.example", token).secret.unwrap().masked_tail;
    assert_eq!(tail("elevenchars"), None);
    assert_eq!(tail("twelve-chars").as_deref(), Some("hars"));
}

#[test]
fn ssh_keys_are_checked_and_brought_into_one_spelling() {
    let with = |key: &str, hosts: &[String]| {
        settings(
            json!({ "name": "n", "kind": "ssh_key", "host": "git.example", "private_key": key, "host_keys": hosts }),
        )
    };
    let pinned = [host_key()];
    let stored = with(&ed25519().replace('\n', "\r\n  "), &pinned).unwrap();
    assert_eq!(stored.secret.as_ref().unwrap().text, ed25519());
    assert_eq!(stored.secret.unwrap().masked_tail, None, "the end of a key is a part of it");
    assert!(stored.public_key.unwrap().starts_with("ssh-ed25519 AAAA"));
    let long = [vec![0], vec![255; 256]].concat();
    let rsa = |modulus: &[u8]| ssh_key("ssh-rsa", &[&[1, 0, 1], modulus, &[3], &[4], &[5], &[6]], "none", 7);
    assert!(with(&rsa(&long), &pinned).is_ok());
    let cut = ed25519().replace("-----END", "AAAA-----END");
    for (bad, says) in [
        ("nonsense".to_owned(), "OpenSSH's format"),
        (app_key(), "OpenSSH's format"),
        (ssh_key("ssh-ed25519", &[&[5; 32], &[6; 64]], "aes256-ctr", 7), "passphrase"),
        (ssh_key("ssh-ed25519", &[&[5; 32], &[6; 64]], "none", 8), "damaged"),
        (ssh_key("ssh-dss", &[&[5; 32], &[6; 64]], "none", 7), "kind that is refused"),
        (rsa(&[255; 128]), "2,048 bits"),
        (cut, "OpenSSH's format"),
    ] {
        let (field, reason) = with(&bad, &pinned).map(|_| ()).unwrap_err();
        assert!(field == "private_key" && reason.contains(says), "{field}: {reason}");
    }
}

#[test]
fn a_host_is_known_by_its_key_or_fingerprint_and_never_unpinned() {
    let with = |host: &str, lines: &[&str]| {
        settings(
            json!({ "name": "n", "kind": "ssh_key", "host": host, "private_key": ed25519(), "host_keys": lines }),
        )
        .map(|settings| settings.host_keys)
    };
    let key = host_key();
    let digest = Sha256::digest(STANDARD.decode(key.split(' ').nth(1).unwrap()).unwrap());
    let print = format!("SHA256:{}", STANDARD_NO_PAD.encode(digest));
    for line in [
        key.clone(),
        format!("git.example {key} a comment"),
        format!("git.example,10.0.0.1 {key}"),
        format!("|1|c2FsdA==|aGFzaA== {key}"),
    ] {
        assert_eq!(with("git.example", &[&line]).unwrap(), [key.as_str()], "{line}");
    }
    assert_eq!(with("git.example:2222", &[&format!("[git.example]:2222 {key}")]).unwrap(), [key.as_str()]);
    assert_eq!(with("git.example", &[&print, &print]).unwrap(), [print.as_str()]);
    let other = format!("other.example {key}");
    let revoked = format!("@revoked git.example {key}");
    for bad in
        [&[][..], &[""], &["SHA256:short"], &["MD5:aa:bb"], &["ssh-ed25519 AAAA"], &[&other], &[&revoked]]
    {
        assert_eq!(with("git.example", bad).unwrap_err().0, "host_keys", "{bad:?}");
    }
}

#[test]
fn every_field_belongs_to_its_kind() {
    let base = json!({ "name": "n", "host": "github.com" });
    let with = |more: Value| {
        let mut body = base.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        settings(body).map(|_| ()).map_err(|(field, _)| field)
    };
    let app =
        json!({ "kind": "github_app", "app_id": "Iv1.a", "installation_id": 7, "private_key": app_key() });
    assert_eq!(with(app.clone()), Ok(()));
    for (more, field) in [
        (json!({ "kind": "token" }), "token"),
        (json!({ "kind": "token", "token": "" }), "token"),
        (json!({ "kind": "token", "token": "a\nb" }), "token"),
        (json!({ "kind": "token", "token": "t", "username": "a\nb" }), "username"),
        (json!({ "kind": "token", "token": "t", "private_key": "k" }), "private_key"),
        (json!({ "kind": "token", "token": "t", "host_keys": [] }), "host_keys"),
        (json!({ "kind": "token", "token": "t", "name": " " }), "name"),
        (json!({ "kind": "ssh_key", "private_key": ed25519() }), "host_keys"),
        (json!({ "kind": "ssh_key", "host_keys": [host_key()] }), "private_key"),
        (json!({ "kind": "ssh_key", "username": "git" }), "username"),
        (json!({ "kind": "github_app" }), "private_key"),
    ] {
        assert_eq!(with(more.clone()), Err(field), "{more}");
    }
    for (name, value) in [
        ("app_id", json!("a b")),
        ("app_id", json!(null)),
        ("installation_id", json!(0)),
        ("installation_id", json!(null)),
        ("api_url", json!("http://api.github.com")),
        ("api_url", json!("https://u:p@api.github.com")),
        ("api_url", json!("ftp://api.github.com")),
        ("api_url", json!("https://api.github.com/?a=b")),
        ("private_key", json!(ed25519())),
    ] {
        let mut body = app.clone();
        body[name] = value.clone();
        assert_eq!(with(body), Err(name), "{name}: {value}");
    }
}

#[test]
fn an_app_has_the_api_of_its_host() {
    let with = |host: &str| {
        let body = json!({ "name": "n", "kind": "github_app", "host": host, "app_id": "1", "installation_id": 7,
                           "private_key": app_key() });
        settings(body).unwrap().api_url
    };
    assert_eq!(with("github.com").as_deref(), Some("https://api.github.com"));
    assert_eq!(with("ghe.example:8443").as_deref(), Some("https://ghe.example:8443/api/v3"));
}

#[test]
fn nothing_that_holds_a_secret_prints_it() {
    let key = AppKey {
        app_id: "1".into(),
        installation_id: 2,
        api_url: "https://api.github.com".into(),
        private_key: "planted".into(),
    };
    let secrets = [
        GitSecret::Token { username: "u".into(), token: "planted".into() },
        GitSecret::SshKey { private_key: "planted".into(), host_keys: Vec::new() },
        GitSecret::GithubApp(key),
    ];
    assert!(!format!("{secrets:?}").contains("planted"));
    let new =
        json!({ "name": "n", "kind": "token", "host": "h", "token": "planted", "private_key": "planted" });
    let new: NewGitCredential = serde_json::from_value(new).unwrap();
    let change: GitCredentialChange =
        serde_json::from_value(json!({ "token": "planted", "private_key": "planted" })).unwrap();
    assert!(!format!("{new:?} {change:?}").contains("planted"));
}
