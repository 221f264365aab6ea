//! The gate before every route: who calls, whether they may, and whether their API key reaches what they ask for.
//!
//! Every route has its row in [`rules`]; a router with a route that has none is not built. Handlers get the caller from
//! here ([`crate::caller::Caller`]) and check nothing of this again; use cases name the permission that they need once
//! more, because what a route needs can depend on what is asked.

mod confinement;
mod rules;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use utoipa::openapi::OpenApi;

use crate::caller;
use crate::problem::Problem;

pub use rules::{Need, RULES, Reach, Rule};

/// Refuses what the route's rule does not allow; puts the caller where the handler finds them.
pub(crate) async fn guard(
    State(deps): State<Deps>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(rule) = rule_of(&request)? else { return Ok(next.run(request).await) };
    let ctx = match rule.need {
        Need::Open => return Ok(next.run(request).await),
        Need::Own => {
            let mut request = request;
            let bearer = caller::identify(&deps, request.headers()).await?;
            request.extensions_mut().insert(bearer);
            return Ok(next.run(request).await);
        }
        Need::Newcomer => caller::authenticate_newcomer(&deps, request.headers()).await?,
        Need::SignedIn | Need::Person | Need::May(_) => {
            caller::authenticate(&deps, request.headers()).await?
        }
    };
    check(&ctx, rule.need)?;
    let mut request = confinement::check(&deps, &ctx, rule, request).await?;
    request.extensions_mut().insert(ctx);
    Ok(next.run(request).await)
}

/// `None` if the path is there but not with this method, which the router itself refuses.
fn rule_of(request: &Request) -> Result<Option<&'static Rule>, Problem> {
    let Some(path) = request.extensions().get::<MatchedPath>() else { return Ok(None) };
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let of_path: Vec<_> = RULES.iter().filter(|rule| rule.is_of(path.as_str())).collect();
    if of_path.is_empty() {
        tracing::error!(http.route = path.as_str(), "a route has no rule");
        return Err(Problem::closed());
    }
    Ok(of_path.into_iter().find(|rule| rule.method == method.as_str()))
}

fn check(ctx: &Ctx, need: Need) -> Result<(), Problem> {
    match need {
        Need::Open | Need::Own | Need::Newcomer | Need::SignedIn => Ok(()),
        Need::Person => Ok(ctx.require_session()?),
        Need::May(permission) => Ok(ctx.require(permission)?),
    }
}

/// The routes of the document that have no rule, and the rules that no route has, as `METHOD /path`.
pub fn mismatches(document: &OpenApi) -> Vec<String> {
    let mut routes: Vec<String> = document
        .paths
        .paths
        .iter()
        .flat_map(|(path, item)| {
            let verbs = [
                ("GET", &item.get),
                ("PUT", &item.put),
                ("POST", &item.post),
                ("DELETE", &item.delete),
                ("PATCH", &item.patch),
            ];
            let known = verbs.into_iter().filter(|(_, operation)| operation.is_some());
            known.map(|(verb, _)| format!("{verb} {path}")).collect::<Vec<_>>()
        })
        .collect();
    routes.push(format!("GET {}", rules::DOCUMENT));
    let ruled: Vec<String> = RULES.iter().map(|rule| format!("{} {}", rule.method, rule.path())).collect();
    let without_rule = routes.iter().filter(|route| !ruled.contains(route));
    let without_route = ruled.iter().filter(|rule| !routes.contains(rule));
    without_rule.chain(without_route).cloned().collect()
}
