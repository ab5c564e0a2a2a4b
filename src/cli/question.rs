//! From flags to a request: what is left out is what the provider itself would use here.

use std::ffi::OsString;

use crate::chain::Request;
use crate::cli::args::Question;
use crate::cli::error::{Failure, chain_of, exit};
use crate::id::{AgentId, Epoch, IdentityKey, ProviderName};
use crate::provider::{self, ConfigDir};
use crate::snapshot::Depth;
use crate::world::environment;

/// The request that the flags and this process's surroundings make.
pub(super) fn request(question: &Question) -> Result<Request, Failure> {
    let provider = ProviderName::parse(question.provider.as_str()).map_err(usage)?;
    let variable = provider::rules(provider.family(), None).map(|rules| rules.config_variable());
    let mut unusable = None;
    let mut utf8 = |what: &str, text: &OsString| match text.to_str() {
        Some(text) => text.to_owned(),
        None => {
            unusable = Some(format!("the {what} is not UTF-8: {}", text.to_string_lossy()));
            String::new()
        }
    };
    let config_dir = match (&question.config_dir, question.no_config_dir) {
        (_, true) => None,
        (Some(dir), false) => Some(ConfigDir::Named(utf8("config dir", dir))),
        (None, false) => match variable.and_then(std::env::var_os) {
            Some(dir) => Some(ConfigDir::Named(utf8("config dir", &dir))),
            None => environment::home_dir().ok().map(|home| ConfigDir::Ambient { home }),
        },
    };
    let cwd = match &question.cwd {
        Some(dir) => utf8("working directory", dir),
        None => String::new(),
    };
    let also = question.also.iter().map(|dir| utf8("further config dir", dir)).collect();
    let mut request = Request::new(provider, config_dir, cwd);
    request.also = also;
    request.provider_version.clone_from(&question.provider_version);
    request.session.clone_from(&question.session);
    request.history.clone_from(&question.history);
    request.resume_flag.clone_from(&question.resume_flag);
    request.fork = question.fork;
    request.lease = question.lease.map(Epoch);
    request.depth = if question.deep { Depth::Whole } else { Depth::Windows };
    request.agent = question.agent.as_deref().map(AgentId::parse).transpose().map_err(usage)?;
    request.fork_of = question.fork_of.as_deref().map(AgentId::parse).transpose().map_err(usage)?;
    request.identity = question.identity.as_deref().map(IdentityKey::parse).transpose().map_err(usage)?;
    request.unusable = unusable;
    if question.expand_home {
        let home = environment::home_dir()
            .map_err(|error| Failure::of("no_home", exit::ERROR, &error).next("set HOME, or spell the paths out"))?;
        request.expand_home(&home);
    }
    if !request.cwd.starts_with('/') && request.unusable.is_none() {
        match environment::current_dir() {
            Ok(here) if request.cwd.is_empty() => request.cwd = here,
            Ok(here) => request.cwd = format!("{}/{}", here.trim_end_matches('/'), request.cwd),
            // The child would have no better one: nothing can be told of a spawn from here.
            Err(error) => request.unusable = Some(chain_of(&error)),
        }
    }
    Ok(request)
}

fn usage(error: crate::id::IdError) -> Failure {
    Failure::usage(error.to_string())
}
