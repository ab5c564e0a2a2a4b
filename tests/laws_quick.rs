//! A second opinion by another tool on flat values: ids, digests, canonical bytes, slugs.

use quickcheck::{QuickCheck, quickcheck};
use serde_json::Value;
use throughline::event::canonical;
use throughline::id::{AgentId, Anchor, Digest, Seq, SessionId, StreamName};
use throughline::provider::claude::slug;

quickcheck! {
    fn an_id_that_parses_prints_and_parses_back(text: String) -> bool {
        let agent = AgentId::parse(text.clone()).is_ok_and(|id| AgentId::parse(id.to_string()) != Ok(id));
        let session = SessionId::parse(text).is_ok_and(|id| SessionId::parse(id.to_string()) != Ok(id));
        !agent && !session
    }

    fn a_session_id_never_names_another_folder(text: String) -> bool {
        let Ok(id) = SessionId::parse(text) else { return true };
        std::path::Path::new("/d").join(format!("{id}.jsonl")).parent() == Some(std::path::Path::new("/d"))
    }

    fn a_digest_survives_printing(bytes: Vec<u8>) -> bool {
        let digest = Digest::plain(&bytes);
        digest.to_string().parse() == Ok(digest)
    }

    fn parts_of_a_digest_are_told_apart(parts: Vec<Vec<u8>>, at: usize) -> bool {
        let all: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        if all.len() < 2 { return true; }
        let at = at % (all.len() - 1);
        let joined = [all[at], all[at + 1]].concat();
        let mut fewer = all.clone();
        fewer.splice(at..=at + 1, [joined.as_slice()]);
        Digest::of("d", &all) != Digest::of("d", &fewer)
    }

    fn an_anchor_survives_printing(seq: u64, bytes: Vec<u8>) -> bool {
        let anchor = Anchor { seq: Seq(seq.max(1)), chain: Digest::plain(&bytes) };
        anchor.to_string().parse() == Ok(anchor)
    }

    fn a_stream_name_survives_printing(family: u8, uid: u16) -> bool {
        let text = format!("{}/u-{uid}", ["agent", "audit", "hook"][usize::from(family % 3)]);
        text.parse::<StreamName>().is_ok_and(|name| name.to_string() == text)
    }

    fn canonical_bytes_are_a_fixed_point(text: String, number: i64, keys: Vec<String>) -> bool {
        let mut value = serde_json::json!({"t": text, "n": number});
        for key in keys {
            value[key] = Value::Array(vec![Value::Null, number.into()]);
        }
        let Ok(bytes) = canonical::write(&value) else { return false };
        let Ok(again) = canonical::parse(&bytes) else { return false };
        again == value && canonical::write(&again).is_ok_and(|twice| twice == bytes)
    }

    fn a_slug_is_ascii_bounded_and_one_dash_a_unit(path: String) -> bool {
        let slug = slug(&path);
        let units = path.encode_utf16().count();
        slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && if units <= 200 { slug.len() == units } else { slug.len() > 200 && slug.len() <= 208 }
    }
}

/// Folds the case of what it prints: a wrong id that the first law must catch.
#[test]
fn canary_an_id_that_folds_case_does_not_survive_printing() {
    fn law(text: String) -> bool {
        let Ok(id) = AgentId::parse(text) else { return true };
        AgentId::parse(id.to_string().to_lowercase()) == Ok(id)
    }
    let found = QuickCheck::new().tests(50_000).quicktest(law as fn(String) -> bool);
    assert!(found.is_err(), "the law says nothing");
}
