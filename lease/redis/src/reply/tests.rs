use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn bulk(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

fn array(values: &[Value]) -> Value {
    Value::Array(values.to_vec())
}

fn fence(value: u64) -> Fence {
    Fence::new(value).unwrap()
}

#[test]
fn the_scripts_own_replies_are_read() {
    let acquired = array(&[bulk("ACQUIRED"), bulk("42"), Value::Int(1), bulk("report-0")]);
    let expected = AcquireReply::Acquired {
        fence: fence(42),
        clean: true,
        previous_holder: Some("report-0".to_owned()),
    };
    assert_eq!(AcquireReply::parse(&acquired), Ok(expected));

    let held = array(&[bulk("HELD"), Value::Int(-1), bulk("0"), bulk("")]);
    let expected = AcquireReply::Held { remaining: None, highest: None, holder: None };
    assert_eq!(AcquireReply::parse(&held), Ok(expected));

    let renewed = array(&[bulk("RENEWED"), Value::Int(9_999), bulk("1796000000"), bulk("999999")]);
    let expected = RenewReply::Renewed {
        found: Some(Duration::from_millis(9_999)),
        server_time: Duration::new(1_796_000_000, 999_999_000),
    };
    assert_eq!(RenewReply::parse(&renewed), Ok(expected));

    assert_eq!(ReleaseReply::parse(&array(&[bulk("NOT_OWNER")])), Ok(ReleaseReply::NotOwner));
    let unpublished = array(&[bulk("RELEASED"), Value::Int(-1)]);
    assert_eq!(ReleaseReply::parse(&unpublished), Ok(ReleaseReply::Released { listeners: None }));
}

#[test]
fn a_reply_of_another_shape_is_an_error() {
    let ok = Value::Okay;
    let acquisitions = [
        ok.clone(),
        Value::Nil,
        array(&[]),
        bulk("ACQUIRED"),
        array(&[Value::Okay, bulk("42"), Value::Int(1), bulk("")]),
        // A fence that is missing, zero, too long, with an exponent, negative, or a number instead of text.
        array(&[bulk("ACQUIRED")]),
        array(&[bulk("ACQUIRED"), bulk("0"), Value::Int(1), bulk("")]),
        array(&[bulk("ACQUIRED"), bulk("1000000000000000"), Value::Int(1), bulk("")]),
        array(&[bulk("ACQUIRED"), bulk("1.2345678901234e+14"), Value::Int(1), bulk("")]),
        array(&[bulk("ACQUIRED"), bulk("-1"), Value::Int(1), bulk("")]),
        array(&[bulk("ACQUIRED"), Value::Int(42), Value::Int(1), bulk("")]),
        // Neither clean nor unclean.
        array(&[bulk("ACQUIRED"), bulk("42"), Value::Int(2), bulk("")]),
        array(&[bulk("ACQUIRED"), bulk("42"), Value::Nil, bulk("")]),
        // Too much.
        array(&[bulk("ACQUIRED"), bulk("42"), Value::Int(1), bulk(""), bulk("")]),
        // A lease that has expired is not held.
        array(&[bulk("HELD"), Value::Int(-2), bulk("42"), bulk("")]),
    ];
    for reply in acquisitions {
        AcquireReply::parse(&reply).unwrap_err();
    }
    let renewals = [
        ok,
        array(&[bulk("RENEWED")]),
        array(&[bulk("RENEWED"), Value::Int(-2), bulk("1"), bulk("1")]),
        array(&[bulk("RENEWED"), Value::Int(5), bulk("1"), bulk("1000000")]),
        array(&[bulk("RENEWED"), Value::Int(5), bulk("18446744073709551615"), bulk("1")]),
        array(&[bulk("renewed"), Value::Int(5), bulk("1"), bulk("1")]),
        array(&[bulk("ACQUIRED"), bulk("42"), Value::Int(1), bulk("")]),
    ];
    for reply in renewals {
        RenewReply::parse(&reply).unwrap_err();
    }
    ReleaseReply::parse(&array(&[bulk("RELEASED"), Value::Int(-2)])).unwrap_err();
    ReleaseReply::parse(&array(&[bulk("RELEASED")])).unwrap_err();
}

#[test]
fn an_unexpected_reply_is_quoted_and_cut_short() {
    let error = RenewReply::parse(&bulk(&"x".repeat(10_000))).unwrap_err().to_string();
    assert!(error.starts_with("expected RENEWED"), "{error}");
    assert!(error.len() < 400, "{} characters", error.len());
}

#[test]
fn every_answer_to_a_renewal_but_one_is_a_loss() {
    let renewed = RenewReply::Renewed { found: None, server_time: Duration::ZERO };
    assert_eq!(renewed.loss(), None);
    let losses = [
        (RenewReply::SequenceLost { found: None }, LossReason::SequenceLost),
        (RenewReply::KeyGone { highest: Some(fence(7)) }, LossReason::KeyGone),
        (
            RenewReply::OtherOwner { remaining: None, highest: None, holder: Some("report-1".to_owned()) },
            LossReason::OtherOwner,
        ),
    ];
    for (reply, reason) in losses {
        let (found, _) = reply.loss().unwrap();
        assert_eq!(found, reason);
        assert!(found.is_stated_by_redis());
    }
}

#[test]
fn a_stored_sequence_is_shown_as_it_is() {
    assert_eq!(Sequence::of(""), Sequence::Empty);
    assert_eq!(Sequence::of("0"), Sequence::Empty);
    assert_eq!(Sequence::of("41"), Sequence::At(fence(41)));
    for text in ["041", "-1", "1e14", "1000000000000000", " 1"] {
        assert_eq!(Sequence::of(text), Sequence::Invalid(text.to_owned()));
    }
}

#[test]
fn a_holder_text_cannot_break_a_log_line() {
    let reply = array(&[bulk("HELD"), Value::Int(1), bulk("1"), bulk("pod\n\u{1b}[31mred")]);
    let expected = AcquireReply::Held {
        remaining: Some(Duration::from_millis(1)),
        highest: Some(fence(1)),
        holder: Some("pod[31mred".to_owned()),
    };
    assert_eq!(AcquireReply::parse(&reply), Ok(expected));
}

fn any_leaf() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("ACQUIRED"),
        Just("HELD"),
        Just("RENEWED"),
        Just("SEQUENCE_LOST"),
        Just("OTHER_OWNER"),
        Just("KEY_GONE"),
        Just("RELEASED"),
        Just("NOT_OWNER"),
    ];
    prop_oneof![
        3 => word.prop_map(bulk),
        2 => (0..2_000_000_000_000_000_u64).prop_map(|number| bulk(&number.to_string())),
        1 => vec(any::<u8>(), 0..24).prop_map(Value::BulkString),
        3 => (-3_i64..3).prop_map(Value::Int),
        1 => any::<i64>().prop_map(Value::Int),
        1 => Just(Value::Nil),
        1 => Just(Value::Okay),
        1 => any::<f64>().prop_map(Value::Double),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => ".{0,12}".prop_map(Value::SimpleString),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    any_leaf().prop_recursive(2, 24, 8, |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 0..8).prop_map(Value::Array),
            1 => vec(inner.clone(), 0..4).prop_map(Value::Set),
            1 => vec((inner.clone(), inner), 0..3).prop_map(Value::Map),
        ]
    })
}

/// What a script would have answered to be read as this.
fn acquire_reply(reply: &AcquireReply) -> [Value; 4] {
    let sequence = |fence: &Option<Fence>| fence.map_or_else(|| bulk("0"), |fence| bulk(&fence.to_string()));
    match reply {
        AcquireReply::Acquired { fence, clean, previous_holder } => [
            bulk("ACQUIRED"),
            bulk(&fence.to_string()),
            Value::Int(i64::from(*clean)),
            bulk(previous_holder.as_deref().unwrap_or_default()),
        ],
        AcquireReply::Held { remaining, highest, holder } => {
            let ttl = remaining.map_or(-1, |remaining| i64::try_from(remaining.as_millis()).unwrap());
            let holder = bulk(holder.as_deref().unwrap_or_default());
            [bulk("HELD"), Value::Int(ttl), sequence(highest), holder]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn no_value_makes_the_parser_fail_otherwise_than_by_an_error(value in any_value()) {
        let word = match &value {
            Value::Array(values) => values.first().cloned(),
            _ => None,
        };
        let acquired = AcquireReply::parse(&value).is_ok();
        prop_assert!(!acquired || word == Some(bulk("ACQUIRED")) || word == Some(bulk("HELD")));
        if let Ok(RenewReply::Renewed { .. }) = RenewReply::parse(&value) {
            prop_assert_eq!(&word, &Some(bulk("RENEWED")));
        }
        if let Ok(ReleaseReply::Released { .. }) = ReleaseReply::parse(&value) {
            prop_assert_eq!(&word, &Some(bulk("RELEASED")));
        }
        let _ = Inspection::parse(&value);
    }

    #[test]
    fn what_is_read_is_what_was_said(
        number in 1..=Fence::MAX.get(),
        left in proptest::option::of(0..i64::MAX as u64),
        clean in any::<bool>(),
        held in any::<bool>(),
        holder in proptest::option::of("[a-z0-9-]{1,63}"),
    ) {
        let reply = if held {
            let remaining = left.map(Duration::from_millis);
            AcquireReply::Held { remaining, highest: Some(fence(number)), holder }
        } else {
            AcquireReply::Acquired { fence: fence(number), clean, previous_holder: holder }
        };
        prop_assert_eq!(AcquireReply::parse(&array(&acquire_reply(&reply))), Ok(reply));
    }

    #[test]
    fn one_part_more_or_less_is_an_error(
        number in 1..=Fence::MAX.get(),
        clean in any::<bool>(),
        missing in 0_usize..4,
        extra in any_leaf(),
    ) {
        let reply = AcquireReply::Acquired { fence: fence(number), clean, previous_holder: None };
        let mut parts = acquire_reply(&reply).to_vec();
        parts.push(extra);
        prop_assert!(AcquireReply::parse(&Value::Array(parts.clone())).is_err());
        parts.pop();
        parts.remove(missing);
        prop_assert!(AcquireReply::parse(&Value::Array(parts)).is_err());
    }
}
