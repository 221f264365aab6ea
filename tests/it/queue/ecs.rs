//! Executors as ECS tasks: what is sent, and what follows from the answers. A small server speaks ECS's JSON protocol;
//! with `moto_server` on the PATH, or named by `PLUMBLINE_TEST_MOTO`, the same launcher is also shown to it.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_ecs::config::{Credentials, Region};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::StatusCode;
use plumbline_core::ids::{ExecutorId, TaskId};
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};
use plumbline_ecs::{EcsLauncher, EcsSettings, config_loader};
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Default)]
struct Cluster {
    /// By client token, as ECS does it.
    tasks: BTreeMap<String, Value>,
    requests: Vec<Value>,
    next_answers: Vec<(StatusCode, Value)>,
}

type Shared = Arc<Mutex<Cluster>>;

async fn answer(State(cluster): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let operation = headers["x-amz-target"].to_str().unwrap().rsplit('.').next().unwrap().to_owned();
    let request: Value = serde_json::from_str(&body).unwrap();
    let mut cluster = cluster.lock().unwrap();
    cluster.requests.push(json!({ "operation": operation, "body": body }));
    if let Some((status, answer)) = cluster.next_answers.pop() {
        return (status, Json(answer)).into_response();
    }
    let every = |cluster: &Cluster| cluster.tasks.values().cloned().collect::<Vec<_>>();
    let answer = match operation.as_str() {
        "RunTask" => {
            let token = request["clientToken"].as_str().unwrap().to_owned();
            let arn = format!("arn:aws:ecs:us-east-1:1:task/c/{}", cluster.tasks.len() + 1);
            let task = cluster.tasks.entry(token).or_insert_with(|| {
                json!({ "taskArn": arn, "lastStatus": "RUNNING", "startedBy": request["startedBy"],
                        "tags": request["tags"] })
            });
            json!({ "tasks": [task], "failures": [] })
        }
        "ListTasks" => {
            let arns: Vec<Value> = every(&cluster)
                .into_iter()
                .filter(|task| {
                    task["startedBy"] == request["startedBy"]
                        && task["lastStatus"] == request["desiredStatus"]
                })
                .map(|task| task["taskArn"].clone())
                .collect();
            json!({ "taskArns": arns })
        }
        "DescribeTasks" => {
            let wanted = request["tasks"].as_array().unwrap().clone();
            let tasks: Vec<Value> =
                every(&cluster).into_iter().filter(|task| wanted.contains(&task["taskArn"])).collect();
            json!({ "tasks": tasks, "failures": [] })
        }
        "StopTask" => {
            for task in cluster.tasks.values_mut().filter(|task| task["taskArn"] == request["task"]) {
                task["lastStatus"] = "STOPPED".into();
                task["stoppedReason"] = request["reason"].clone();
                task["containers"] = json!([{ "exitCode": 143 }]);
            }
            json!({})
        }
        other => panic!("the launcher called {other}"),
    };
    Json(answer).into_response()
}

fn settings(endpoint_url: String) -> EcsSettings {
    EcsSettings {
        cluster: "plumbline".into(),
        task_definition: "executor".into(),
        container: "executor".into(),
        subnets: vec!["subnet-1".into()],
        security_groups: vec!["sg-1".into()],
        endpoint_url: Some(endpoint_url),
    }
}

async fn launcher(settings: EcsSettings) -> EcsLauncher {
    let config = config_loader()
        .credentials_provider(Credentials::new("test", "test", None, None, "a test"))
        .region(Region::new("us-east-1"))
        .load()
        .await;
    EcsLauncher::new(&config, settings)
}

async fn start() -> (EcsLauncher, Shared) {
    let cluster = Shared::default();
    let router = Router::new().fallback(answer).with_state(Arc::clone(&cluster));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (launcher(settings(url)).await, cluster)
}

fn request(lease_token: i64) -> LaunchRequest {
    LaunchRequest {
        executor_id: ExecutorId(Uuid::from_u128(1)),
        task_id: TaskId(Uuid::from_u128(2)),
        lease_token,
        callback_url: "https://plumbline.test".into(),
        ticket: "f".repeat(64),
    }
}

#[tokio::test]
async fn a_launch_tried_again_has_the_same_bytes_and_starts_one_task() {
    let (launcher, cluster) = start().await;
    let first = launcher.launch(&request(7)).await.unwrap();
    let again = launcher.launch(&request(7)).await.unwrap();
    assert_eq!(first, again);
    assert_ne!(launcher.launch(&request(8)).await.unwrap(), first, "another attempt is another task");

    let sent: Vec<String> = cluster
        .lock()
        .unwrap()
        .requests
        .iter()
        .map(|request| request["body"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sent[0], sent[1]);
    let body: Value = serde_json::from_str(&sent[0]).unwrap();
    assert_eq!(body["startedBy"], json!(request(7).task_id));
    let token = body["clientToken"].as_str().unwrap();
    assert!(token.len() <= 64 && token.is_ascii(), "{token}");
    assert_eq!(token, format!("{}:7", request(7).task_id));
    assert!(body["overrides"].to_string().len() < 2048);
    let names: Vec<_> = body["overrides"]["containerOverrides"][0]["environment"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["PLUMBLINE_TASK_ID", "PLUMBLINE_CALLBACK_URL", "PLUMBLINE_TICKET"]);
    assert_eq!(body["networkConfiguration"]["awsvpcConfiguration"]["assignPublicIp"], "DISABLED");
}

#[tokio::test]
async fn an_unrecorded_launch_is_found_by_its_attempt() {
    let (launcher, _cluster) = start().await;
    assert_eq!(launcher.find(request(7).task_id, 7).await.unwrap(), None);
    let handle = launcher.launch(&request(7)).await.unwrap();
    assert_eq!(launcher.find(request(7).task_id, 7).await.unwrap(), Some(handle.clone()));
    assert_eq!(launcher.find(request(7).task_id, 8).await.unwrap(), None);
    launcher.stop(&handle, "enough").await.unwrap();
    assert_eq!(launcher.find(request(7).task_id, 7).await.unwrap(), Some(handle), "a stopped one, too");
}

#[tokio::test]
async fn fates_come_in_order_and_an_unknown_task_has_not_stopped() {
    let (launcher, _cluster) = start().await;
    let running = launcher.launch(&request(1)).await.unwrap();
    let stopped = launcher.launch(&request(2)).await.unwrap();
    launcher.stop(&stopped, "its task was cancelled").await.unwrap();
    let fates = launcher.describe(&[stopped, "arn:aws:ecs:us-east-1:1:task/c/404".into(), running]).await;
    let reason = "its task was cancelled (exit code 143)".into();
    let expected = [ExecutorFate::Stopped { reason }, ExecutorFate::Unknown, ExecutorFate::Running];
    assert_eq!(fates.unwrap(), expected);
    assert!(launcher.describe(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_ecs_refuses_is_sorted_by_what_follows() {
    let (launcher, cluster) = start().await;
    let failed = |reason: &str| (StatusCode::OK, json!({ "tasks": [], "failures": [{ "reason": reason }] }));
    let refused =
        |kind: &str, message: &str| (StatusCode::BAD_REQUEST, json!({ "__type": kind, "message": message }));
    let limit = "You've reached the limit on the number of tasks you can run concurrently";
    for (answer, expected) in [
        (failed("RESOURCE:MEMORY"), "unavailable"),
        (failed("Capacity is unavailable at this time"), "unavailable"),
        (failed(limit), "throttled"),
        (failed("MISSING"), "refused"),
        (refused("ClientException", "TaskDefinition not found"), "refused"),
        (refused("ClientException", limit), "throttled"),
        (refused("ClusterNotFoundException", "no"), "refused"),
    ] {
        cluster.lock().unwrap().next_answers = vec![answer.clone()];
        let word = match launcher.launch(&request(1)).await {
            Err(LaunchError::Throttled(_)) => "throttled",
            Err(LaunchError::Unavailable(_)) => "unavailable",
            Err(LaunchError::Refused(_)) => "refused",
            Ok(_) => "launched",
        };
        assert_eq!(word, expected, "{answer:?}");
    }
    // Tried again by the client itself, then reported.
    let throttle = refused("ThrottlingException", "Rate exceeded");
    cluster.lock().unwrap().next_answers = vec![throttle; 9];
    assert!(matches!(launcher.launch(&request(1)).await, Err(LaunchError::Throttled(_))));
    cluster.lock().unwrap().next_answers.clear();
    assert!(launcher.launch(&request(1)).await.is_ok());
}

#[tokio::test]
async fn an_ecs_that_is_away_is_unavailable() {
    let launcher = launcher(settings("http://127.0.0.1:9".into())).await;
    assert!(matches!(launcher.launch(&request(1)).await, Err(LaunchError::Unavailable(_))));
}

/// Ends the server with the test.
struct Moto(Child);

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn moto() -> Option<(Moto, String)> {
    let program = std::env::var("PLUMBLINE_TEST_MOTO").unwrap_or_else(|_| "moto_server".into());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new(&program)
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        eprintln!("skipped: {program} (PyPI: moto[server]) was not found");
        return None;
    };
    let moto = Moto(child);
    let url = format!("http://127.0.0.1:{port}");
    for _ in 0..600 {
        if reqwest::get(format!("{url}/moto-api/")).await.is_ok() {
            return Some((moto, url));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("moto did not start");
}

/// One call as AWS's tools would send it; moto looks at the service in the credential only.
async fn aws(url: &str, service: &str, target: Option<&str>, body: String) -> String {
    let credential = format!("AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/{service}/aws4_request");
    let kind =
        if target.is_some() { "application/x-amz-json-1.1" } else { "application/x-www-form-urlencoded" };
    let mut call = reqwest::Client::new()
        .post(url)
        .header("authorization", credential + ", SignedHeaders=host, Signature=0")
        .header("content-type", kind)
        .body(body);
    if let Some(target) = target {
        call = call.header("x-amz-target", format!("AmazonEC2ContainerServiceV20141113.{target}"));
    }
    let answer = call.send().await.unwrap();
    assert!(answer.status().is_success(), "{service} {target:?}: {}", answer.status());
    answer.text().await.unwrap()
}

fn first_tag(xml: &str, tag: &str) -> String {
    let rest = xml.split(&format!("<{tag}>")).nth(1).unwrap();
    rest.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn moto_accepts_launches_and_tells_their_fates() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some((_moto, url)) = moto().await else { return };
    aws(&url, "ecs", Some("CreateCluster"), json!({ "clusterName": "plumbline" }).to_string()).await;
    let definition = json!({ "family": "executor", "networkMode": "awsvpc", "cpu": "256", "memory": "512",
        "requiresCompatibilities": ["FARGATE"],
        "containerDefinitions": [{ "name": "executor", "image": "executor", "memory": 512 }] });
    aws(&url, "ecs", Some("RegisterTaskDefinition"), definition.to_string()).await;
    let ask = |action: &str| format!("Action={action}&Version=2016-11-15");
    let subnets = aws(&url, "ec2", None, ask("DescribeSubnets")).await;
    let groups = aws(&url, "ec2", None, ask("DescribeSecurityGroups")).await;
    let settings = EcsSettings {
        subnets: vec![first_tag(&subnets, "subnetId")],
        security_groups: vec![first_tag(&groups, "groupId")],
        ..settings(url)
    };
    let launcher = launcher(settings).await;

    let handle = launcher.launch(&request(3)).await.unwrap();
    assert!(handle.starts_with("arn:aws:ecs:"), "{handle}");
    assert_eq!(launcher.find(request(3).task_id, 3).await.unwrap(), Some(handle.clone()));
    assert_eq!(launcher.find(request(3).task_id, 4).await.unwrap(), None);
    launcher.stop(&handle, "enough").await.unwrap();
    for _ in 0..20 {
        let fates = launcher.describe(std::slice::from_ref(&handle)).await.unwrap();
        if matches!(fates[0], ExecutorFate::Stopped { .. }) {
            return;
        }
    }
    panic!("the task never stopped");
}
