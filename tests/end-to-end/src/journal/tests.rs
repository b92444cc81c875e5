use anyhow::Result;

use super::Journal;

#[test]
fn fences_that_follow_each_other_are_turns() -> Result<()> {
    let journal = Journal::parse("1\n1\n4\n4\n5\n")?;
    assert_eq!(journal.turns()?, [1, 4, 5]);
    assert!(journal.has(4) && !journal.has(2));
    assert!(Journal::parse("")?.turns()?.is_empty());
    Ok(())
}

#[test]
fn a_write_below_one_that_arrived_before_is_two_at_once() -> Result<()> {
    let error = Journal::parse("1\n2\n1\n2\n")?.turns().unwrap_err();
    assert_eq!(error.to_string(), "fence 1 wrote after fence 2: [1, 2]");
    assert!(Journal::parse("1\nnone\n").is_err());
    Ok(())
}
