//! From flags to a request: what is left out is what the provider itself would use here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::chain::Request;
use crate::cli::args::{Question, Tables};
use crate::cli::error::{Failure, chain_of, exit};
use crate::cli::installed;
use crate::cli::output::Output;
use crate::event::Means;
use crate::id::{AgentId, Epoch, IdentityKey, ProviderName};
use crate::provider::{self, ConfigDir, KnownRules};
use crate::snapshot::Depth;
use crate::world::{environment, files};

/// The request that the flags and this process's surroundings make.
pub(super) fn request(question: &Question, output: &Output) -> Result<Request, Failure> {
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
    request.rules = known(&question.tables)?;
    request.provider_version = version(question, &request, output)?;
    request.session.clone_from(&question.session);
    request.history.clone_from(&question.history);
    request.resume_flag.clone_from(&question.resume_flag);
    request.fork = question.fork;
    request.means =
        question.means.as_deref().and_then(|word| Means::ALL.iter().find(|means| means.word() == word).copied());
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

/// The version that is asked for, else that of the installed program.
fn version(question: &Question, request: &Request, output: &Output) -> Result<Option<String>, Failure> {
    if question.provider_version.is_some() {
        return Ok(question.provider_version.clone());
    }
    let family = request.provider.family();
    let Some(rules) = request.rules.find(family, None) else { return Ok(None) };
    let program = question.bin.clone().or_else(|| installed::on_path(rules.program()));
    let Some(program) = program else { return Ok(None) };
    match installed::version(&program) {
        Ok(version) => Ok(Some(version)),
        Err(error) if question.bin.is_some() => {
            let text = format!("{} does not tell its version: {error}", program.display());
            Err(Failure::new("agent", exit::ERROR, text)
                .next("name its program with --bin, or its version with --provider-version"))
        }
        Err(error) => {
            let rules = rules.version();
            output.say(&format!(
                "{} does not tell its version ({error}); the rules of {rules} are used",
                program.display()
            ));
            Ok(None)
        }
    }
}

/// The rules beside those built in.
pub(super) fn known(tables: &Tables) -> Result<KnownRules, Failure> {
    let mut files = tables.rules.clone();
    if files.is_empty() {
        files.extend(std::env::var_os("THROUGHLINE_RULES").filter(|file| !file.is_empty()).map(PathBuf::from));
    }
    let mut known = KnownRules::default();
    for file in files {
        known = known.and(read_rules(&file)?);
    }
    Ok(known)
}

/// The rules in a file.
pub(super) fn read_rules(file: &Path) -> Result<KnownRules, Failure> {
    let named = |error: &(dyn std::error::Error + 'static)| {
        let mut failure = Failure::of("rules", exit::ERROR, error);
        failure.message = format!("{}: {}", file.display(), failure.message);
        failure.next("name a file that `throughline probe --save` wrote")
    };
    let bytes = files::read_small(file, files::SMALL_BYTES_MAX).map_err(|error| named(&error))?;
    KnownRules::parse(&bytes).map_err(|error| named(&error))
}

fn usage(error: crate::id::IdError) -> Failure {
    Failure::usage(error.to_string())
}
