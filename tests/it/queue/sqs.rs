//! Wake-ups over SQS: a small server speaks its JSON protocol, or does not.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_ecs::config::{Credentials, Region};
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use plumbline_core::ports::Waker;
use plumbline_sqs::{BUDGET, SqsWaker, config_loader};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

/// What a loaded machine may add to the budget.
const SLACK: Duration = Duration::from_secs(2);

/// How the queue answers.
#[derive(Clone, Copy, Default)]
enum Mood {
    #[default]
    Fine,
    Missing,
    Throttling,
    Hanging,
}

#[derive(Default)]
struct Queue {
    mood: Mood,
    /// Target and body of every request.
    requests: Vec<(String, Value)>,
}

type Shared = Arc<Mutex<Queue>>;

async fn answer(State(queue): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let mood = {
        let mut queue = queue.lock().unwrap();
        let target = headers["x-amz-target"].to_str().unwrap().to_owned();
        queue.requests.push((target, serde_json::from_str(&body).unwrap()));
        queue.mood
    };
    let refused =
        |kind: &str| (StatusCode::BAD_REQUEST, json!({ "__type": kind, "message": "no" }).to_string());
    match mood {
        Mood::Fine => {
            let md5 = "ae2bb5bfdb71a4cc1ba9f46d69ae9c8b";
            json!({ "MessageId": "m-1", "MD5OfMessageBody": md5 }).to_string().into_response()
        }
        Mood::Missing => refused("com.amazonaws.sqs#QueueDoesNotExist").into_response(),
        // The client is told to come back long after anybody would wait.
        Mood::Throttling => {
            let later = Duration::from_secs(30).as_millis().to_string();
            ([("x-amz-retry-after", later)], refused("com.amazonaws.sqs#RequestThrottled")).into_response()
        }
        Mood::Hanging => std::future::pending().await,
    }
}

async fn waker(endpoint: &str) -> SqsWaker {
    let config = config_loader()
        .credentials_provider(Credentials::new("test", "test", None, None, "a test"))
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .load()
        .await;
    SqsWaker::new(&config, format!("{endpoint}/1/wake"))
}

async fn start() -> (SqsWaker, Shared) {
    let queue = Shared::default();
    let router = Router::new().fallback(answer).with_state(Arc::clone(&queue));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (waker(&url).await, queue)
}

/// What was logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn listen() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    (log, tracing::subscriber::set_default(subscriber))
}

#[tokio::test]
async fn a_wake_up_is_one_message_that_says_nothing() {
    let (waker, queue) = start().await;
    let (log, _listening) = listen();
    for (delay, seconds) in [
        (Duration::ZERO, 0),
        (Duration::from_millis(1500), 2),
        // Longer than SQS takes: the worker comes too early, and asks again.
        (Duration::from_secs(36_000), 900),
    ] {
        waker.wake(delay).await;
        let sent = std::mem::take(&mut queue.lock().unwrap().requests);
        let [(target, body)] = sent.as_slice() else { panic!("one request, not {sent:?}") };
        assert_eq!(target, "AmazonSQS.SendMessage");
        assert!(body["QueueUrl"].as_str().unwrap().ends_with("/1/wake"), "{body}");
        assert_eq!((&body["MessageBody"], &body["DelaySeconds"]), (&json!("wake"), &json!(seconds)));
    }
    assert_eq!(log.take(), "");
}

#[tokio::test]
async fn a_wake_up_that_cannot_be_sent_is_logged_and_nothing_else() {
    let (there, queue) = start().await;
    queue.lock().unwrap().mood = Mood::Missing;
    let (log, _listening) = listen();
    for waker in [there, waker("http://127.0.0.1:9").await] {
        waker.wake(Duration::ZERO).await;
        let said = log.take();
        assert_eq!(said.matches("the sweep finds the work").count(), 1, "{said}");
        assert!(said.contains("WARN"), "{said}");
    }
}

#[tokio::test]
async fn a_queue_that_throttles_or_hangs_holds_nobody_up_for_longer_than_the_budget() {
    for mood in [Mood::Throttling, Mood::Hanging] {
        let (waker, queue) = start().await;
        queue.lock().unwrap().mood = mood;
        let (log, _listening) = listen();
        let asked = Instant::now();
        waker.wake(Duration::ZERO).await;
        let took = asked.elapsed();
        assert!(took < BUDGET + SLACK, "{took:?}");
        let said = log.take();
        assert!(said.contains("a wake-up took too long; the sweep finds the work"), "{said}");
        assert_eq!(queue.lock().unwrap().requests.len(), 1, "there was no time for a second try");
    }
}
