//! The OpenAPI document, generated from the handlers.
//!
//! Handlers describe what is theirs: success, and problems with a meaning of their own (409, 412). What follows from
//! the shape of a route is added here to all of them: who may not call it, what a wrong path, query or body is answered,
//! and that the database may be away.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use plumbline_core::Deps;
use utoipa::PartialSchema as _;
use utoipa::ToSchema as _;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, Content, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response,
    ResponseBuilder, Type,
};
use utoipa_axum::router::OpenApiRouter;

use crate::problem::Problem;
use crate::routes;

const PREFIX: &str = "/api/v1";
const PROBLEM_TYPE: &str = "application/problem+json";
const BEARER: &str = "bearer";

/// The router and the document that describes exactly its routes.
pub fn documented_router() -> (Router<Deps>, OpenApi) {
    let blank = OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Plumbline")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Change infrastructure through a gate. Errors are problem documents (RFC 9457).",
                ))
                .build(),
        )
        .build();
    let (router, mut document) =
        OpenApiRouter::with_openapi(blank).nest(PREFIX, routes::all()).split_for_parts();
    complete(&mut document);
    (router, document)
}

/// The document as it is checked in.
pub fn document_text(document: &OpenApi) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a document is plain data");
    text.push('\n');
    text
}

/// Serves the document, to anybody.
pub fn route(document: &OpenApi) -> Router<Deps> {
    let text: bytes::Bytes = document_text(document).into();
    let answer = move || std::future::ready(([(header::CONTENT_TYPE, "application/json")], text.clone()));
    Router::new().route(&[PREFIX, "/openapi.json"].concat(), get(answer))
}

fn complete(document: &mut OpenApi) {
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme(
        BEARER,
        SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build()),
    );
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            complete_operation(operation);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch]
        .into_iter()
        .filter_map(Option::as_mut)
}

fn complete_operation(operation: &mut Operation) {
    let open = operation.security.is_some();
    let parameters = operation.parameters.get_or_insert_default();
    let has = |place: ParameterIn| {
        parameters.iter().any(|one| matches!(one, RefOr::T(one) if one.parameter_in == place))
    };
    let (in_path, in_query) = (has(ParameterIn::Path), has(ParameterIn::Query));
    let with_body = operation.request_body.is_some();
    let keyed = parameters.iter().any(|one| matches!(one, RefOr::T(one) if one.name == "Idempotency-Key"));
    if !open {
        let unit = ParameterBuilder::new()
            .name("X-Business-Unit")
            .parameter_in(ParameterIn::Header)
            .description(Some("A business unit's slug, or `all` for superadmins."))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build();
        parameters.push(RefOr::T(unit));
        operation.security = Some(vec![SecurityRequirement::new(BEARER, Vec::<String>::new())]);
    }
    let answers = [
        (!open, "401", "Not signed in."),
        (!open, "403", "Not allowed."),
        (!open || in_path, "404", "Not there, or not yours."),
        (with_body, "400", "The body is missing or not JSON."),
        (with_body, "413", "The body is too large."),
        (with_body, "415", "The body is not JSON by its content type."),
        (with_body || in_query || keyed, "422", "A field or parameter has a wrong value."),
        (keyed, "409", "It cannot be made now, or the first request with this key is still under way."),
        (true, "503", "Passes by itself; see Retry-After."),
        (true, "500", "A defect of ours."),
    ];
    let responses = &mut operation.responses.responses;
    for (applies, status, description) in answers {
        if applies && !responses.contains_key(status) {
            responses.insert(status.into(), RefOr::T(problem(description)));
        }
    }
    for (status, response) in responses.iter_mut() {
        if let (true, RefOr::T(response)) = (status.starts_with(['4', '5']), response) {
            response.content = problem("").content;
        }
    }
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    ResponseBuilder::new().description(description).content(PROBLEM_TYPE, Content::new(Some(schema))).build()
}
