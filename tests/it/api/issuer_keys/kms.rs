//! Keys of a KMS that sign in place of our own.

use http::StatusCode;
use plumbline_core::executors;
use plumbline_core::issuer_keys::{IssuerError, tokens};
use plumbline_core::limits::Limits;
use plumbline_core::ports::SignerError;
use plumbline_core::protocol::TokenFor;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::{AUDIENCE, fetch, token_of, trusting_world, verify};
use crate::executors::FakeExecutor;
use crate::plane::{ADMIN_EMAIL, slug};
use crate::store::fake_kms::{FakeKms, rsa_name};
use crate::world::World;

const KEYS: &str = "/api/v1/auth/issuer-keys";

/// Its issuer signs with the keys of this KMS.
async fn world_with(kms: &FakeKms) -> World {
    let mut world = trusting_world().await;
    world.plane.deps.issuer_signers = kms.named_signers();
    world
}

async fn rotate(world: &World, at_once: bool) -> (StatusCode, Value) {
    world.plane.admin_token().await;
    let superadmin = world.plane.login(ADMIN_EMAIL).await;
    let (status, _, body) = world.plane.call("POST", KEYS, &*superadmin, json!({ "at_once": at_once })).await;
    (status, body)
}

#[tokio::test]
async fn keys_of_a_kms_sign_one_after_the_other_and_nothing_secret_is_stored() {
    let kms = FakeKms::start_rsa(2).await;
    let world = world_with(&kms).await;
    let issuer = world.plane.deps.public_url.to_string();
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let first = token_of(&executor).await;
    verify(&issuer, &first, AUDIENCE).await.unwrap();
    let keys = fetch(&format!("{issuer}/.well-known/jwks.json")).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2, "the next one is published: {keys}");
    let rows = world.plane.every_row().await["issuer_keys"].clone();
    assert!(!rows.contains(":gAAAA") && rows.contains(&rsa_name(0)) && rows.contains(&rsa_name(1)), "{rows}");

    world.plane.advance(Limits::default().issuer_key_lead).await;
    let (status, rotated) = rotate(&world, false).await;
    assert_eq!(
        (status, &rotated["signing"]["kms_key"]),
        (StatusCode::CREATED, &json!(rsa_name(1))),
        "{rotated}"
    );
    world.trigger("plan").await;
    let second = token_of(&FakeExecutor::start(&world.plane).await).await;
    for token in [&first, &second] {
        verify(&issuer, token, AUDIENCE).await.unwrap();
    }
    let kid = |token: &str| jsonwebtoken::decode_header(token).unwrap().kid.unwrap();
    assert_ne!(kid(&first), kid(&second));

    // No third key is named: there is no next one until somebody names it.
    let (status, refused) = rotate(&world, false).await;
    assert_eq!((status, slug(&refused)), (StatusCode::CONFLICT, "issuer-key-not-ready"));
    assert!(refused["detail"].as_str().unwrap().contains("PLUMBLINE_ISSUER_KMS_KEYS"), "{refused}");
    let created = world.plane.login(ADMIN_EMAIL).await;
    let path = "/api/v1/audit?action=issuer_key.create";
    let (_, _, log) =
        world.plane.call_with("GET", path, &*created, None, &[("x-business-unit", "all")]).await;
    let named: Vec<&Value> =
        log["items"].as_array().unwrap().iter().map(|entry| &entry["details"]["kms_key"]).collect();
    assert_eq!(named, [&json!(rsa_name(1)), &json!(rsa_name(0))]);
}

/// Asks the use case: the route would answer with a 5xx, which the played executor takes for a defect.
async fn issue(world: &World, executor: &FakeExecutor<'_>) -> Result<(), IssuerError> {
    let deps = world.plane.as_function(Function::Callback);
    let caller = executors::service::authenticate(&deps, &executor.bundle.token).await.unwrap();
    tokens::issue(&deps, &caller, TokenFor::Aws).await.map(drop)
}

#[tokio::test]
async fn without_its_kms_there_is_no_token_and_no_entry_of_one() {
    let kms = FakeKms::start_rsa(1).await;
    let mut world = world_with(&kms).await;
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    drop(token_of(&executor).await);
    let (launch, bundle) = (executor.launch.clone(), executor.bundle.clone());
    let issued = async |world: &World| {
        let (_, log) = world.get("audit?action=identity_token.issue").await;
        log["items"].as_array().unwrap().len()
    };
    kms.answer(Some((StatusCode::SERVICE_UNAVAILABLE, json!({}))));
    let away = issue(&world, &executor).await;
    assert!(matches!(away, Err(IssuerError::Signer(SignerError::Unavailable(_)))), "{away:?}");
    kms.answer(Some((StatusCode::BAD_REQUEST, json!({ "__type": "DisabledException" }))));
    let refused = issue(&world, &executor).await;
    assert!(matches!(refused, Err(IssuerError::Signer(SignerError::Refused(_)))), "{refused:?}");
    kms.answer(None);

    // Its name was taken away from the settings: nothing else signs in its place.
    world.plane.deps.issuer_signers = std::sync::Arc::new([]);
    let executor = FakeExecutor::traded(&world.plane, launch.clone(), bundle.clone());
    let gone = issue(&world, &executor).await;
    assert!(matches!(gone, Err(IssuerError::Unusable(why)) if why.contains("KMS")), "{gone:?}");
    assert_eq!(issued(&world).await, 1, "only the first");
}
