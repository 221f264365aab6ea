//! TLS to Postgres: a server with a certificate made for the test, and a function's own wiring that talks to it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use plumbline_core::db::{Conn, Connect, Db, DbError, PgMode, Query as _};
use plumbline_emulator::postgres::{Cluster, Settings};
use plumbline_runtime::{Environment, deps_from};

use crate::plane::{ROOT_KEY, cluster_url};

const PASSWORD: &str = "for-tests-only";

/// A cluster that serves TLS as `localhost`, and takes nothing else.
struct Server {
    cluster: Cluster,
    scratch: tempfile::TempDir,
}

/// `None`, with the reason printed, where there is no `openssl`.
async fn start() -> Option<Server> {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("SKIP: openssl is not on the PATH");
        return None;
    }
    let scratch = tempfile::Builder::new().prefix("plumbline-test-").tempdir().unwrap();
    // The server's account must get through.
    std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o711)).unwrap();
    let settings = Settings {
        directory: scratch.path().join("cluster"),
        cache: scratch.path().join("cache"),
        log: scratch.path().join("postgres.log"),
        port: 0,
        password: PASSWORD.into(),
        fsync: false,
        connections_max: 20,
    };
    let cluster = Cluster::start(&settings).await.unwrap();
    for authority in ["ours", "another"] {
        make_authority(scratch.path(), authority);
    }
    make_certificate(scratch.path(), "ours", "DNS:localhost");
    let server = Server { cluster, scratch };
    server.require_tls().await;
    Some(server)
}

impl Server {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn plain(&self) -> Db {
        Db::new(&Connect { url: self.cluster.url("postgres"), pool_size: 1, mode: PgMode::Direct }).unwrap()
    }

    /// Serves the certificate and takes nothing but TLS from now on.
    async fn require_tls(&self) {
        let data = self.path("cluster/data");
        let owner = std::fs::metadata(&data).unwrap();
        for name in ["db.key", "db.pem"] {
            let to = data.join(name);
            std::fs::copy(self.path(name), &to).unwrap();
            std::fs::set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
            chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        let admin = self.plain();
        let conn = admin.conn().await.unwrap();
        for sql in [
            "ALTER SYSTEM SET ssl_cert_file = 'db.pem'",
            "ALTER SYSTEM SET ssl_key_file = 'db.key'",
            "ALTER SYSTEM SET ssl = on",
        ] {
            conn.batch(sql).await.unwrap();
        }
        std::fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256\n").unwrap();
        conn.batch("SELECT pg_reload_conf()").await.unwrap();
        // The server reads its settings when it comes to it.
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.plain().conn().await.is_ok() {
            assert!(Instant::now() < deadline, "the server still takes connections without TLS");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A connection as a function would make it, to the host, trusting the authority of that name.
    async fn connect(&self, host: &str, mode: &str, authority: Option<&str>) -> Result<Conn, DbError> {
        let port = self.cluster.port;
        let url = format!("postgres://postgres:{PASSWORD}@{host}:{port}/postgres?sslmode={mode}");
        connect(&url, authority.map(|name| self.path(&format!("{name}.pem"))).as_deref()).await
    }
}

/// Wires a function from an environment with the URL and the file of trusted authorities.
async fn connect(url: &str, authorities: Option<&Path>) -> Result<Conn, DbError> {
    let blobs = tempfile::tempdir().unwrap();
    let own = [
        ("DATABASE_URL", url.to_owned()),
        ("CREDENTIAL_ENCRYPTION_KEY", ROOT_KEY.to_owned()),
        ("PLUMBLINE_PUBLIC_URL", "http://127.0.0.1:9".to_owned()),
        ("PLUMBLINE_BLOBS", format!("file://{}", blobs.path().display())),
    ];
    let authorities = authorities.map(|path| ("PGSSLROOTCERT", path.display().to_string()));
    let environment: Environment = own.into_iter().chain(authorities).collect();
    deps_from(&environment).await.unwrap().db.conn().await
}

/// Why the connection was refused, with every cause.
fn refusal(outcome: Result<Conn, DbError>) -> String {
    let error = outcome.err().expect("it is refused");
    assert!(matches!(error, DbError::Unavailable(_)), "{error:?}");
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        text.push_str(&format!("{error}: "));
        cause = error.source();
    }
    text
}

fn make_authority(directory: &Path, name: &str) {
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let subject = format!("/CN={name}");
    let made = ["-newkey", "rsa:2048", "-nodes", "-subj", &subject, "-keyout", &key, "-out", &certificate];
    openssl(directory, &[&["req", "-x509", "-days", "2"], &made[..]].concat());
}

fn openssl(directory: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").current_dir(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A key and a certificate for the name, signed by the authority.
fn make_certificate(directory: &Path, authority: &str, name: &str) {
    std::fs::write(directory.join("names"), format!("subjectAltName={name}")).unwrap();
    let request = ["-newkey", "rsa:2048", "-nodes", "-subj", "/CN=db", "-keyout", "db.key", "-out", "db.csr"];
    openssl(directory, &[&["req"], &request[..]].concat());
    let (certificate, key) = (format!("{authority}.pem"), format!("{authority}.key"));
    let signers = ["-CA", &certificate, "-CAkey", &key, "-CAcreateserial", "-days", "2"];
    let files = ["-in", "db.csr", "-extfile", "names", "-out", "db.pem"];
    openssl(directory, &[&["x509", "-req"], &signers[..], &files[..]].concat());
}

#[tokio::test]
async fn a_function_talks_tls_to_the_server_that_its_authority_vouches_for_and_to_no_other() {
    let Some(server) = start().await else { return };
    for mode in ["require", "verify-ca", "verify-full"] {
        let conn =
            server.connect("localhost", mode, Some("ours")).await.unwrap_or_else(|e| panic!("{mode}: {e:?}"));
        const MINE: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        assert!(conn.query_one(MINE, &[]).await.unwrap().get::<_, bool>(0), "{mode}");

        for (what, authority) in [("another authority", Some("another")), ("the public ones", None)] {
            let why = refusal(server.connect("localhost", mode, authority).await);
            assert!(why.contains("UnknownIssuer"), "{mode}, {what}: {why}");
        }
        let why = refusal(server.connect("127.0.0.1", mode, Some("ours")).await);
        assert!(why.contains("not valid for name"), "{mode}, another name: {why}");
    }
    let why = refusal(server.connect("localhost", "disable", Some("ours")).await);
    assert!(why.contains("no encryption"), "{why}");
    server.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_function_that_wants_tls_does_not_fall_back_to_plain_text() {
    // The cluster of the tests has no TLS.
    let url = cluster_url();
    for mode in ["require", "verify-ca", "verify-full"] {
        let why = refusal(connect(&format!("{url}?sslmode={mode}"), None).await);
        assert!(why.contains("server does not support TLS"), "{mode}: {why}");
    }
}
