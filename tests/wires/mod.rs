//! The reader and each wire format on randomly damaged streams, byte by byte and event by event.
//!
//! `FLEDGE_TEST_ALL=1 cargo test --release --test it wires::` tries many more cases.

mod damage;
mod judge;
mod oracle;
mod streams;

use crate::support::{Dice, amount, dice, record_time};
use damage::damaged;
use fledge::provider::{FramingFormat, WireFormat};

/// Runs a case with one seed after another.
fn for_a_while(mut case: impl FnMut(u64)) {
    record_time();
    let mut dice = dice("damage");
    for _ in 0..amount(1_500, 100_000) {
        case(dice.throw());
    }
}

/// Damages valid streams of a wire format and checks the answers.
fn damage_of(kind: &WireFormat) {
    let valid = streams::of(kind);
    let mut replies = 0_u64;
    for_a_while(|seed| {
        let mut dice = Dice::new(seed);
        let bytes = damaged(&valid, &mut dice);
        replies += u64::from(judge::judged(kind, &bytes, &mut dice, seed));
    });
    assert!(replies > 10, "nearly nothing came through: the damage is too great to say anything");
}

#[test]
fn damaged_streams_of_anthropic_give_nothing_that_was_not_said() {
    damage_of(&WireFormat::Anthropic);
}

#[test]
fn damaged_streams_of_chat_completions_give_nothing_that_was_not_said() {
    damage_of(&WireFormat::OpenAi);
}

#[test]
fn damaged_streams_of_responses_give_nothing_that_was_not_said() {
    damage_of(&WireFormat::OpenAiResponses);
}

#[test]
fn damaged_streams_of_ollama_give_nothing_that_was_not_said() {
    damage_of(&WireFormat::Ollama);
}

#[test]
fn the_reader_finds_the_events_that_a_simple_one_finds() {
    let valid: Vec<Vec<u8>> = streams::KINDS.iter().flat_map(streams::of).collect();
    for_a_while(|seed| {
        let mut dice = Dice::new(seed);
        let bytes = damaged(&valid, &mut dice);
        for form in [FramingFormat::Events, FramingFormat::Lines] {
            let simple = oracle::events(form, &bytes);
            assert_eq!(judge::read(form, [&bytes[..]]), simple, "{form:?}, seed {seed}");
            assert_eq!(judge::read(form, dice.cut(&bytes)), simple, "{form:?} cut, seed {seed}");
        }
    });
}

#[test]
fn every_valid_stream_is_a_reply_and_no_beginning_of_it_is() {
    for kind in streams::KINDS {
        for bytes in streams::of(&kind) {
            let mut dice = Dice::new(1);
            assert!(judge::judged(&kind, &bytes, &mut dice, 0), "{kind:?}");
            for cut in 0..bytes.trim_ascii_end().len() {
                assert!(!judge::judged(&kind, &bytes[..cut], &mut dice, 0), "{kind:?} cut at {cut}");
            }
        }
    }
}
