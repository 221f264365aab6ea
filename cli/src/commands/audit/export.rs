//! Writing the log to a file, page by page.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use plumbline_core::audit::{ChainId, Chains, EXPORT_FORMAT, Export, ExportLine, HeadView, PublicKey};
use uuid::Uuid;

use crate::api::routes;
use crate::app::App;
use crate::outcome::Outcome;

/// Entries asked for at once; the server gives as many as it likes.
const PAGE: u32 = 1000;

/// Exports to a file, which appears only when it is complete, or to stdout.
pub(super) async fn run(app: &App, output: &Path, chain: Option<Uuid>) -> anyhow::Result<Outcome> {
    if output == Path::new("-") {
        write(app, chain.map(ChainId), &mut std::io::stdout()).await?;
        return Ok(Outcome::Done);
    }
    let mut partial = output.as_os_str().to_owned();
    partial.push(".part");
    let partial = Path::new(&partial);
    let written = match create(partial) {
        Ok(mut file) => write(app, chain.map(ChainId), &mut file).await.and_then(|entries| {
            file.into_inner()?.sync_all()?;
            Ok(entries)
        }),
        Err(error) => Err(error),
    };
    let named = || format!("cannot write {}", output.display());
    match written {
        Ok(entries) => {
            std::fs::rename(partial, output).with_context(named)?;
            app.screen.note(&format!("{entries} entries are in {}.", output.display()));
            Ok(Outcome::Done)
        }
        Err(error) => {
            let _ = std::fs::remove_file(partial);
            Err(error)
        }
    }
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let opened = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    Ok(BufWriter::new(opened.with_context(|| format!("cannot write {}", path.display()))?))
}

/// Heads first, then entries up to them: what is appended meanwhile belongs to the next export.
async fn write(app: &App, chain: Option<ChainId>, out: &mut impl Write) -> anyhow::Result<u64> {
    let progress = app.screen.progress();
    progress.now("asking for the chains");
    line(out, &ExportLine::Export { format: EXPORT_FORMAT, chain_id: chain })?;
    let (mut heads, mut cursor, mut is_first) = (Vec::new(), None, true);
    loop {
        let call = app.client.call(routes::LIST_AUDIT_CHAINS, []).query("cursor", cursor);
        let page: Chains = call.send().await?.read()?;
        if let Some(checkpoint) = page.checkpoint.filter(|_| is_first) {
            if let Ok(key) = PublicKey::parse(&checkpoint.public_key) {
                app.screen.note(&format!(
                    "Checkpoints are signed with {} (key {}). Compare it with the public key that you noted.",
                    key.algorithm().as_str(),
                    key.key_id()
                ));
            }
            line(out, &ExportLine::Checkpoint(checkpoint))?;
        }
        heads.extend(page.items.into_iter().filter(|head| chain.is_none_or(|chain| chain == head.chain_id)));
        is_first = false;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if let Some(chain) = chain.filter(|_| heads.is_empty()) {
        anyhow::bail!("there is no chain {chain} that you can see");
    }
    for head in &heads {
        line(out, &ExportLine::Head(head.clone()))?;
    }
    let mut written = 0;
    for head in &heads {
        progress.now(&format!("{written} entries written, chain {}", head.chain_id));
        written += write_chain(app, head, out).await?;
    }
    out.flush()?;
    Ok(written)
}

async fn write_chain(app: &App, head: &HeadView, out: &mut impl Write) -> anyhow::Result<u64> {
    let (mut after, mut written) = (0, 0);
    while after < head.sequence {
        let call = app.client.call(routes::EXPORT_AUDIT, []).query("chain_id", Some(head.chain_id));
        let page: Export =
            call.query("after", Some(after)).query("limit", Some(PAGE)).send().await?.read()?;
        let Some(last) = page.items.last().map(|last| last.sequence) else { break };
        for entry in page.items.into_iter().take_while(|entry| entry.sequence <= head.sequence) {
            line(out, &ExportLine::Entry(entry))?;
            written += 1;
        }
        after = last;
    }
    Ok(written)
}

fn line(out: &mut impl Write, line: &ExportLine) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")?;
    Ok(())
}
