//! Integrations of a business unit: how each is set up. All have the same routes over other fields.

mod schema;
mod tests;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::config::{self, HistoryEntry, Integration};
use plumbline_core::page::Page;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::config::HistoryQuery;
use crate::body::{Body, Query};
use crate::caller::Caller;
use crate::etag::{self, IfMatch};
use crate::problem::Problem;
use schema::{described_change, described_view};

macro_rules! integrations {
    ($($module:ident = $integration:ident, $path:literal, $history:literal, $change:literal, $view:literal;)*) => {
        $(mod $module {
            use super::*;

            /// What is changed: the core knows which fields there are, and the document shows them.
            #[derive(Deserialize)]
            #[serde(transparent)]
            pub(super) struct Change(Map<String, Value>);
            described_change!(Change, $change, Integration::$integration);

            /// Only for the document.
            pub(super) struct View;
            described_view!(View, $view, Integration::$integration);

            /// What the unit has set, secrets masked, with its version as `ETag`. Operators read, admins write.
            #[utoipa::path(get, path = $path, tag = "integrations",
                params(("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
                responses(
                    (status = 200, body = View, description = "As it is"),
                    (status = 304, description = "It is as the caller knows it"),
                    (status = 400, description = "No unit is named"),
                ))]
            pub(super) async fn get(
                State(deps): State<Deps>,
                Caller(ctx): Caller,
                headers: HeaderMap,
            ) -> Result<Response, Problem> {
                show(&deps, &ctx, Integration::$integration, &headers).await
            }

            /// Sets fields; those that are absent stay, those that are null go back to their default. Admins only.
            #[utoipa::path(put, path = $path, tag = "integrations", request_body = Change,
                params(("If-Match" = String, Header, description = "The ETag that was edited, or *")),
                responses(
                    (status = 200, body = View, description = "As it is now"),
                    (status = 412, description = "It was changed meanwhile"),
                    (status = 428, description = "If-Match is missing"),
                ))]
            pub(super) async fn update(
                State(deps): State<Deps>,
                Caller(ctx): Caller,
                seen: IfMatch,
                Body(change): Body<Change>,
            ) -> Result<Response, Problem> {
                edit(&deps, &ctx, Integration::$integration, seen, &change.0).await
            }

            /// Sets everything back to its default and takes every secret away. Admins only.
            #[utoipa::path(delete, path = $path, tag = "integrations",
                params(("If-Match" = String, Header, description = "The ETag that was seen, or *")),
                responses(
                    (status = 204, description = "The defaults hold"),
                    (status = 400, description = "No unit is named"),
                    (status = 412, description = "It was changed meanwhile"),
                    (status = 428, description = "If-Match is missing"),
                ))]
            pub(super) async fn delete(
                State(deps): State<Deps>,
                Caller(ctx): Caller,
                seen: IfMatch,
            ) -> Result<StatusCode, Problem> {
                config::service::delete_integration(&deps, &ctx, Integration::$integration, seen.version).await?;
                Ok(StatusCode::NO_CONTENT)
            }

            /// Who changed what, when, and from what to what; of secrets only that they were changed. Operators read.
            #[utoipa::path(get, path = $history, tag = "integrations", params(HistoryQuery), responses(
                (status = 200, body = Page<HistoryEntry>),
                (status = 400, description = "No unit is named"),
            ))]
            pub(super) async fn history(
                State(deps): State<Deps>,
                Caller(ctx): Caller,
                Query(query): Query<HistoryQuery>,
            ) -> Result<Json<Page<HistoryEntry>>, Problem> {
                let page = query.page(&deps);
                let found = config::service::integration_history(&deps, &ctx, Integration::$integration, page);
                Ok(Json(found.await?))
            }

            pub(super) fn routes() -> OpenApiRouter<Deps> {
                OpenApiRouter::new().routes(routes!(get, update, delete)).routes(routes!(history))
            }
        })*

        /// The routes of every integration.
        pub(super) fn routes() -> OpenApiRouter<Deps> {
            tests::routes()$(.merge($module::routes()))*
        }
    };
}

integrations! {
    checkov = CHECKOV, "/integrations/checkov", "/integrations/checkov/history", "CheckovChange", "CheckovView";
    opa = OPA, "/integrations/opa", "/integrations/opa/history", "OpaChange", "OpaView";
    infracost = INFRACOST, "/integrations/infracost", "/integrations/infracost/history", "InfracostChange",
        "InfracostView";
    slack = SLACK, "/integrations/slack", "/integrations/slack/history", "SlackChange", "SlackView";
    smtp = SMTP, "/integrations/smtp", "/integrations/smtp/history", "SmtpChange", "SmtpView";
    webhook = WEBHOOK, "/integrations/webhook", "/integrations/webhook/history", "WebhookChange", "WebhookView";
    infra_repo = INFRA_REPO, "/integrations/infra-repo", "/integrations/infra-repo/history", "InfraRepoChange",
        "InfraRepoView";
    notification = NOTIFICATION, "/integrations/notification", "/integrations/notification/history",
        "NotificationChange", "NotificationView";
}

async fn show(
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let view = config::service::get_integration(deps, ctx, integration).await?;
    etag::respond(headers, &view, Some(view.version))
}

async fn edit(
    deps: &Deps,
    ctx: &Ctx,
    integration: &Integration,
    seen: IfMatch,
    fields: &Map<String, Value>,
) -> Result<Response, Problem> {
    let view = config::service::update_integration(deps, ctx, integration, seen.version, fields).await?;
    etag::respond(&HeaderMap::new(), &view, Some(view.version))
}
