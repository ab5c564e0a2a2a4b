//! That events, digests and bytes are what the format says: of a log that every store writes alike.

use super::breach::{Breach, Make, Rule, rule, same};
use super::say::{Desk, STORE, all, because, blank, ended, entry, fresh, hook};
use crate::id::{Anchor, Digest, Frontier, Seq, StoreId, Version};
use crate::log::{Append, Recorded};

pub(super) const RULES: &[Rule] = &[
    rule!(an_event_comes_back_as_given, "An event is read as it was given, to the last blank."),
    rule!(a_body_is_canonical, "The stored body is the event's canonical bytes."),
    rule!(records_are_what_the_format_says, "A record's digest is the known one of a known event in a known log."),
    rule!(records_are_of_their_store, "The same event has another record in another log."),
    rule!(chains_are_what_the_format_says, "The chain over the log is the known one of a known log."),
    rule!(stream_chains_are_what_the_format_says, "The chain over each stream is the known one of a known log."),
    rule!(long_chains_hold, "Every digest of a longer log follows from the event and the digests before it."),
    rule!(an_anchor_is_the_last_place_and_chain, "The anchor is the place of the last event and the chain there."),
    rule!(an_empty_log_has_the_empty_chain, "The chain is 32 zero bytes where there is no event, and only there."),
];

/// The id of the known log.
pub(super) const KNOWN: StoreId = StoreId(uuid::Uuid::nil());

/// The known log. Its digests below were computed from the words of the format, by other code than the crate's.
pub(super) fn known(make: &Make<'_>) -> Result<Desk, Breach> {
    let desk = Desk::of(make, KNOWN)?;
    for (at_ms, stream, event) in [
        (1, "agent/a", fresh("p")),
        (2, "hook/a", hook("s")),
        (1_700_000_000_000, "agent/a", ended(7)),
        (4, "agent/b", fresh("é\"")),
        (5, "hook/a", hook("t")),
    ] {
        desk.log.append(&[entry(stream, vec![event])], &Append::at(at_ms))?;
    }
    Ok(desk)
}

/// Record, chain and stream chain of each event of the known log.
pub(super) const DIGESTS: [[&str; 3]; 5] = [
    [
        "9726381e7825a27dac956048cf8315038131a1236203c29f4d37460639d5d36f",
        "8294d2c8cdb565de221cb0b2f01e2124adffbf52bb7abc19aea323128da7791e",
        "8110959f570139cbf1d30c14a1c31414cc05a70cbde07c152d08261a560ccb41",
    ],
    [
        "224267ebd9f6edbdfbe8e78704723634a31789ceb6273f9ba47ad28f98ccbb40",
        "1e8aa808e982ddf5dc6a97fd7c34410bc3b55d2a00ff669794b5b403dd5bafb7",
        "b52b014152b4dcdae84e80b69e5d70454806235c19a694036f8b260527fdee38",
    ],
    [
        "0270faa62a58d96c5d80b5944b37c73d00f2655b1faf1568fb33da6434ce8f2f",
        "567f7285224c39c7bf690c7f0f1487b435f320643557a839819f9099485b3679",
        "812f027c28dcb166c08a0c1d3b384645d590f48e9665471d92b0734f73176633",
    ],
    [
        "3528ce240648f7782e8544a7e6be3b471281366ab7870bdd0491be21b196e18f",
        "5a2c671bafd97e807df0532e99c3777380d2f68d6878ef6712b15978085522df",
        "29b938a2b5bd5746bcdfb8cac0aabbbedb1351166fc1d9a165814bedda1f9bd5",
    ],
    [
        "b09221a08e5007e32568de887f2ed5f6c23d5d4ae511a9827fad9b7a3520c7cf",
        "c08dff6886b29cae7979cf3a2bf5295d06f86febe07c07eb6e4230ddb045703e",
        "3a86ffeb2a921e7fc762b4a73778ce1afa7e6a25f3f74938bf83a4e8c27f27f6",
    ],
];

fn are_known(make: &Make<'_>, which: usize, of: fn(&Recorded) -> Digest) -> Result<(), Breach> {
    let found: Vec<String> = all(known(make)?.records())?.iter().map(|event| of(event).to_string()).collect();
    same("the digests", &found, &DIGESTS.map(|digests| digests[which].to_owned()).to_vec())
}

fn records_are_what_the_format_says(make: &Make<'_>) -> Result<(), Breach> {
    are_known(make, 0, |event| event.record)
}

fn chains_are_what_the_format_says(make: &Make<'_>) -> Result<(), Breach> {
    are_known(make, 1, |event| event.chain)
}

fn stream_chains_are_what_the_format_says(make: &Make<'_>) -> Result<(), Breach> {
    are_known(make, 2, |event| event.stream_chain)
}

fn an_event_comes_back_as_given(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for event in [fresh(" p "), because("line\r\nline\t\u{0}", 1)] {
        desk.put("agent/a", vec![event.clone()])?;
        let last = all(desk.records())?.pop().map(|last| last.event);
        same("an event", &last, &Some(event))?;
    }
    Ok(())
}

fn a_body_is_canonical(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![because("é\u{1}\"", 7)])?;
    let last = all(desk.records())?.pop();
    let body = last.map(|last| String::from_utf8_lossy(&last.body).into_owned());
    same("a body", &body, &Some(r#"{"epoch":7,"reason":"é\u0001\"","segment":"s"}"#.to_owned()))
}

fn records_are_of_their_store(make: &Make<'_>) -> Result<(), Breach> {
    let mut records = Vec::new();
    for number in [0xfe, 0xff] {
        let desk = Desk::of(make, StoreId(uuid::Uuid::from_u128(number)))?;
        desk.put("agent/a", vec![blank()])?;
        records.extend(all(desk.records())?.iter().map(|event| event.record));
    }
    match records[..] {
        [one, other] if one != other => Ok(()),
        _ => Err(Breach::new("the records of one event in two logs", "two digests", &records)),
    }
}

fn long_chains_hold(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for number in 0..40 {
        let stream = ["agent/a", "agent/b", "agent/c"][number % 3];
        desk.put(stream, vec![fresh(&number.to_string()), blank()])?;
    }
    let mut before = Anchor { seq: Seq(0), chain: Digest::GENESIS };
    let mut ends = std::collections::BTreeMap::new();
    for event in all(desk.records())? {
        let stream = ends.entry(event.stream.clone()).or_insert_with(|| Frontier {
            stream: (*event.stream).clone(),
            version: Version(0),
            chain: Digest::GENESIS,
        });
        let next = Recorded::next(STORE, &before, stream, event.at_ms, event.event.clone());
        let next = next.map_err(|error| Breach::new("an event", "canonical bytes", &error))?;
        let digests = |event: &Recorded| [event.record, event.chain, event.stream_chain];
        same(&format!("the digests of event {}", event.seq), &digests(&event), &digests(&next))?;
        before = Anchor { seq: next.seq, chain: next.chain };
        (stream.version, stream.chain) = (next.version, next.stream_chain);
    }
    Ok(())
}

fn an_anchor_is_the_last_place_and_chain(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for stream in ["agent/a", "agent/b", "agent/a"] {
        desk.put(stream, vec![blank()])?;
        let last = all(desk.records())?.pop().map(|last| Anchor { seq: last.seq, chain: last.chain });
        same("the anchor", &Some(desk.records().anchor()?), &last)?;
    }
    Ok(())
}

fn an_empty_log_has_the_empty_chain(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    same("the anchor", &desk.records().anchor()?, &Anchor { seq: Seq(0), chain: Digest::GENESIS })?;
    desk.put("agent/a", vec![blank()])?;
    let chain = desk.records().anchor()?.chain;
    if chain == Digest::GENESIS { Err(Breach::new("the chain of an event", "not zeros", &chain)) } else { Ok(()) }
}
