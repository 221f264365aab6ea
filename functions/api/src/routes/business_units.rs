//! Business units.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::business_units::{self, BusinessUnitChange, BusinessUnitView, NewBusinessUnit};
use plumbline_core::ids::BusinessUnitId;
use plumbline_core::page::{Page, PageRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update))
        .routes(routes!(archive))
        .routes(routes!(unarchive))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The archived ones instead of those in use.
    archived: Option<bool>,
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// The units that the caller sees.
#[utoipa::path(get, path = "/business-units", tag = "business-units", params(ListQuery), responses(
    (status = 200, body = Page<BusinessUnitView>),
))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<BusinessUnitView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(business_units::service::list(&deps, &ctx, query.archived.unwrap_or(false), page).await?))
}

/// Makes a unit. Superadmins only.
#[utoipa::path(post, path = "/business-units", tag = "business-units", request_body = NewBusinessUnit,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = BusinessUnitView),
        (status = 409, description = "The slug is taken, or the first request with the key is under way."),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewBusinessUnit>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = business_units::service::create(&deps, tx, &ctx, &new).await?;
        Ok(Created::at(format!("/api/v1/business-units/{}", made.id), made))
    })
    .await
}

/// One unit.
#[utoipa::path(get, path = "/business-units/{id}", tag = "business-units", params(("id" = Uuid, Path)), responses(
    (status = 200, body = BusinessUnitView),
))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<BusinessUnitId>,
) -> Result<Json<BusinessUnitView>, Problem> {
    Ok(Json(business_units::service::get(&deps, &ctx, id).await?))
}

/// Gives a unit another name; its slug stays. Superadmins only.
#[utoipa::path(put, path = "/business-units/{id}", tag = "business-units", params(("id" = Uuid, Path)),
    request_body = BusinessUnitChange, responses(
        (status = 200, body = BusinessUnitView),
        (status = 409, description = "The unit is archived."),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<BusinessUnitId>,
    Body(change): Body<BusinessUnitChange>,
) -> Result<Json<BusinessUnitView>, Problem> {
    Ok(Json(business_units::service::rename(&deps, &ctx, id, &change).await?))
}

/// Takes a unit out of use: nothing new is done in it, its members are told so, and within a minute what waits or plans
/// is cancelled. A begun apply is finished. Superadmins only.
#[utoipa::path(post, path = "/business-units/{id}/archive", tag = "business-units", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = BusinessUnitView),
        (status = 409, description = "People hold locks of Terraform states of the unit."),
    ))]
async fn archive(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<BusinessUnitId>,
) -> Result<Json<BusinessUnitView>, Problem> {
    Ok(Json(business_units::service::set_archived(&deps, &ctx, id, true).await?))
}

/// Puts an archived unit back into use. Superadmins only.
#[utoipa::path(post, path = "/business-units/{id}/unarchive", tag = "business-units", params(("id" = Uuid, Path)),
    responses((status = 200, body = BusinessUnitView)))]
async fn unarchive(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<BusinessUnitId>,
) -> Result<Json<BusinessUnitView>, Problem> {
    Ok(Json(business_units::service::set_archived(&deps, &ctx, id, false).await?))
}
