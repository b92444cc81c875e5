//! Every target over its corpus, and over the same mutations of it each time.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use fencedlease_fuzz::corpus::inputs;
use fencedlease_fuzz::mutate::Mutator;
use fencedlease_fuzz::{TARGETS, Target, target};

const SEED: u64 = 7;
/// More files than anybody looks at would hide what they are for.
const MOST_INPUTS: usize = 200;

/// The corpus first, then so many mutations of it.
fn check(name: &str, mutations: usize) {
    let target = target(name).unwrap();
    let inputs = inputs(name).unwrap();
    assert!(inputs.len() >= 5, "{name} has {} inputs", inputs.len());
    for input in &inputs {
        give(target, &input.bytes, &input.path.display().to_string());
    }
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|input| input.bytes).collect();
    let mut mutator = Mutator::new(SEED);
    for number in 0..mutations {
        let input = mutator.mutate(&inputs, target.words);
        give(target, &input, &format!("mutation {number}"));
    }
}

fn give(target: Target, input: &[u8], which: &str) {
    let stood = catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok();
    assert!(stood, "{} fails at {which}: b\"{}\"", target.name, input.escape_ascii());
}

#[test]
fn replies_of_redis() {
    check("replies", 10_000);
}

#[test]
fn requests_to_the_applications_socket() {
    check("socket", 400);
}

#[test]
fn words_of_guards() {
    check("guard-words", 3000);
}

#[test]
fn annotations_and_labels() {
    check("annotations", 3000);
}

#[test]
fn admission_reviews() {
    check("admission", 400);
}

#[test]
fn heads_of_requests_to_a_gate() {
    check("gate", 3000);
}

#[test]
fn the_corpora_are_few_small_files() {
    let all: Vec<_> = TARGETS.iter().flat_map(|target| inputs(target.name).unwrap()).collect();
    assert!(all.len() <= MOST_INPUTS, "{} inputs", all.len());
    let large = all.iter().find(|input| input.bytes.len() > 8192);
    assert!(large.is_none(), "{large:?}");
}

#[test]
fn the_same_seed_makes_the_same_inputs_and_another_makes_others() {
    let inputs = inputs("gate").unwrap().into_iter().map(|input| input.bytes).collect::<Vec<_>>();
    let made = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..100).map(|_| mutator.mutate(&inputs, &["word"])).collect::<Vec<_>>()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
}
