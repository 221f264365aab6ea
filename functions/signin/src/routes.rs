//! Leaving for the provider, and coming back.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use chrono::{DateTime, Utc};
use plumbline_api::caller::Client;
use plumbline_api::problem::Problem;
use plumbline_core::oidc_logins::settings::{self, Provider};
use plumbline_core::oidc_logins::{COOKIE_AGE, Cli, CliError, OidcError, Refusal, is_over, service};
use plumbline_core::sessions::{Origin, throttle};
use subtle::ConstantTimeEq as _;

use crate::Signin;
use crate::answers::{Asker, redirect};
use crate::cookie::{self, Begun};

/// Begins a sign-in: sends the browser to the provider, with a sealed cookie of ours.
pub(crate) async fn login(
    State(signin): State<Signin>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let asker = Asker::new(&signin.deps.public_url, &headers);
    match depart(&signin, &Parameters::read(query)).await {
        Ok(response) => response,
        Err(error) => asker.refuse(error.into()),
    }
}

async fn depart(signin: &Signin, parameters: &Parameters) -> Result<Response, OidcError> {
    let deps = &signin.deps;
    let (provider, now) = settings::find(&deps.db.conn().await?, deps).await?.require()?;
    let cli = parameters.cli()?;
    // No connection is held while the provider is asked.
    let departure = signin.providers.depart(deps, &provider).await?;
    let begun = Begun {
        state: departure.state,
        nonce: departure.nonce,
        verifier: departure.verifier,
        issuer: provider.issuer,
        at: now,
        cli: cli.map(|cli| (cli.port, cli.nonce())),
    };
    let mut response = redirect(departure.url.as_str());
    let cookie = cookie::set(&deps.keys, &begun, is_https(signin))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Ends a sign-in: believes the provider's answer or not, and hands over a one-time code.
pub(crate) async fn callback(
    State(signin): State<Signin>,
    Client(origin): Client,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let mut asker = Asker::new(&signin.deps.public_url, &headers);
    let outcome = arrive(&signin, &origin, &Parameters::read(query), &headers, &mut asker).await;
    let mut response = match outcome {
        Ok(code) => asker.hand_over(&code),
        Err(problem) => asker.refuse(problem),
    };
    // Good once, whatever came of it.
    let gone = cookie::clear(is_https(&signin));
    response.headers_mut().insert(header::SET_COOKIE, gone);
    response
}

async fn arrive(
    signin: &Signin,
    origin: &Origin,
    parameters: &Parameters,
    headers: &HeaderMap,
    asker: &mut Asker,
) -> Result<String, Problem> {
    let deps = &signin.deps;
    let settings = settings::find(&deps.db.conn().await.map_err(OidcError::from)?, deps).await?;
    let (provider, now) = settings.require()?;
    // Counted first: what follows writes to the audit log, and asks the provider.
    let attempt = throttle::admit_return(deps, origin).await?;
    let identified = match check(signin, parameters, headers, &provider, now, asker).await {
        Ok((begun, code)) => {
            let identity = signin.providers.arrive(deps, &provider, &begun, code, now).await;
            identity.map(|identity| (begun, identity))
        }
        Err(error) => Err(error),
    };
    let (outcome, who) = match identified {
        Ok((begun, who)) => {
            let cli = begun.cli();
            let admitted = service::admit(deps, &provider, &begun.state, cli.as_ref(), &who, attempt).await;
            (admitted, Some(who))
        }
        Err(error) => (Err(error), None),
    };
    if let Err(OidcError::Refused(refusal)) = &outcome {
        service::record_failure(deps, *refusal, who.as_ref(), origin).await?;
    }
    Ok(outcome?)
}

/// That this browser began this sign-in, a moment ago, and nobody has ended it. Gives the provider's code.
async fn check(
    signin: &Signin,
    parameters: &Parameters,
    headers: &HeaderMap,
    provider: &Provider,
    now: DateTime<Utc>,
    asker: &mut Asker,
) -> Result<(Begun, String), OidcError> {
    let deps = &signin.deps;
    let begun = cookie::find(&deps.keys, headers)?.ok_or(Refusal::NotBegun)?;
    let state = parameters.once("state").unwrap_or_default();
    if !bool::from(state.as_bytes().ct_eq(begun.state.as_bytes())) {
        return Err(Refusal::NotBegun.into());
    }
    // From here on it is known who waits for the answer.
    asker.cli = begun.cli();
    if is_over(begun.at, now, COOKIE_AGE) {
        return Err(Refusal::Expired.into());
    }
    service::claim(deps, &begun.state).await?;
    if begun.issuer != provider.issuer {
        return Err(Refusal::ProviderChanged.into());
    }
    if parameters.once("iss").is_some_and(|issuer| issuer != provider.issuer) {
        return Err(Refusal::Answer("answer_of_another_provider").into());
    }
    if parameters.has("error") {
        return Err(Refusal::Denied.into());
    }
    let code = parameters.once("code").filter(|code| !code.is_empty());
    let code = code.ok_or(Refusal::Answer("no_code"))?.to_owned();
    Ok((begun, code))
}

fn is_https(signin: &Signin) -> bool {
    signin.deps.public_url.starts_with("https://")
}

/// What stands after the question mark.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn read(query: Option<String>) -> Self {
        let query = query.unwrap_or_default();
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// A value that stands there exactly once.
    fn once(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        values.next().filter(|_| values.next().is_none())
    }

    fn cli(&self) -> Result<Option<Cli>, CliError> {
        let (port, nonce) = (self.once("cli_port"), self.once("cli_nonce"));
        if port.is_some() != self.has("cli_port") || nonce.is_some() != self.has("cli_nonce") {
            return Err(CliError::Half);
        }
        Cli::parse(port, nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_counts_only_where_it_stands_once() {
        let parameters = Parameters::read(Some("state=a&code=b&code=c&iss=".into()));
        assert_eq!(parameters.once("state"), Some("a"));
        assert_eq!(parameters.once("code"), None);
        assert_eq!(parameters.once("iss"), Some(""));
        assert!(parameters.has("code") && !parameters.has("error"));
    }

    #[test]
    fn a_command_line_says_both_of_itself_and_never_a_host() {
        let nonce = "A".repeat(43);
        let cli = |query: String| Parameters::read(Some(query)).cli();
        assert_eq!(cli(String::new()), Ok(None));
        let good = cli(format!("cli_port=4711&cli_nonce={nonce}")).expect("fine").expect("there");
        assert_eq!(
            good.callback("code", "x"),
            format!("http://127.0.0.1:4711/callback?code=x&nonce={nonce}")
        );
        for query in [
            "cli_port=4711".to_owned(),
            format!("cli_nonce={nonce}"),
            format!("cli_port=4711&cli_port=4712&cli_nonce={nonce}"),
        ] {
            assert_eq!(cli(query), Err(CliError::Half));
        }
        for port in [
            "0",
            "80",
            "1023",
            "65536",
            "-1",
            "+4711",
            "evil.test",
            "4711@evil.test",
            "4711/",
            " 4711",
            "004711",
            "",
        ] {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("cli_port", port).append_pair("cli_nonce", &nonce);
            assert_eq!(cli(query.finish()), Err(CliError::Port), "{port}");
        }
        for nonce in ["", "A", &"A".repeat(42), &"A".repeat(44), &"/".repeat(43), &"A".repeat(86)] {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("cli_port", "4711").append_pair("cli_nonce", nonce);
            assert_eq!(cli(query.finish()), Err(CliError::Nonce), "{nonce}");
        }
    }
}
