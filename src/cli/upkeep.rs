//! `sweep` and `reconcile`: what an agent's next spawn would do first, done without one. One agent that is driven, or that
//! fails, stops no other.

use std::path::Path;

use serde_json::{Value, json};

use crate::chain::actor::Actor;
use crate::chain::lease::LeaseError;
use crate::chain::leftovers::SweepReport;
use crate::chain::observe::RealView;
use crate::chain::upkeep::{self, is_needed, plan};
use crate::chain::{Request, ledger};
use crate::cli::args::Upkeep;
use crate::cli::error::{Failure, chain_of, exit};
use crate::cli::output::Output;
use crate::cli::store;
use crate::id::{AgentId, ProviderName, StreamName};
use crate::log::Records;
use crate::world::real::{RealDoors, locks_beside};
use crate::world::{clock, process};

/// Sweeps, and gives the worst of what came of it.
pub(super) fn upkeep(args: &Upkeep, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let named =
        args.agent.as_deref().map(AgentId::parse).transpose().map_err(|error| Failure::usage(error.to_string()))?;
    let path = store::path(log)?;
    let reader = store::reader(&path)?;
    let agents = match named {
        Some(uid) => vec![uid],
        None => agents(&*reader)?,
    };
    let (mut rows, mut worst) = (Vec::new(), exit::OK);
    for uid in agents {
        let request = request(&uid)?;
        let ledger = ledger::read(&*reader, &request).map_err(|error| store::of_log(&error))?;
        if !ledger.agent.as_ref().is_some_and(is_needed) {
            say(&uid, "nothing is left to do", output);
            rows.push(json!({"agent": uid, "done": false}));
            continue;
        }
        if args.dry_run {
            let plan = plan(&uid, &request, &ledger, &mut view()?)
                .map_err(|error| Failure::of("snapshot", exit::ERROR, &error))?;
            rows.push(planned(&uid, &plan, output));
            continue;
        }
        match one(&path, args.writing.busy_ms, &uid, &request)? {
            Ok(report) => rows.push(done(&uid, &report, output)),
            Err(error) => {
                worst = worst.max(if matches!(error, LeaseError::Held { .. }) { exit::BUSY } else { exit::ERROR });
                say(&uid, &chain_of(&error), output);
                rows.push(json!({"agent": uid, "done": false, "error": chain_of(&error)}));
            }
        }
    }
    if output.json {
        output.value(&json!({"schema": 1, "dry_run": args.dry_run, "agents": rows}))?;
    }
    Ok(worst)
}

fn agents(records: &dyn Records<crate::chain::fold::State>) -> Result<Vec<AgentId>, Failure> {
    let streams = records.streams().map_err(|error| store::of_log(&error))?;
    let agent = |stream| match stream {
        StreamName::Agent(uid) => Some(uid),
        StreamName::Audit(_) | StreamName::Hook(_) => None,
    };
    Ok(streams.into_iter().filter_map(|frontier| agent(frontier.stream)).collect())
}

/// Upkeep goes by the log: where it is asked from does not matter.
fn request(uid: &AgentId) -> Result<Request, Failure> {
    let provider = ProviderName::parse("claude").map_err(|error| Failure::of("provider", exit::ERROR, &error))?;
    let mut request = Request::new(provider, None, "/");
    request.agent = Some(uid.clone());
    Ok(request)
}

fn view() -> Result<RealView, Failure> {
    let own = process::own().map_err(|error| Failure::of("process", exit::ERROR, &error))?;
    Ok(RealView::new(clock::now_ms(), own))
}

fn one(
    path: &Path,
    busy_ms: u64,
    uid: &AgentId,
    request: &Request,
) -> Result<Result<SweepReport, LeaseError>, Failure> {
    let log = store::writer(path, busy_ms)?;
    let mut doors = RealDoors::new(&locks_beside(path)).map_err(|error| Failure::of("process", exit::ERROR, &error))?;
    let mut view = view()?;
    let mut actor = Actor { view: &mut view, doors: &mut doors, log: &log };
    Ok(upkeep::keep(&mut actor, uid, request))
}

fn say(uid: &AgentId, words: &str, output: &Output) {
    output.say(&format!("agent {uid}: {words}"));
}

fn planned(uid: &AgentId, plan: &upkeep::Upkeep, output: &Output) -> Value {
    let unsaid: Vec<&str> = plan.unsaid.iter().map(|event| event.kind()).collect();
    for kind in &unsaid {
        say(uid, &format!("would say {kind}"), output);
    }
    for path in &plan.removes {
        say(uid, &format!("would remove {path}"), output);
    }
    for path in &plan.keeps {
        say(uid, &format!("would keep {path}, which is not what was logged or is not there"), output);
    }
    if let Some(why) = &plan.unreadable {
        say(uid, &format!("cannot judge what is left: {why}"), output);
    }
    json!({"agent": uid, "unsaid": unsaid, "removes": plan.removes, "keeps": plan.keeps, "unreadable": plan.unreadable})
}

fn done(uid: &AgentId, report: &SweepReport, output: &Output) -> Value {
    say(uid, &format!("{} copies removed", report.removed.len()), output);
    for left in &report.left {
        say(uid, &format!("{} stays: {}", left.path.as_str(), left.why), output);
    }
    json!({"agent": uid, "done": true, "removed": report.removed, "left": report.left})
}
