//! A backend's whole check: open the log, ask, look, and ask again right before the spawn.
//!
//! `cargo run --example embed -- SESSION-ID [AGENT]`

use std::error::Error;
use std::path::Path;

use throughline::chain::observe::RealView;
use throughline::chain::{Ledger, Receipt, Request, ledger, preflight};
use throughline::event::VerdictWord;
use throughline::id::{AgentId, ProviderName};
use throughline::log::{OpenError, Reader};
use throughline::provider::ConfigDir;
use throughline::world::{clock, environment, process};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    // The very values that the child process will get.
    let login = match environment::var("CLAUDE_CONFIG_DIR")? {
        Some(dir) => ConfigDir::Named(dir),
        None => ConfigDir::Ambient { home: environment::home_dir()? },
    };
    let mut request = Request::new(ProviderName::parse("claude")?, Some(login), environment::current_dir()?);
    request.session = arguments.next();
    request.agent = arguments.next().map(AgentId::parse).transpose()?;

    let log = environment::var("THROUGHLINE_LOG")?.unwrap_or_else(|| "throughline.db".into());
    let receipt = ask(Path::new(&log), &request)?;
    let verdict = receipt.verdict();
    match verdict.verdict {
        VerdictWord::Resume => println!("continues {}", verdict.session_id.as_deref().unwrap_or("?")),
        VerdictWord::Recover => println!("continues another one: {}", verdict.session_id.as_deref().unwrap_or("?")),
        VerdictWord::Fresh => println!("starts blank: tell the person before the pane shows an old history"),
        VerdictWord::Busy => println!("somebody else holds it: do not start anything"),
        VerdictWord::Unknown => println!("cannot be told: do not call it fresh"),
    }
    for finding in &verdict.findings {
        println!("  {}: {}", finding.code, finding.detail);
    }

    // Time passes. A receipt is good for as long as the plan that it names would be made again.
    let now = ask(Path::new(&log), &request)?;
    println!("still so: {}", receipt.is_current(&now));
    Ok(())
}

/// Asks the log, if there is one, and the real disk. Writes nothing.
fn ask(log: &Path, request: &Request) -> Result<Receipt, Box<dyn Error>> {
    let ledger = match Reader::open(log) {
        Ok(reader) => ledger::read(&*reader, request)?,
        Err(OpenError::NotThere { .. }) => Ledger::default(),
        Err(error) => return Err(error.into()),
    };
    let mut view = RealView::new(clock::now_ms(), process::own()?);
    Ok(preflight(&ledger, request, &mut view)?)
}
