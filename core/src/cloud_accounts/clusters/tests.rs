//! Kubeconfigs that are taken, and those that are not.

use super::Kubeconfig;

const CONFIG: &str = "
apiVersion: v1
kind: Config
preferences: {}
current-context: prod
clusters:
  - name: prod
    cluster:
      server: https://k8s.example.com:6443
      certificate-authority-data: TElORQ==
  - name: dev
    cluster: {server: 'https://dev.example.com'}
contexts:
  - name: prod
    context: {cluster: prod, user: deployer, namespace: web}
users:
  - name: deployer
    user:
      token: hunter2-hunter2
  - name: other
    user: {token: other-token}
";

fn reason(text: &str) -> String {
    Kubeconfig::parse(text, false).expect_err(text).reason
}

#[test]
fn the_current_context_is_kept_and_nothing_else() {
    let kept = Kubeconfig::parse(CONFIG, false).unwrap();
    let json = kept.to_json();
    assert!(json.contains("hunter2-hunter2") && !json.contains("other-token"), "{json}");
    assert_eq!(kept.server_url(), "https://k8s.example.com:6443");
    assert_eq!(kept.token(), Some("hunter2-hunter2"));
    assert!(!format!("{kept:?}").contains("hunter2"));
    assert_eq!(Kubeconfig::from_kept(&json).as_ref(), Some(&kept));
    assert_eq!(
        Kubeconfig::parse(&json, false),
        Ok(kept),
        "JSON is YAML, and reading it again changes nothing"
    );
}

#[test]
fn files_proxies_and_unchecked_servers_are_refused_by_name() {
    let with = |from: &str, to: &str| reason(&CONFIG.replace(from, to));
    let user = "token: hunter2-hunter2";
    for (name, line) in [
        ("tokenFile", "tokenFile: /etc/passwd"),
        ("client-certificate", "client-certificate: x.pem"),
        ("client-key", "client-key: ../x.pem"),
        ("auth-provider", "auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}"),
        ("exec.command", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}"),
        ("exec.args", "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [s3, ls]}"),
    ] {
        assert!(with(user, line).contains(&format!("users[0].user.{name}: ")), "{}", with(user, line));
    }
    let authority = "certificate-authority-data: TElORQ==";
    for (name, line) in [
        ("proxy-url", "proxy-url: http://169.254.169.254"),
        ("certificate-authority", "certificate-authority: /etc/ssl/x"),
        ("insecure-skip-tls-verify", "insecure-skip-tls-verify: true"),
        ("certificate-authority-data", "certificate-authority-data: '***'"),
    ] {
        let why = with(authority, line);
        let alias = why.contains("anchors");
        assert!(alias || why.contains(&format!("clusters[0].cluster.{name}: ")), "{name}: {why}");
    }
    for server in [
        "http://k8s.example.com",
        "https://u:p@k8s.example.com",
        "k8s.example.com",
        "https://k8s.example.com?x",
    ] {
        assert!(with("https://k8s.example.com:6443", server).contains("server: "), "{server}");
    }
    let insecure = CONFIG.replace(authority, "insecure-skip-tls-verify: true");
    let allowed = Kubeconfig::parse(&insecure, true).unwrap();
    assert!(allowed.check_again(false).is_err() && allowed.check_again(true).is_ok());
}

#[test]
fn documents_that_are_several_too_large_or_bombs_are_refused_and_not_repeated() {
    let bomb = format!("a: &a [x,x]\nb: &b [*a,*a]\n{CONFIG}");
    assert!(reason(&bomb).contains("anchors"));
    assert!(reason(&format!("{CONFIG}\n---\n{CONFIG}")).contains("one YAML document"));
    assert!(reason(&format!("{CONFIG}\nkind: Config\n")).contains("duplicate"));
    assert!(reason(&"x".repeat((128 << 10) + 1)).contains("128 KiB"));
    assert!(reason(&format!("{CONFIG}\nmore: hunter2-hunter2\n")).contains("only known fields"));
    assert!(reason(&"[".repeat(100_000)).contains("one YAML document"));
    assert!(reason("hunter2-hunter2").contains("must have"));
    for text in ["", "~", "[]", "hunter2: {", "token: !!binary hunter2", "hunter2: hunter2"] {
        assert!(!reason(text).contains("hunter2"), "{text}");
    }
    for missing in ["current-context: prod", "name: deployer", "apiVersion: v1"] {
        assert!(Kubeconfig::parse(&CONFIG.replace(missing, "name: x"), false).is_err(), "{missing}");
    }
    let twice = CONFIG.replace("name: other", "name: deployer");
    assert!(reason(&twice).contains("one user"));
}
