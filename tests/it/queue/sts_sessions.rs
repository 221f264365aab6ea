//! What AWS is asked for with keys at hand: who they are, the session of a role, the token of a cluster. Signatures are
//! compared with AWS's own signer; with `PLUMBLINE_TEST_MOTO` the same calls are also shown to moto.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_ecs::config::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use base64::Engine as _;
use chrono::Utc;
use plumbline_core::protocol::{AwsKeys, AwsRole};
use plumbline_sts::{Caller, Sts, StsError, eks_token};

use crate::fake_sts::{FakeSts, Principal, REGION};
use crate::moto;

const USER: &str = "arn:aws:iam::123456789012:user/plumbline";
const ROLE: &str = "arn:aws:iam::123456789012:role/plumbline/plan";

fn keys(principal: &Principal) -> AwsKeys {
    AwsKeys {
        access_key_id: principal.keys.access_key_id().into(),
        secret_access_key: principal.keys.secret_access_key().into(),
        session_token: principal.keys.session_token().map(str::to_owned),
    }
}

fn role() -> AwsRole {
    AwsRole {
        role_arn: ROLE.into(),
        external_id: "plumbline-1".into(),
        session_name: "plumbline-run".into(),
        duration_seconds: 900,
        session_policy: Some(r#"{"Version": "2012-10-17", "Statement": []}"#.into()),
        tags: BTreeMap::from([("plumbline:unit".into(), "blue & green".into())]),
    }
}

#[tokio::test]
async fn keys_are_whoever_aws_says_and_open_the_roles_that_trust_them() {
    let fake = FakeSts::start().await;
    let user = fake.user(USER);
    fake.role(ROLE, USER, Some("plumbline-1"));
    let sts = Sts::new(REGION, Some(&fake.url)).unwrap();
    let caller = sts.caller(&keys(&user), Utc::now()).await.unwrap();
    assert_eq!(caller, Caller { account: "123456789012".into(), arn: USER.into() });

    let session = sts.assume(&keys(&user), Utc::now(), &role()).await.unwrap();
    assert_eq!(session.arn, "arn:aws:sts::123456789012:assumed-role/plumbline/plan/plumbline-run");
    assert_eq!(fake.sessions()[0].tags, role().tags);
    // The session's own keys sign, too: with a token.
    assert_eq!(sts.caller(&session.keys, Utc::now()).await.unwrap().arn, session.arn);

    let other = AwsRole { external_id: "plumbline-2".into(), ..role() };
    let refused = sts.assume(&keys(&user), Utc::now(), &other).await.unwrap_err();
    assert!(matches!(&refused, StsError::Refused(why) if why.contains("AccessDenied")), "{refused}");
    let mut wrong = keys(&user);
    wrong.secret_access_key.push('x');
    let refused = sts.caller(&wrong, Utc::now()).await.unwrap_err();
    assert!(refused.to_string().contains("SignatureDoesNotMatch") && !refused.to_string().contains("secret"));
    let nowhere = Sts::new(REGION, Some("http://127.0.0.1:1")).unwrap();
    assert!(matches!(nowhere.caller(&keys(&user), Utc::now()).await, Err(StsError::Unavailable(_))));
}

#[test]
fn the_token_of_a_cluster_is_what_awss_own_signer_makes() {
    for token in [None, Some("token/of+a session==".to_owned())] {
        let at = Utc::now();
        let keys = AwsKeys {
            access_key_id: "ASIA0123456789ABCDEF".into(),
            secret_access_key: "a secret/of+somebody".into(),
            session_token: token.clone(),
        };
        let made = eks_token(&keys, REGION, "prod-1", at);
        let url = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(made.strip_prefix("k8s-aws-v1.").unwrap())
            .unwrap();
        let url = url::Url::parse(&String::from_utf8(url).unwrap()).unwrap();
        let parameters: BTreeMap<String, String> = url.query_pairs().into_owned().collect();

        let identity =
            Credentials::new(&keys.access_key_id, &keys.secret_access_key, token, None, "a test").into();
        let mut settings = SigningSettings::default();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(Duration::from_secs(60));
        let params = SigningParams::builder()
            .identity(&identity)
            .region(REGION)
            .name("sts")
            .time(at.into())
            .settings(settings)
            .build()
            .unwrap()
            .into();
        let asked =
            format!("https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15");
        let headers = [("x-k8s-aws-id", "prod-1")];
        let request =
            SignableRequest::new("GET", &asked, headers.into_iter(), SignableBody::Bytes(b"")).unwrap();
        let (instructions, _) = sign(request, &params).unwrap().into_parts();
        for (name, value) in instructions.params() {
            assert_eq!(parameters.get(*name).map(String::as_str), Some(value.as_ref()), "{name}");
        }
        assert!(instructions.params().len() >= 6);
    }
}

#[tokio::test]
async fn moto_gives_a_session_and_knows_it_again() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some((_moto, url)) = moto::start().await else { return };
    let sts = Sts::new(REGION, Some(&url)).unwrap();
    let user = AwsKeys {
        access_key_id: "AKIA0123456789ABCDEF".into(),
        secret_access_key: "anything".into(),
        session_token: None,
    };
    let session = sts.assume(&user, Utc::now(), &role()).await.unwrap();
    assert!(session.arn.ends_with("/plumbline-run") && session.keys.session_token.is_some());
    let caller = sts.caller(&session.keys, Utc::now()).await.unwrap();
    assert_eq!(caller.arn, session.arn);
}
