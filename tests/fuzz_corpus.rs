//! What the fuzz targets search, replayed: their kept inputs, and arbitrary ones.

use std::path::Path;

use proptest::prelude::*;
use throughline::event::check_decode;
use throughline::provider::claude::check_scan;

fn kept(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(dir).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).expect("an input")).collect()
}

#[test]
fn the_kept_inputs_of_each_fuzz_target_hold() {
    for (target, check, least) in [("event_decode", check_decode as fn(&[u8]), 4), ("record_tail", check_scan, 4)] {
        let inputs = kept(target);
        assert!(inputs.len() >= least, "{target} has {} inputs", inputs.len());
        inputs.iter().for_each(|input| check(input));
    }
}

#[cfg(feature = "sim")]
#[test]
fn the_kept_worlds_hold() {
    let inputs = kept("worlds");
    assert!(inputs.len() >= 5, "{} inputs", inputs.len());
    inputs.iter().for_each(|input| throughline::sim::random::check_world(input));
}

#[cfg(feature = "sim")]
proptest! {
    #![proptest_config(ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(300) })]

    /// The theorem over arbitrary worlds: log, disk, question, what the agent does, and who interferes when.
    #[test]
    fn arbitrary_worlds_hold(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        throughline::sim::random::check_world(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { source_file: Some(file!()), ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_scan(&bytes);
        check_decode(&[b"agent/a spawned\n", bytes.as_slice()].concat());
    }

    /// Pieces of records, so that the interesting states are reached: values over lines, cuts, NULs, cycles.
    #[test]
    fn arbitrary_pieces_of_records_hold(pieces in prop::collection::vec(0_usize..12, 0..30)) {
        const PIECES: [&str; 12] = [
            "{\"type\":\"user\",\"message\":{}", ",\"uuid\":\"a\"", ",\"uuid\":\"b\"", ",\"parentUuid\":\"a\"", ",\"parentUuid\":null",
            ",\"isSidechain\":true", "}\n", "}", "\n", "\0\0", "[", "{\"type\":\"system\",\"subtype\":\"compact_boundary\"",
        ];
        let text: String = pieces.iter().map(|&index| PIECES[index]).collect();
        check_scan(text.as_bytes());
    }
}
