//! A stand-in for AWS, where one is installed.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ends the server with the test.
pub struct Moto(Child);

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free port; `None`, with the reason printed, where there is no moto.
pub async fn start() -> Option<(Moto, String)> {
    // Only where it is named: versions before 5.2.5 answer numbers where the service answers strings.
    let Ok(program) = std::env::var("PLUMBLINE_TEST_MOTO") else {
        eprintln!("SKIP: PLUMBLINE_TEST_MOTO does not name a moto_server");
        return None;
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new(&program)
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        eprintln!("SKIP: {program} (PyPI: moto[server]) was not found");
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
