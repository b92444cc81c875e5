use super::parse;

#[test]
fn every_notation_of_kubernetes_is_read() {
    let cases = [
        ("128974848", 128_974_848.0),
        ("129e6", 129e6),
        ("129M", 129e6),
        ("123Mi", 128_974_848.0),
        ("1.5Gi", 1_610_612_736.0),
        ("2E", 2e18),
        ("64Ki", 65_536.0),
        ("100m", 0.1),
        ("0.5", 0.5),
        (".5", 0.5),
    ];
    for (text, value) in cases {
        let found = parse(text).unwrap();
        assert!((found - value).abs() < 1e-9, "{text} is {value}, not {found}");
    }
}

#[test]
fn what_kubernetes_refuses_is_refused() {
    for text in ["", "Mi", ".", "-1", "+1", "1 Gi", "1Gb", "1gi", "1.2.3", "1e", "NaN", "inf", "1e999"] {
        assert_eq!(parse(text), None, "{text}");
    }
}
