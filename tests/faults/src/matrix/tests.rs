use super::*;

fn seen(number: u8, outcome: &str) -> Shown {
    Shown { number, file: "tests/x.rs".into(), test: "a::the_guard_acts".into(), outcome: outcome.into() }
}

#[test]
fn numbers_stand_once_and_in_order() {
    let numbers: Vec<u8> = ROWS.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=55).collect::<Vec<_>>());
}

#[test]
fn a_row_stands_in_the_table_where_a_test_showed_it_and_below_where_none_did() {
    let page = page(&[seen(30, "5 of 5 | in time")]);
    assert!(page.contains("| 30 | the sidecar is stopped | "), "{page}");
    assert!(page.contains(" | 5 of 5 \\| in time | `tests/x.rs` the guard acts |\n"), "{page}");
    assert!(page.contains("\n- 31: the sidecar is killed or panics\n") && !page.contains("- 30:"), "{page}");
}

#[test]
fn what_a_test_kept_is_read_again_and_a_number_without_a_row_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(shown(&[56], "nothing").unwrap_err().to_string().contains("no row 56"));
    for it in [seen(31, "b"), seen(30, "a")] {
        fs::write(folder.path().join(format!("{}.json", it.number)), serde_json::to_vec(&it).unwrap())
            .unwrap();
    }
    fs::write(folder.path().join("31.123"), "cut sh").unwrap();
    assert_eq!(read(folder.path()).unwrap(), [seen(30, "a"), seen(31, "b")]);
    fs::write(folder.path().join("x.json"), "{}").unwrap();
    assert!(read(folder.path()).is_err());
}
