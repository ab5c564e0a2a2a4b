//! The digests that bind an event to its place: what goes into each, and nothing else.
//!
//! Every digest has its own domain, so that one can never be taken for another. A number in a domain is the format: a
//! change of what goes in is a new number and a new `user_version`.

use std::cell::Cell;
use std::sync::LazyLock;

use crate::id::{Digest, StoreId};

/// A domain as a key: BLAKE3's own way to keep kinds of digests apart, which costs nothing per digest.
type Key = [u8; 32];

/// Over the parts one after another; `N` bytes are room for most of them, more take a hasher. What is hashed for every
/// event is short, and a replay is mostly this.
fn keyed<const N: usize>(key: &Key, parts: &[&[u8]]) -> Digest {
    let mut buffer = [0_u8; N];
    let mut end = 0;
    for part in parts {
        let Some(place) = buffer.get_mut(end..end + part.len()) else {
            let mut hasher = blake3::Hasher::new_keyed(key);
            for part in parts {
                hasher.update(part);
            }
            return Digest(*hasher.finalize().as_bytes());
        };
        place.copy_from_slice(part);
        end += part.len();
    }
    Digest(*blake3::keyed_hash(key, buffer.get(..end).unwrap_or_default()).as_bytes())
}

/// The key of a store's records; that of the last store is remembered, for a walk asks for one and the same.
fn record_key(store: StoreId) -> Key {
    thread_local!(static LAST: Cell<Option<(StoreId, Key)>> = const { Cell::new(None) });
    match LAST.get() {
        Some((last, key)) if last == store => key,
        Some(_) | None => {
            let key = blake3::derive_key("throughline record 1", store.0.as_bytes());
            LAST.set(Some((store, key)));
            key
        }
    }
}

static CHAIN: LazyLock<Key> = LazyLock::new(|| blake3::derive_key("throughline chain 1", b""));
static STREAM_CHAIN: LazyLock<Key> = LazyLock::new(|| blake3::derive_key("throughline stream chain 1", b""));

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
    /// Under a key of the store: version, time, schema, the lengths of stream and kind (little-endian, of fixed width), then
    /// stream, kind and body. No two contents have the same bytes.
    pub(super) fn record(&self, store: StoreId) -> Digest {
        let length = |text: &str| u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes();
        let parts: [&[u8]; 8] = [
            &self.version.to_le_bytes(),
            &self.at_ms.to_le_bytes(),
            &self.schema.to_le_bytes(),
            &length(self.stream),
            &length(self.kind),
            self.stream.as_bytes(),
            self.kind.as_bytes(),
            self.body,
        ];
        keyed::<512>(&record_key(store), &parts)
    }
}

/// The next link of the chain over the whole log.
pub(super) fn link(previous: &Digest, record: &Digest) -> Digest {
    keyed::<64>(&CHAIN, &[&previous.0, &record.0])
}

/// The next link of one stream's chain.
pub(super) fn stream_link(previous: &Digest, record: &Digest) -> Digest {
    keyed::<64>(&STREAM_CHAIN, &[&previous.0, &record.0])
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
        for length in [0, 1, 63, 64, 65, 1022, 1023, 1024, 5000] {
            let part = vec![7; length];
            let whole = [part.as_slice(), b"x"].concat();
            let expected = blake3::keyed_hash(&CHAIN, &whole);
            assert_eq!(keyed::<1024>(&CHAIN, &[&part, b"x"]), Digest(*expected.as_bytes()), "{length}");
        }
    }

    #[test]
    fn no_two_contents_have_the_same_record() {
        let content = |stream, kind, body| Content { stream, version: 1, at_ms: 0, kind, schema: 1, body };
        let store = StoreId(uuid::Uuid::nil());
        let all = [
            content("agent/a", "b", b"c"),
            content("agent/ab", "", b"c"),
            content("agent/a", "bc", b""),
            content("agent/", "ab", b"c"),
        ];
        let digests: std::collections::BTreeSet<_> = all.iter().map(|content| content.record(store)).collect();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn the_domains_are_apart() {
        let (a, b) = (Digest::plain(b"a"), Digest::plain(b"b"));
        assert_ne!(link(&a, &b), stream_link(&a, &b));
        let stores = [1, 2].map(|number| record_key(StoreId(uuid::Uuid::from_u128(number))));
        assert_ne!(stores[0], stores[1]);
        assert!(!stores.contains(&CHAIN) && !stores.contains(&STREAM_CHAIN));
    }
}
