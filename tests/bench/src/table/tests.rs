use super::*;

fn line(figure: f64, bound: Bound) -> Line {
    Line { what: "a".to_owned(), of: "1 and 2".to_owned(), figure, unit: "×", bound }
}

#[test]
fn a_bound_is_kept_on_its_own_side() {
    assert_eq!(line(0.8, Bound::AtLeast(0.8)).verdict(), "OK");
    assert_eq!(line(0.79, Bound::AtLeast(0.8)).verdict(), "below the bound");
    assert_eq!(line(0.3, Bound::AtMost(0.3)).verdict(), "OK");
    assert_eq!(line(0.31, Bound::AtMost(0.3)).verdict(), "above the bound");
    assert_eq!(line(9.0, Bound::None).verdict(), "");
}

#[test]
fn columns_stand_under_each_other() {
    let lines =
        vec![line(1.0, Bound::AtLeast(0.8)), Line { what: "longer".to_owned(), ..line(12.5, Bound::None) }];
    let text = Table { title: "Title".to_owned(), lines }.to_string();
    assert_eq!(
        text,
        "\nTitle\n  a       1 and 2      1.000 ×   ≥ 0.8    OK\n  longer  1 and 2     12.500 ×\n"
    );
}
