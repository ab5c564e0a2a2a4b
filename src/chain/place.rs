//! Where a conversation is, as the log writes it down: a [`Location`] from a place, a session and its file. Pure over a view.

use crate::chain::request::Request;
use crate::event::{FileFacts, Location};
use crate::id::{IdError, IdentityKey, PathText, SessionId};
use crate::provider::{ConfigDir, Place, Provider};
use crate::snapshot::{Ask, NodeKind, Seen, SnapshotError, View};

/// Why a place cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The view is a recording that lacks an answer.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A text does not fit the log.
    #[error(transparent)]
    Name(#[from] IdError),
}

/// Where the child process of a request will be.
#[must_use]
pub fn place(request: &Request) -> Place {
    let config_dir = request.config_dir.clone().unwrap_or(ConfigDir::Named(String::new()));
    Place { config_dir, cwd: request.cwd.clone() }
}

/// The login's folder as the log names it: as it was spelled, or where the provider looks without being told.
#[must_use]
pub fn config_text(rules: &dyn Provider, place: &Place) -> String {
    match &place.config_dir {
        ConfigDir::Ambient { .. } => rules.config_root(place),
        ConfigDir::Named(text) => text.clone(),
    }
}

/// Who is signed in where the request's child will run, as far as that can be told.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn identity(
    request: &Request,
    rules: &dyn Provider,
    view: &mut dyn View,
) -> Result<Option<IdentityKey>, SnapshotError> {
    match &request.identity {
        Some(identity) => Ok(Some(identity.clone())),
        None => Ok(rules.identity(view, &place(request))?.is()),
    }
}

/// The facts of the regular file at a path, without `whole`; nothing where there is none that can be read.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn facts(view: &mut dyn View, path: &str) -> Result<Option<FileFacts>, SnapshotError> {
    let Seen::Is(node) = view.node(path, true)? else { return Ok(None) };
    if node.kind != NodeKind::File {
        return Ok(None);
    }
    let tail = view.tail(path, node.bytes)?.is();
    Ok(tail.map(|tail| FileFacts { bytes: node.bytes, tail, whole: None }))
}

/// The place of a session that the request's child has, or had; `at` is its file with its facts.
///
/// # Errors
///
/// [`PlaceError`]
pub fn location(
    request: &Request,
    rules: &dyn Provider,
    view: &mut dyn View,
    session: &SessionId,
    at: Option<(&str, Option<FileFacts>)>,
) -> Result<Location, PlaceError> {
    let place = place(request);
    let (path, file) = at.map_or((None, None), |(path, file)| (Some(path), file));
    Ok(Location {
        session: session.clone(),
        config_dir: PathText::parse(config_text(rules, &place))?,
        identity: identity(request, rules, view)?,
        provider: request.provider.clone(),
        cwd: PathText::parse(place.cwd)?,
        path: path.map(PathText::parse).transpose()?,
        file,
    })
}
