//! Reads what a request asks of a log: the folds of the agent, of its parent and of its hooks, with their frontiers.

use crate::chain::fold::State;
use crate::chain::request::{Ledger, Request};
use crate::chain::state::AgentState;
use crate::id::{AgentId, StreamName};
use crate::log::{LogError, Records};

/// The ledger for a request: one consistent look at each stream that the decision may rest on.
///
/// # Errors
///
/// [`LogError`] when the log cannot be read, is busy for long, or does not verify. Nothing is written either way.
pub fn read(records: &dyn Records<State>, request: &Request) -> Result<Ledger, LogError> {
    let mut ledger = Ledger { streams: Some(Vec::new()), ..Ledger::default() };
    if let Some(uid) = &request.agent {
        ledger.agent = agent(records, uid, &mut ledger)?;
        if let State::Hook(announced) = fold(records, StreamName::Hook(uid.clone()), &mut ledger)? {
            ledger.announced = announced;
        }
    }
    let declared = ledger.agent.as_ref().and_then(|agent| agent.forked_from.clone());
    if let Some(uid) = request.fork_of.clone().or(declared) {
        ledger.parent = Some(agent(records, &uid, &mut ledger)?.unwrap_or_default());
    }
    Ok(ledger)
}

fn agent(records: &dyn Records<State>, uid: &AgentId, ledger: &mut Ledger) -> Result<Option<AgentState>, LogError> {
    Ok(fold(records, StreamName::Agent(uid.clone()), ledger)?.agent())
}

fn fold(records: &dyn Records<State>, stream: StreamName, ledger: &mut Ledger) -> Result<State, LogError> {
    let (frontier, state) = records.state(&stream)?;
    ledger.streams.get_or_insert_default().push(frontier);
    Ok(state)
}
