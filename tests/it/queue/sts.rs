//! Who an executor on ECS is: what its signature proves, and what the control plane makes of STS's answers. The small STS
//! of `fake_sts` checks signatures; with `PLUMBLINE_TEST_MOTO` the same call is also shown to moto, which does not.

use std::time::Duration;

use aws_sdk_ecs::config::Credentials;
use chrono::Utc;
use http::StatusCode;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{CallerArn, CallerIdentity as _, IdentityError};
use plumbline_core::protocol::IdentityProof;
use plumbline_sts::StsCallers;

use crate::fake_sts::{Canned, FakeSts, HOST, Principal, REGION};
use crate::moto;

const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
const CONTENT_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";
const TICKET: &str = "a ticket that was made for this task";
const ARN: &str = "arn:aws:sts::123456789012:assumed-role/executor/0123456789abcdef";

fn digest(ticket: &str) -> Sha256Digest {
    Sha256Digest::of(ticket.as_bytes())
}

async fn proof(principal: &Principal) -> IdentityProof {
    principal.sign_in().await.prove(TICKET, Utc::now())
}

/// The reason of a refusal.
async fn refusal(callers: &StsCallers, proof: &IdentityProof, ticket: &str) -> String {
    match callers.identify(proof, digest(ticket)).await {
        Err(IdentityError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_proof_names_whoever_signed_it_and_is_good_for_its_ticket_alone() {
    let sts = FakeSts::start().await;
    let callers = sts.callers();
    let proof = proof(&sts.principal(ARN)).await;
    assert_eq!(callers.identify(&proof, digest(TICKET)).await, Ok(CallerArn(ARN.into())));
    let why = refusal(&callers, &proof, "another ticket").await;
    assert!(why.contains("SignatureDoesNotMatch"), "{why}");
}

#[tokio::test]
async fn a_proof_that_was_changed_or_is_old_is_refused() {
    let sts = FakeSts::start().await;
    let callers = sts.callers();
    let (own, other) = (sts.principal(ARN), sts.principal("arn:aws:sts::1:assumed-role/executor/other"));
    let (whole, foreign) = (proof(&own).await, proof(&other).await);
    let now = Utc::now();
    let credentials = own.sign_in().await;
    let old = |minutes| credentials.prove(TICKET, now - chrono::TimeDelta::minutes(minutes));
    let end = whole.authorization.len() - 1;
    let flipped = if whole.authorization.ends_with('0') { "1" } else { "0" };
    let changed_signature = [&whole.authorization[..end], flipped].concat();
    let changed_key = whole.authorization.replace(own.keys.access_key_id(), other.keys.access_key_id());
    let elsewhere = whole.authorization.replace(REGION, "us-east-1");
    for (name, changed, code) in [
        ("signature", with(&whole, |proof| proof.authorization = changed_signature), "SignatureDoesNotMatch"),
        ("key", with(&whole, |proof| proof.authorization = changed_key), "InvalidClientTokenId"),
        ("region", with(&whole, |proof| proof.authorization = elsewhere), "SignatureDoesNotMatch"),
        ("date", with(&whole, |proof| proof.date = old(1).date), "SignatureDoesNotMatch"),
        (
            "token",
            with(&whole, |proof| proof.security_token = foreign.security_token),
            "InvalidClientTokenId",
        ),
        ("an old one", old(60), "RequestExpired"),
    ] {
        let why = refusal(&callers, &changed, TICKET).await;
        assert!(why.contains(code), "{name}: {why}");
    }
    assert!(callers.identify(&whole, digest(TICKET)).await.is_ok(), "it was good all the time");
}

fn with(proof: &IdentityProof, change: impl FnOnce(&mut IdentityProof)) -> IdentityProof {
    let mut proof = proof.clone();
    change(&mut proof);
    proof
}

#[tokio::test]
async fn a_signature_over_fewer_headers_is_refused_although_sts_would_take_it() {
    let sts = FakeSts::start().await;
    let principal = sts.principal(ARN);
    // As somebody makes it who logs in to another server with a proof of this kind.
    let at = Utc::now();
    let signed = [("host", HOST), ("content-type", CONTENT_TYPE)];
    let authorization = principal.sign(&signed, BODY, at.into(), REGION);
    assert!(!authorization.contains("x-plumbline-ticket"), "{authorization}");
    let date = at.format("%Y%m%dT%H%M%SZ").to_string();
    let security_token = principal.keys.session_token().unwrap().to_owned();
    let answer = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .post(&sts.url)
        .header("host", HOST)
        .header("content-type", CONTENT_TYPE)
        .header("authorization", &authorization)
        .header("x-amz-date", &date)
        .header("x-amz-security-token", &security_token)
        .header("x-plumbline-ticket", digest(TICKET).to_string())
        .body(BODY)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "STS does not look at a header that is not signed");
    let asked = sts.requests();

    let proof = IdentityProof { authorization, date, security_token };
    let why = refusal(&sts.callers(), &proof, TICKET).await;
    assert!(why.contains("headers that must be signed"), "{why}");
    assert_eq!(sts.requests(), asked, "STS is not even asked");
}

#[tokio::test]
async fn garbage_is_refused_without_asking() {
    let sts = FakeSts::start().await;
    let callers = sts.callers();
    let whole = proof(&sts.principal(ARN)).await;
    let authorization = |text: String| with(&whole, |proof| proof.authorization = text);
    let all = whole.authorization.as_str();
    for garbage in [
        authorization(String::new()),
        authorization("Bearer x".into()),
        authorization(all.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")),
        authorization(all.replace(";x-plumbline-ticket", "")),
        authorization(all.replace("content-type;host", "content-type")),
        authorization(all.replace("SignedHeaders=", "SignedHeaders=x-evil;")),
        authorization(all.replace(", SignedHeaders", ", SignedHeaders=host, SignedHeaders")),
        authorization(format!("{all}0")),
        authorization(format!("{all}, x=y")),
        authorization(all.replace("Credential=", "Credential=\r\nx-evil: 1")),
        with(&whole, |proof| proof.date = "now\nx-evil: 1".into()),
        with(&whole, |proof| proof.date = String::new()),
        with(&whole, |proof| proof.security_token = String::new()),
        with(&whole, |proof| proof.security_token = "ü".into()),
        with(&whole, |proof| proof.security_token = "x".repeat(1 << 20)),
    ] {
        refusal(&callers, &garbage, TICKET).await;
    }
    assert_eq!(sts.requests(), 0);
}

#[tokio::test]
async fn an_sts_that_is_away_sends_us_elsewhere_or_babbles_is_no_judgement() {
    let sts = FakeSts::start().await;
    let elsewhere = FakeSts::start().await;
    let callers = sts.callers();
    let principal = sts.principal(ARN);
    let proof = proof(&principal).await;
    let canned = |status: u16, body: &str| Canned {
        status: StatusCode::from_u16(status).unwrap(),
        location: None,
        body: body.into(),
    };
    let redirect = |status| Canned { location: Some(elsewhere.url.clone()), ..canned(status, "") };
    let throttled = "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>";
    for (name, answer) in [
        ("another place", redirect(301)),
        ("another place for the same request", redirect(307)),
        ("its own fault", canned(500, "")),
        ("throttling", canned(400, throttled)),
        ("no XML", canned(200, "welcome to the internet")),
        ("another action", canned(200, "<AssumeRoleResult><Arn>arn</Arn></AssumeRoleResult>")),
        ("no end", canned(200, &"x".repeat(1 << 20))),
    ] {
        sts.answer(Some(answer));
        let identified = callers.identify(&proof, digest(TICKET)).await;
        assert!(matches!(identified, Err(IdentityError::Unavailable(_))), "{name}: {identified:?}");
    }
    assert_eq!(elsewhere.requests(), 0, "a signature is not shown to whoever STS names");
    sts.answer(None);
    assert!(callers.identify(&proof, digest(TICKET)).await.is_ok());

    let nobody = StsCallers::new(REGION, Some("http://127.0.0.1:9")).unwrap();
    let identified = nobody.identify(&proof, digest(TICKET)).await;
    assert!(matches!(identified, Err(IdentityError::Unavailable(_))), "{identified:?}");
}

#[tokio::test]
async fn an_sts_that_does_not_answer_is_given_up_within_seconds() {
    let sts = FakeSts::start().await;
    let proof = proof(&sts.principal(ARN)).await;
    sts.hold().await;
    let callers = sts.callers();
    let asked = callers.identify(&proof, digest(TICKET));
    let identified = tokio::time::timeout(Duration::from_secs(30), asked).await.expect("it gives up");
    assert!(matches!(identified, Err(IdentityError::Unavailable(_))), "{identified:?}");
}

/// The text of an element.
fn element(xml: &str, name: &str) -> String {
    let (_, rest) = xml.split_once(&format!("<{name}>")).expect(name);
    rest.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn moto_names_the_session_of_an_assumed_role() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some((_moto, url)) = moto::start().await else { return };
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let assume = "Action=AssumeRole&Version=2011-06-15&RoleSessionName=0123456789abcdef\
                  &RoleArn=arn:aws:iam::123456789012:role/executor";
    let credential = format!("AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/sts/aws4_request");
    let answer = http
        .post(&url)
        .header("authorization", credential + ", SignedHeaders=host, Signature=0")
        .header("content-type", CONTENT_TYPE)
        .body(assume)
        .send()
        .await
        .unwrap();
    let assumed = answer.text().await.unwrap();
    // An agent hands those credentials out.
    let sts = FakeSts::start().await;
    let named = |name| element(&assumed, name);
    let (key_id, secret, token) = (named("AccessKeyId"), named("SecretAccessKey"), named("SessionToken"));
    let keys = Credentials::new(key_id, secret, Some(token), None, "moto");
    let proof = proof(&sts.principal_with(keys, ARN)).await;

    let callers = StsCallers::new(REGION, Some(&url)).unwrap();
    assert_eq!(callers.identify(&proof, digest(TICKET)).await, Ok(CallerArn(ARN.into())));
}
