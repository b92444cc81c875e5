//! Small random changes to inputs, the same ones for the same seed.

/// Inputs do not grow beyond this, in bytes.
const MOST_BYTES: usize = 8192;
/// Numbers and letters at which parsers change their mind.
const EDGES: [&[u8]; 12] = [
    b"0",
    b"-1",
    b"1000000000000000",
    b"9223372036854775807",
    b"18446744073709551616",
    b"\r\n",
    b"\"",
    b"\\u0000",
    b"\xff",
    b"%2f",
    b"null",
    b"\xe2\x80\xa6",
];

/// What makes the changes.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// One that does the same as every other of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// One of `inputs` with up to four changes; `words` are what may be put in.
    pub fn mutate(&mut self, inputs: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        let mut bytes = self.one_of(inputs).cloned().unwrap_or_default();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, inputs, words);
        }
        bytes.truncate(MOST_BYTES);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, inputs: &[Vec<u8>], words: &[&str]) {
        let start = self.below(bytes.len() + 1);
        let end = (start + self.below(16)).min(bytes.len());
        match self.below(7) {
            0 => drop(bytes.drain(start..end)),
            1 => {
                let again = bytes[start..end].to_vec();
                bytes.splice(start..start, again);
            }
            2 => {
                if let Some(byte) = bytes.get_mut(start) {
                    *byte ^= 1 << self.below(8);
                }
            }
            3 => {
                let byte = u8::try_from(self.below(256)).unwrap_or_default();
                bytes.insert(start, byte);
            }
            4 => {
                let edge = self.one_of(&EDGES).copied().unwrap_or_default();
                bytes.splice(start..end, edge.iter().copied());
            }
            5 => {
                let word = self.one_of(words).copied().unwrap_or_default();
                bytes.splice(start..end, word.bytes());
            }
            _ => {
                let other = self.one_of(inputs).cloned().unwrap_or_default();
                let from = self.below(other.len() + 1);
                bytes.truncate(start);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len().max(1)))
    }

    /// Below `most`, by `SplitMix64`.
    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % most as u64).unwrap_or_default()
    }
}
