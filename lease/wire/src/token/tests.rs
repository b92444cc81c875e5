use super::*;

#[test]
fn a_token_is_its_bits_in_hexadecimal() {
    let token = OwnerToken::from_random([0x0f; 16]);
    assert_eq!(token.as_str(), "0f".repeat(16));
    assert_eq!(token.as_str().parse::<OwnerToken>().unwrap(), token);
}

#[test]
fn a_token_never_shows_in_debug_output() {
    assert!(!format!("{:?}", OwnerToken::from_random([0xab; 16])).contains("abab"));
}

#[test]
fn other_lengths_and_letters_are_refused() {
    assert!("0F".repeat(16).parse::<OwnerToken>().is_err());
    assert!("0f".repeat(15).parse::<OwnerToken>().is_err());
    assert!("xy".repeat(8).parse::<HoldingId>().is_err());
}
