//! What an answer on the wire means.

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::StateUploadAnswer;
use serde_json::Value;

use super::history::{Answer, Operation, Written};
use super::servers::Reply;
use crate::plane::slug;

/// The answer to an operation.
pub fn interpret(operation: &Operation, reply: &Reply) -> Answer {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
    let mut answer = Answer { status: reply.status, slug: slug(&body).to_owned(), ..Answer::default() };
    let id = |field: &str| body[field].as_str().and_then(|text| text.parse().ok());
    match (operation, reply.status) {
        (Operation::Read, 200) => answer.state = written(&reply.body),
        (Operation::Lock { .. } | Operation::Write { .. }, 423) => {
            answer.holder = body["ID"].as_str().map(str::to_owned);
        }
        (Operation::Rollback { .. } | Operation::Promote { .. }, 423) => {
            let holder: Value =
                serde_json::from_str(body["holder"].as_str().unwrap_or_default()).unwrap_or_default();
            answer.holder = holder["ID"].as_str().map(str::to_owned);
        }
        (Operation::View, 200) => answer.holder = body["lock_id"].as_str().map(str::to_owned),
        (Operation::Begin { .. }, 200) => answer.id = begun(reply).map(|begun| begun.upload_id.0),
        (Operation::Commit { .. }, 200) => answer.slug = body.as_str().unwrap_or_default().to_owned(),
        (Operation::Rollback { .. } | Operation::Promote { .. }, 200 | 201) => {
            answer.id = id("id");
            answer.state = Some(Written {
                serial: body["serial"].as_i64().unwrap_or(-1),
                lineage: body["lineage"].as_str().unwrap_or_default().to_owned(),
                sha256: body["sha256"].as_str().unwrap_or_default().to_owned(),
            });
        }
        (Operation::Write { .. }, 409) => answer.id = id("quarantined_state_id"),
        _ => {}
    }
    answer
}

/// What a state says about itself.
pub fn written(body: &[u8]) -> Option<Written> {
    let state: Value = serde_json::from_slice(body).ok()?;
    Some(Written {
        serial: state["serial"].as_i64()?,
        lineage: state["lineage"].as_str()?.to_owned(),
        sha256: Sha256Digest::of(body).to_string(),
    })
}

/// The upload that was begun.
pub fn begun(reply: &Reply) -> Option<StateUploadAnswer> {
    serde_json::from_slice(&reply.body).ok().filter(|_| reply.status == 200)
}
