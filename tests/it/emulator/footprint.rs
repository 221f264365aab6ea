//! What an emulator leaves on the machine that it runs on: sockets, accounts, words.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::program::{Up, command, descendants, eventually, scratch};

/// `0100007F:1F90`, as the kernel prints addresses: words of four bytes in the machine's order.
fn address(text: &str) -> SocketAddr {
    let (host, port) = text.split_once(':').expect("host and port");
    let bytes: Vec<u8> = host
        .as_bytes()
        .chunks(8)
        .flat_map(|word| {
            let word = std::str::from_utf8(word).expect("digits");
            u32::from_str_radix(word, 16).expect("digits").to_ne_bytes()
        })
        .collect();
    let host = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).expect("16 bytes"))),
    };
    SocketAddr::new(host, u16::from_str_radix(port, 16).expect("digits"))
}

/// Where a process and all below it listen for TCP.
fn listening(pid: i32) -> BTreeSet<SocketAddr> {
    const LISTEN: &str = "0A";
    let mut sockets = BTreeSet::new();
    for (id, _) in descendants(pid).into_iter().chain([(pid, String::new())]) {
        // A process that has just ended has no sockets.
        for entry in std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten() {
            let target = std::fs::read_link(entry.path()).unwrap_or_default().display().to_string();
            sockets.extend(target.strip_prefix("socket:[").map(|it| it.trim_end_matches(']').to_owned()));
        }
    }
    let table = |name: &str| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let rows = [table("tcp"), table("tcp6")].concat();
    rows.lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.get(3) == Some(&LISTEN) && row.get(9).is_some_and(|inode| sockets.contains(*inode)))
        .map(|row| address(row[1]))
        .collect()
}

#[test]
fn addresses_of_the_kernel_are_read_as_they_are_meant() {
    assert_eq!(address("0100007F:1F90").to_string(), "127.0.0.1:8080");
    assert_eq!(address("00000000:0016").to_string(), "0.0.0.0:22");
    assert_eq!(address("00000000000000000000000001000000:1F90").to_string(), "[::1]:8080");
    let everywhere = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let seen = listening(i32::try_from(std::process::id()).expect("a pid"));
    assert!(seen.contains(&everywhere.local_addr().expect("bound")), "{seen:?}");
}

#[tokio::test]
async fn everything_listens_on_loopback_alone_also_the_functions_own_programs() {
    let scratch = scratch();
    for (name, more, at_least) in [("process", &[][..], 3), ("lambda", &["--lambda"][..], 4)] {
        let up = Up::start(&scratch.path().join(name), more).await;
        let facts = up.facts();
        let listening = listening(up.pid());
        let ports: BTreeSet<u16> = listening.iter().map(SocketAddr::port).collect();
        for url in [&facts.url, &facts.store_url] {
            let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
            assert!(ports.contains(&port), "{url} is not among {listening:?}");
        }
        assert!(ports.contains(&facts.postgres_port), "{listening:?}");
        assert!(listening.len() >= at_least, "{name}: {listening:?}");
        assert!(listening.iter().all(|address| address.ip().is_loopback()), "{name}: {listening:?}");
    }
}

#[tokio::test]
async fn postgres_never_runs_as_root() {
    let scratch = scratch();
    let up = Up::start(&scratch.path().join("home"), &[]).await;
    let mut owners = BTreeSet::new();
    for (id, _) in descendants(up.pid()) {
        let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        if let (true, Ok(meta)) = (name.trim() == "postgres", std::fs::metadata(format!("/proc/{id}"))) {
            owners.insert(meta.uid());
        }
    }
    let data = std::fs::metadata(scratch.path().join("home/postgres/data")).expect("the cluster");
    assert_eq!(owners, BTreeSet::from([data.uid()]), "its files are its own");
    assert!(!owners.contains(&0));
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP: only root's server needs another account");
    }
}

#[tokio::test]
async fn the_admins_password_is_shown_once_at_the_first_start_and_never_logged() {
    let scratch = scratch();
    let home = scratch.path().join("home");
    let mut first = Up::start(&home, &[]).await;
    let password = std::fs::read_to_string(home.join("admin-password")).expect("kept").trim().to_owned();
    eventually("it greets", || first.out().contains("Ctrl-C stops everything.")).await;
    let greeting = first.out();
    assert_eq!(greeting.matches(&password).count(), 1, "{greeting}");
    assert!(
        greeting.contains("admin@localhost") && greeting.contains("(shown this once; kept in "),
        "{greeting}"
    );
    assert!(!first.log().contains(&password));
    first.signal(Signal::SIGTERM);
    first.ended().await;

    let again = Up::start(&home, &[]).await;
    eventually("it greets", || again.out().contains("Ctrl-C stops everything.")).await;
    let greeting = again.out();
    assert!(!greeting.contains(&password) && !again.log().contains(&password), "{greeting}");
    let kept = home.join("admin-password").canonicalize().expect("kept");
    assert!(greeting.contains(&format!("password  in {}", kept.display())), "{greeting}");
}

#[tokio::test]
async fn the_log_is_lines_for_people_or_json_for_programs_without_secrets() {
    let scratch = scratch();
    for format in ["text", "json"] {
        let home = scratch.path().join(format);
        let mut up = Up::start(&home, &["--log", format]).await;
        up.signal(Signal::SIGTERM);
        up.ended().await;
        let log = up.log();
        assert!(log.lines().count() >= 2, "{format}: {log}");
        for line in log.lines() {
            let (level, message) = match format {
                "json" => {
                    let line: Value =
                        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    (text(&line["level"]), text(&line["fields"]["message"]))
                }
                _ => {
                    // `2026-01-31T12:00:00.000000Z  INFO message`, and no colours into a file.
                    let mut words = line.split_whitespace();
                    let at = words.next().unwrap_or_default();
                    assert!(at.parse::<chrono::DateTime<chrono::Utc>>().is_ok(), "{line}");
                    let level = words.next().unwrap_or_default().to_owned();
                    (level, words.collect::<Vec<_>>().join(" "))
                }
            };
            assert!(["INFO", "WARN"].contains(&level.as_str()), "a quiet start and stop: {line}");
            assert!(!message.is_empty() && !line.contains('\u{1b}'), "{line}");
        }
        assert!(log.contains("stopping") && log.contains("stopped"), "{log}");
        for secret in ["admin-password", "root-key", "store-secret", "postgres-password"] {
            let secret = std::fs::read_to_string(home.join(secret)).expect("kept");
            assert!(!log.contains(secret.trim()), "{log}");
        }
    }
}

/// As root, the emulator of this test belongs to nobody.
fn without_root(home: &Path) -> std::process::Command {
    let text = home.to_str().expect("UTF-8");
    let cache = format!("{text}-cache");
    let mut up = command(&["up", "--fsync", "off", "--port", "0", "--store-port", "0", "--pg-port", "0"]);
    up.args(["--dir", text, "--cache", &cache]);
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(home.parent().expect("a scratch directory"), Some(65_534), Some(65_534))
            .expect("given");
        up.uid(65_534).gid(65_534).env("HOME", home);
    }
    up
}

#[tokio::test]
async fn without_root_the_emulator_says_that_isolation_is_off() {
    let scratch = scratch();
    let home = scratch.path().join("home");
    let up = Up::spawn(without_root(&home), &home).await;
    assert!(up.log().contains("isolation is off: without root"), "{}", up.log());
    drop(up);
    if nix::unistd::geteuid().is_root() {
        let home = scratch.path().join("of-root");
        let up = Up::start(&home, &[]).await;
        assert!(!up.log().contains("isolation is off"), "{}", up.log());
    }
}
