//! The digests that bind an event to its place: what goes into each, and nothing else.
//!
//! Every digest has its own domain, so that one can never be taken for another. A number in a domain is the format: a
//! change of what goes in is a new number and a new `user_version`.

use crate::id::{Digest, StoreId};

/// [`Digest::of`], without the set-up of a hasher that could take any length: what is hashed here for every event is
/// short, and a replay is mostly this. Longer than `N` bytes it is the ordinary one.
fn short<const N: usize>(domain: &str, parts: &[&[u8]]) -> Digest {
    let mut buffer = [0_u8; N];
    let mut end = 0;
    for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        for bytes in [&(part.len() as u64).to_le_bytes()[..], part] {
            let Some(place) = buffer.get_mut(end..end + bytes.len()) else { return Digest::of(domain, parts) };
            place.copy_from_slice(bytes);
            end += bytes.len();
        }
    }
    buffer.get(..end).map_or_else(|| Digest::of(domain, parts), Digest::plain)
}

/// What a record's digest covers: one event as it is stored, in its stream, in its store. Not its `seq`: the chain has that.
pub(super) struct Content<'a> {
    pub(super) stream: &'a str,
    pub(super) version: u64,
    pub(super) at_ms: i64,
    pub(super) kind: &'a str,
    pub(super) schema: u32,
    pub(super) body: &'a [u8],
}

impl Content<'_> {
    pub(super) fn record(&self, store: StoreId) -> Digest {
        short::<1024>(
            "throughline/record/1",
            &[
                store.0.as_bytes(),
                self.stream.as_bytes(),
                &self.version.to_le_bytes(),
                &self.at_ms.to_le_bytes(),
                self.kind.as_bytes(),
                &self.schema.to_le_bytes(),
                self.body,
            ],
        )
    }
}

/// The next link of the chain over the whole log.
pub(super) fn link(previous: &Digest, record: &Digest) -> Digest {
    short::<128>("throughline/chain/1", &[&previous.0, &record.0])
}

/// The next link of one stream's chain.
pub(super) fn stream_link(previous: &Digest, record: &Digest) -> Digest {
    short::<128>("throughline/stream-chain/1", &[&previous.0, &record.0])
}

/// Binds the store id to the row that holds it.
pub(super) fn identity(row: i64, store: StoreId) -> Digest {
    Digest::of("throughline/store/1", &[&row.to_le_bytes(), store.0.as_bytes()])
}

/// Binds a memoised state to the store, the fold and the frontier that it is the state of.
pub(super) fn memo(store: StoreId, stream: &str, fold: u32, version: u64, chain: &Digest, state: &[u8]) -> Digest {
    Digest::of(
        "throughline/memo/1",
        &[store.0.as_bytes(), stream.as_bytes(), &fold.to_le_bytes(), &version.to_le_bytes(), &chain.0, state],
    )
}

/// What a receipt says, without its proof.
pub(super) struct Claim<'a> {
    pub(super) key: &'a str,
    pub(super) request: Digest,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Claim<'_> {
    /// Binds the receipt to the store and to the history up to its last event.
    pub(super) fn proof(&self, store: StoreId, chain: &Digest) -> Digest {
        Digest::of(
            "throughline/receipt/1",
            &[
                store.0.as_bytes(),
                self.key.as_bytes(),
                &self.request.0,
                &self.first.to_le_bytes(),
                &self.last.to_le_bytes(),
                &chain.0,
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_gives_the_same_digest_at_every_length() {
        for length in [0, 1, 63, 64, 65, 80, 87, 88, 89, 500] {
            let part = vec![7; length];
            let parts: [&[u8]; 2] = [&part, b"x"];
            assert_eq!(short::<128>("some/domain/1", &parts), Digest::of("some/domain/1", &parts), "{length}");
        }
    }
}
