//! Two processes of every function in this one, each with connections and an object store of its own.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use plumbline_core::Deps;
use plumbline_core::adapters::DirectoryStore;
use plumbline_runtime::Function;
use tower::ServiceExt as _;

use super::chronicle::Chronicle;
use super::store::TroubledStore;
use crate::plane::TestPlane;
use crate::plane::roles::pool_as;

/// A request that can be sent more than once.
#[derive(Clone, Debug)]
pub struct Draft {
    pub method: &'static str,
    pub uri: String,
    pub authorization: String,
    pub content_md5: Option<String>,
    pub body: Bytes,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub location: Option<String>,
    pub body: Bytes,
}

/// One process.
pub struct Server {
    pub store: Arc<TroubledStore>,
    pub reconciler: Deps,
    routers: BTreeMap<Function, Router>,
}

const CONNECTIONS: [(Function, usize); 4] =
    [(Function::Tfstate, 4), (Function::Callback, 3), (Function::Api, 2), (Function::Reconciler, 2)];

impl Server {
    pub fn start(plane: &TestPlane, objects: &DirectoryStore, chronicle: &Arc<Chronicle>) -> Self {
        let store = Arc::new(TroubledStore::new(objects.clone(), chronicle.clone()));
        let deps = |(function, connections): (Function, usize)| {
            let own = Deps {
                db: pool_as(&plane.database_url, function.role(), connections),
                keys: Arc::new(function.keys(&plane.deps.keys)),
                blobs: store.clone(),
                ..plane.deps.clone()
            };
            (function, own)
        };
        let deps: BTreeMap<Function, Deps> = CONNECTIONS.map(deps).into();
        let routers = [
            (Function::Tfstate, plumbline_tfstate::router(deps[&Function::Tfstate].clone())),
            (Function::Callback, plumbline_callback::router(deps[&Function::Callback].clone())),
            (Function::Api, plumbline_api::router(deps[&Function::Api].clone())),
        ];
        Self { reconciler: deps[&Function::Reconciler].clone(), store, routers: routers.into() }
    }

    /// Answers a request.
    pub async fn call(&self, draft: &Draft) -> Reply {
        let function = if draft.uri.starts_with("/executor/") {
            Function::Callback
        } else if draft.uri.starts_with("/api/v1/state/") {
            Function::Tfstate
        } else {
            Function::Api
        };
        let mut request = Request::builder()
            .method(draft.method)
            .uri(&draft.uri)
            .header("authorization", &draft.authorization)
            .header("content-type", "application/json");
        if let Some(md5) = &draft.content_md5 {
            request = request.header("content-md5", md5);
        }
        let request = request.body(Body::from(draft.body.clone())).unwrap();
        let (parts, body) = self.routers[&function].clone().oneshot(request).await.unwrap().into_parts();
        let location = parts.headers.get("location").map(|value| value.to_str().unwrap().to_owned());
        Reply { status: parts.status.as_u16(), location, body: body.collect().await.unwrap().to_bytes() }
    }
}

/// What comes of a future that is dropped after so many wake-ups: nothing, if it is not ready by then.
pub async fn cut<T>(future: impl Future<Output = T>, wakes: u8) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = wakes;
    poll_fn(move |context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}
