//! Tokens of the installation's own issuer: in files that plan and apply read, fresh whenever they do, and gone with them.

use std::path::Path;

use plumbline_core::protocol::*;
use serde_json::{Value, json};

use super::world::{World, eventually, open_directory};

const PROVIDER: &str = "projects/1/locations/global/workloadIdentityPools/pool/providers/runs";
const RUNNER: &str = "runner@payments-prod.iam.gserviceaccount.com";

/// A stack whose plan reads both tokens, says so, waits until they are renewed, and reads them again.
fn reading(signs: &Path) -> String {
    let signs = signs.display();
    format!(
        r#"resource "terraform_data" "reads" {{
  provisioner "local-exec" {{
    interpreter = ["/bin/bash", "-c"]
    command     = <<-EOT
      azure="$ARM_OIDC_TOKEN_FILE_PATH"
      google="$(sed 's/.*"file":"//; s/".*//' <<< "$GOOGLE_CREDENTIALS")"
      env > {signs}/env
      cat "$azure"; cat "$google"
      cp "$azure" {signs}/azure-1; cp "$google" {signs}/google-1
      touch {signs}/reads
      until [ -e {signs}/renewed ]; do sleep 0.1; done
      cp "$azure" {signs}/azure-2; cp "$google" {signs}/google-2
      cat "$azure"; cat "$google"
      ls "$(dirname "$azure")" > {signs}/files
      chmod a+r {signs}/env {signs}/files {signs}/azure-* {signs}/google-*
    EOT
  }}
}}
"#
    )
}

fn read(signs: &Path, name: &str) -> String {
    std::fs::read_to_string(signs.join(name)).unwrap()
}

#[tokio::test]
async fn tokens_lie_in_files_that_are_renewed_while_the_call_runs_and_are_gone_with_it() {
    let signs = open_directory();
    let mut world = World::with(&[("main.tf", &reading(signs.path()))]);
    let gcp = TokenFile::Gcp { workload_identity_provider: PROVIDER.into(), client_email: RUNNER.into() };
    world.bundle.token_files = vec![TokenFile::Azure, gcp];
    let planned = world.run().await;
    assert_eq!(planned.code, Some(0), "{}", world.executor_log());
    let asked = planned.fake.told().identity_tokens.clone();
    assert_eq!(asked.iter().map(|(wanted, _)| *wanted).collect::<Vec<_>>(), [TokenFor::Azure, TokenFor::Gcp]);

    let running = world.start_apply(&planned);
    eventually("apply reads both", || signs.path().join("reads").exists()).await;
    let of = |wanted: TokenFor| {
        let told = running.fake.told();
        let own = told.identity_tokens.iter().filter(|(whose, _)| *whose == wanted);
        own.map(|(_, token)| token.clone()).collect::<Vec<_>>()
    };
    // One for plan, one for apply, and then another one.
    eventually("both are renewed", || of(TokenFor::Azure).len() >= 4 && of(TokenFor::Gcp).len() >= 4).await;
    std::fs::write(signs.path().join("renewed"), "").unwrap();
    let fake = running.fake.clone();
    let applied = running.finish().await;
    assert!(applied.fake.told().apply_done, "{}", applied.fake.all_logs());

    let tokens = |wanted: TokenFor| {
        let told = fake.told();
        let own = told.identity_tokens.iter().filter(|(whose, _)| *whose == wanted);
        own.map(|(_, token)| token.clone()).collect::<Vec<_>>()
    };
    for (name, wanted) in [("azure", TokenFor::Azure), ("google", TokenFor::Gcp)] {
        let all = tokens(wanted);
        let at = |name: String| all.iter().position(|token| *token == read(signs.path(), &name)).unwrap();
        let (first, second) = (at(format!("{name}-1")), at(format!("{name}-2")));
        assert!(first < second, "{name}: the file holds a newer one, {first} and {second}");
    }
    let files = read(signs.path(), "files");
    assert!(files.lines().all(|file| !file.ends_with(".fresh")) && files.lines().count() == 2, "{files}");
    let environment = read(signs.path(), "env");
    let get = |name: &str| {
        let line = environment.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
        line.to_owned()
    };
    let account: Value = serde_json::from_str(&get("GOOGLE_CREDENTIALS")).unwrap();
    let path = get("ARM_OIDC_TOKEN_FILE_PATH");
    assert!(!Path::new(&path).exists(), "it goes with the call");
    let source = account["credential_source"]["file"].as_str().unwrap().to_owned();
    assert!(source != path && !Path::new(&source).exists());
    let wanted = json!({
        "type": "external_account", "universe_domain": "googleapis.com",
        "audience": format!("//iam.googleapis.com/{PROVIDER}"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "service_account_impersonation_url": format!(
            "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{RUNNER}:generateAccessToken"),
        "credential_source": { "file": source },
    });
    assert_eq!(account, wanted);
    // The provisioner has shown all four of them.
    let logs = applied.fake.all_logs() + &planned.fake.all_logs() + &world.executor_log();
    assert!(logs.contains("(secret)") && !logs.contains("hunter2"), "{logs}");
}

#[tokio::test]
async fn an_attempt_that_gets_no_token_runs_nothing_and_may_be_tried_again() {
    let mut world = World::with(&[("main.tf", "resource \"terraform_data\" \"one\" {}")]);
    world.bundle.token_files = vec![TokenFile::Azure];
    let fake = super::fake_callback::FakeCallback::start(world.bundle.clone()).await;
    fake.refuses_tokens.store(true, std::sync::atomic::Ordering::SeqCst);
    let refused = world.start_against(fake).finish().await;
    let told = refused.fake.told();
    let failed = told.failed.as_ref().expect("a report");
    assert_eq!(failed.kind, FailureKind::Transient, "{failed:?}");
    assert!(failed.error.contains("identity-token was refused"), "{failed:?}");
    assert!(told.plan_done.is_none());
}
