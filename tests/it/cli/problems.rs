//! What people see when something does not work.

use serde_json::json;

use super::server::{FakeServer, Plumb, Reply};

const RUN: &str = "0190f3c2-0000-7000-8000-0000000000aa";

#[tokio::test]
async fn a_problem_document_becomes_one_sentence_its_facts_and_what_to_do() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let body = json!({ "type": "urn:plumbline:problem:illegal-transition", "title": "Not now", "status": 409,
                       "detail": "A run that is applied cannot be cancelled.", "from": "applied", "to": "cancelled" });
    server.on("POST", &format!("/runs/{RUN}/cancel"), [Reply::status(409, &body)]);

    let ran = plumb.run(&["run", "cancel", RUN]).await;

    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "error: A run that is applied cannot be cancelled.\n  from: applied\n  to: cancelled\n\
         Look at it as it is now (show), then decide again.\n"
    );
    assert_eq!(ran.stdout, "");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_what_to_check() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);

    let ran = Plumb::new(&url).run_with(&["login", "--email", "a@b.c", "--password-stdin"], "x\n").await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains(&format!("{url} cannot be reached")), "{ran:?}");
    assert!(ran.stderr.contains("PLUMB_SERVER"), "{ran:?}");
}

#[tokio::test]
async fn something_else_that_answers_is_not_taken_for_the_server() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", "/me", [Reply::status(404, &json!("<html>nginx</html>"))]);

    let ran = plumb.run(&["whoami"]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("not as a Plumbline server does"), "{ran:?}");
}

#[tokio::test]
async fn a_read_waits_out_a_server_that_is_unavailable_for_a_moment() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let unavailable = Reply::problem(503, "unavailable", "In a moment.").header("retry-after", "1");
    let me = json!({ "email": "ada@example.com" });
    server.on("GET", "/me", [unavailable, Reply::json(&me)]);

    assert_eq!(plumb.run(&["whoami", "--quiet"]).await.code, 0);
}

#[tokio::test]
async fn what_creates_is_repeated_under_one_key_and_what_acts_is_not() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let unavailable = || Reply::problem(503, "unavailable", "In a moment.").header("retry-after", "1");
    let unit = json!({ "id": "0190f3c2-0000-7000-8000-000000000009", "slug": "search", "name": "Search" });
    server.on("POST", "/business-units", [unavailable(), Reply::status(201, &unit)]);
    server.on("POST", &format!("/runs/{RUN}/cancel"), [unavailable()]);

    let created = plumb.run(&["business-unit", "create", "search", "--name", "Search"]).await;
    let cancelled = plumb.run(&["run", "cancel", RUN]).await;

    assert_eq!((created.code, cancelled.code), (0, 1), "{created:?} {cancelled:?}");
    let keys = server.asked("POST", "/business-units");
    assert_eq!(keys.len(), 2);
    assert!(keys[0].header("idempotency-key").is_some());
    assert_eq!(keys[0].header("idempotency-key"), keys[1].header("idempotency-key"));
    assert_eq!(server.asked("POST", &format!("/runs/{RUN}/cancel")).len(), 1);
}

#[tokio::test]
async fn a_repetition_waits_for_the_first_sending_of_its_key() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let unit = json!({ "id": "0190f3c2-0000-7000-8000-000000000009", "slug": "search", "name": "Search" });
    let first = Reply::problem(409, "idempotency-in-progress", "Under way.").header("retry-after", "1");
    server.on("POST", "/business-units", [first, Reply::status(201, &unit)]);

    assert_eq!(plumb.run(&["business-unit", "create", "search"]).await.code, 0);
}

#[tokio::test]
async fn wrong_usage_is_exit_code_2() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    for arguments in [
        &["run", "show", "not-an-id"][..],
        &["run", "plan"],
        &["no-such-command"],
        &["run", "plan", "web", "--skip-apply"],
        &["run", "logs", RUN, "--json"],
        &["workspace", "create", "web"],
    ] {
        let ran = plumb.run(arguments).await;
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "");
    }
}

#[tokio::test]
async fn the_business_unit_goes_with_each_call() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;

    plumb.run(&["whoami", "--business-unit", "search"]).await;

    let asked = server.asked("GET", "/me");
    assert_eq!(asked.last().and_then(|asked| asked.header("x-business-unit")), Some("search"));
}
