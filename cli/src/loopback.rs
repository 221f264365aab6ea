//! A port of this machine to which the person's browser brings what the server says at the end of a sign-in.
//!
//! Whoever is on this machine can call it, and every page that the browser shows: an answer counts only if it repeats what
//! this very sign-in sent. What it brings is a one-time code that is worth nothing without the secret of this process.

use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::secrets::SecretText;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use url::Url;

/// How long one caller may take to say what it wants.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest request that is read, in bytes.
const REQUEST_BYTES_MAX: usize = 16 << 10;
const PATH: &str = "/callback";

/// What the server says.
#[derive(Debug)]
pub enum Answer {
    /// It believes the person; the code is good for tokens, once.
    Code(SecretText),
    /// It does not, and why: the last part of a problem's name.
    Refused(String),
}

/// A sign-in that waits for the browser.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    port: u16,
    secret: SecretText,
    /// What it is known by: a digest of the secret.
    digest: String,
}

impl Loopback {
    /// Listens, on a port that the system picks.
    pub async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on this machine")?;
        let port = listener.local_addr()?.port();
        let secret = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let digest = URL_SAFE_NO_PAD.encode(Sha256Digest::of(secret.as_bytes()).0);
        Ok(Self { listener, port, secret: secret.into(), digest })
    }

    /// What says to the server where the answer goes, and whose it is.
    pub fn parameters(&self) -> [(&'static str, String); 2] {
        [("cli_port", self.port.to_string()), ("cli_nonce", self.digest.clone())]
    }

    /// Proves that the code was made for this process.
    pub fn secret(&self) -> &SecretText {
        &self.secret
    }

    /// Waits for the answer. Others may call in between, several at once: browsers open connections before they need them.
    pub async fn answer(&self) -> anyhow::Result<Answer> {
        let (found, mut answers) = mpsc::channel(1);
        loop {
            tokio::select! {
                caller = self.listener.accept() => {
                    let (stream, _) = caller.context("this machine's port was closed")?;
                    let (found, nonce, port) = (found.clone(), self.digest.clone(), self.port);
                    tokio::spawn(async move {
                        let serving = serve(stream, port, &nonce);
                        if let Ok(Some(answer)) = tokio::time::timeout(REQUEST_TIMEOUT, serving).await {
                            let _ = found.send(answer).await;
                        }
                    });
                }
                Some(answer) = answers.recv() => return Ok(answer),
            }
        }
    }
}

/// Answers one caller. A caller that hangs up is nobody's loss.
async fn serve(mut stream: TcpStream, port: u16, nonce: &str) -> Option<Answer> {
    let request = read(&mut stream).await?;
    let answer = understand(&request, port, nonce);
    let (status, words) = match &answer {
        Some(Answer::Code(_)) => ("200 OK", "The sign-in goes on in your terminal. You can close this page."),
        Some(Answer::Refused(_)) => ("200 OK", "You were not signed in. Your terminal says why."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let page = format!("<!doctype html><html lang=\"en\"><title>plumb</title><p>{words}</p></html>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\r\n",
        page.len()
    );
    // What was brought counts although the browser did not wait for the page.
    let _ = stream.write_all([head, page].concat().as_bytes()).await;
    let _ = stream.shutdown().await;
    answer
}

/// The head of a request.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut chunk).await.ok()?;
        if count == 0 || bytes.len() + count > REQUEST_BYTES_MAX {
            return None;
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8(bytes).ok()
}

fn understand(request: &str, port: u16, nonce: &str) -> Option<Answer> {
    let mut lines = request.split("\r\n");
    let target = lines.next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let place = format!("127.0.0.1:{port}");
    // A page whose own name was made to point here says that name.
    let mut hosts =
        lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    if hosts.next()?.1.trim() != place || hosts.next().is_some() {
        return None;
    }
    let url = Url::parse(&format!("http://{place}{target}")).ok()?;
    if url.path() != PATH {
        return None;
    }
    let once = |name: &str| {
        let mut values =
            url.query_pairs().filter(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        values.next().filter(|_| values.next().is_none())
    };
    if once("nonce")? != nonce {
        return None;
    }
    match (once("code"), once("error")) {
        (Some(code), None) => Some(Answer::Code(code.into())),
        (None, Some(slug)) => Some(Answer::Refused(slug)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, host: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nAccept: */*\r\nHOST: {host}\r\n\r\n")
    }

    #[test]
    fn an_answer_counts_only_if_it_repeats_what_was_sent_and_comes_to_this_address() {
        let understand = |target: &str, host: &str| understand(&request(target, host), 4711, "sent");
        let here = "127.0.0.1:4711";
        assert!(
            matches!(understand("/callback?code=x&nonce=sent", here), Some(Answer::Code(code)) if code.expose() == "x")
        );
        assert!(
            matches!(understand("/callback?error=why&nonce=sent", here), Some(Answer::Refused(why)) if why == "why")
        );
        for (target, host) in [
            ("/callback?code=x&nonce=other", here),
            ("/callback?code=x", here),
            ("/callback?code=x&nonce=sent&nonce=sent", here),
            ("/callback?code=x&code=y&nonce=sent", here),
            ("/callback?code=x&error=why&nonce=sent", here),
            ("/callback?nonce=sent", here),
            ("/other?code=x&nonce=sent", here),
            ("/callback?code=x&nonce=sent", "evil.test:4711"),
            ("/callback?code=x&nonce=sent", "localhost:4711"),
            ("//evil.test/callback?code=x&nonce=sent", here),
        ] {
            assert!(understand(target, host).is_none(), "{target} {host}");
        }
    }

    #[test]
    fn what_is_no_request_for_a_page_is_nothing() {
        for request in [
            "",
            "GET",
            "POST /callback?code=x&nonce=sent HTTP/1.1\r\nhost: 127.0.0.1:4711\r\n\r\n",
            "GET /callback?code=x&nonce=sent HTTP/1.1\r\n\r\n",
            "GET /callback?code=x&nonce=sent HTTP/1.1\r\nhost: 127.0.0.1:4711\r\nhost: evil.test\r\n\r\n",
        ] {
            assert!(understand(request, 4711, "sent").is_none(), "{request}");
        }
    }
}
