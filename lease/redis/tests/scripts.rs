//! What the scripts do, on a real Redis.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use std::time::Duration;

use fencedlease_faults::RedisServer;
use fencedlease_faults::matrix::shown;
use fencedlease_redis::{
    Acquire, AcquireReply, CallError, Client, Refusal, ReleaseReply, RenewReply, Sequence,
};
use support::{
    CLIENT_NAME, PATIENCE, TTL, acquire, client, fence, hold, hold_by, keys, new_token, place_as, user,
};

#[tokio::test]
async fn the_first_holder_gets_fence_1_and_the_lease_lasts_its_ttl() {
    let server = RedisServer::start().unwrap();
    let held = hold(&mut client(&server), "report-0").await;
    assert_eq!(held.fence, fence(1));
    assert_eq!((held.clean, held.previous_holder), (false, None));
    assert_eq!(server.cli(&["GET", &keys().lease]).unwrap(), held.token.as_str());
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "1");
    assert_eq!(server.cli(&["GET", &keys().holder]).unwrap(), "report-0");
    assert_eq!(server.cli(&["TTL", &keys().fence]).unwrap(), "-1");
    let left: u128 = server.cli(&["PTTL", &keys().lease]).unwrap().parse().unwrap();
    assert!((1..=TTL.as_millis()).contains(&left) && left > TTL.as_millis() - 5_000, "{left} ms");
}

#[tokio::test]
async fn a_held_lease_is_refused_with_its_ttl_sequence_and_holder_and_stays_as_it_is() {
    let server = RedisServer::start().unwrap();
    let held = hold(&mut client(&server), "report-0").await;
    let reply = client(&server).acquire(&acquire("report-1"), PATIENCE).await.unwrap();
    let AcquireReply::Held { remaining: Some(remaining), highest, holder } = reply else {
        panic!("{reply:?}")
    };
    assert!(remaining <= TTL && remaining + Duration::from_secs(5) > TTL, "{remaining:?}");
    assert_eq!((highest, holder.as_deref()), (Some(fence(1)), Some("report-0")));
    assert_eq!(server.cli(&["GET", &keys().lease]).unwrap(), held.token.as_str());
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "1");
}

#[tokio::test]
async fn a_lease_without_an_expiry_is_held_for_ever() {
    let server = RedisServer::start().unwrap();
    server.cli(&["SET", &keys().lease, "somebody"]).unwrap();
    let reply = client(&server).acquire(&acquire("report-1"), PATIENCE).await.unwrap();
    assert_eq!(reply, AcquireReply::Held { remaining: None, highest: None, holder: None });
}

#[tokio::test]
async fn the_next_holder_hears_who_it_was_before() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let first = hold(&mut client, "report-0").await;
    client.release(&first.release(true), PATIENCE).await.unwrap();
    let second = hold(&mut client, "report-1").await;
    assert_eq!(second.previous_holder.as_deref(), Some("report-0"));
    assert_eq!(second.fence, fence(2));
}

#[tokio::test]
async fn a_renewal_extends_and_tells_the_ttl_it_found_and_the_time_of_redis() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let short = Acquire { ttl: Duration::from_secs(5), ..acquire("report-0") };
    let held = hold_by(&mut client, short).await;
    let before: u64 = server.cli(&["TIME"]).unwrap().lines().next().unwrap().parse().unwrap();
    let reply = client.renew(&held.renew(), PATIENCE).await.unwrap();
    let RenewReply::Renewed { found: Some(found), server_time } = reply else { panic!("{reply:?}") };
    assert!(found <= Duration::from_secs(5) && found > Duration::from_secs(1), "{found:?}");
    assert!((before..before + 10).contains(&server_time.as_secs()), "{server_time:?} after {before}");
    let left: u128 = server.cli(&["PTTL", &keys().lease]).unwrap().parse().unwrap();
    assert!(left > 50_000, "{left} ms");
}

#[tokio::test]
async fn a_renewal_is_one_command_and_one_round_trip() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    // The slow log has each command that came over a connection, with the connection's name, and none that a
    // script ran.
    server.cli(&["CONFIG", "SET", "slowlog-max-len", "1000"]).unwrap();
    server.cli(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]).unwrap();
    for _ in 0..25 {
        client.renew(&held.renew(), PATIENCE).await.unwrap();
    }
    let log = server.cli(&["SLOWLOG", "GET", "-1"]).unwrap();
    assert_eq!(log.lines().filter(|line| *line == CLIENT_NAME).count(), 25, "{log}");
    let calls = |command: &str| {
        let stats = server.cli(&["INFO", "commandstats"]).unwrap();
        let start = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    assert_eq!((calls("eval"), calls("evalsha"), calls("script|load")), (25, 0, 0));
    assert_eq!((calls("pexpire"), calls("set"), calls("incr")), (25, 0, 0));
}

#[tokio::test]
async fn script_flush_while_held_ends_nobody() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    for _ in 0..3 {
        server.cli(&["SCRIPT", "FLUSH"]).unwrap();
        let reply = client.renew(&held.renew(), PATIENCE).await.unwrap();
        assert!(matches!(reply, RenewReply::Renewed { .. }), "{reply:?}");
    }
}

#[tokio::test]
async fn a_foreign_delete_is_told_as_no_lease() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    server.cli(&["DEL", &keys().lease]).unwrap();
    let reply = client.renew(&held.renew(), PATIENCE).await.unwrap();
    assert_eq!(reply, RenewReply::KeyGone { highest: Some(fence(1)) });
    assert_eq!(server.cli(&["EXISTS", &keys().lease]).unwrap(), "0");
}

#[tokio::test]
async fn another_owner_is_named_and_not_disturbed() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let old = hold(&mut client, "report-0").await;
    server.cli(&["DEL", &keys().lease]).unwrap();
    let new = hold_by(&mut client, Acquire { ttl: Duration::from_secs(20), ..acquire("report-1") }).await;
    assert!(new.fence > old.fence);
    let reply = client.renew(&old.renew(), PATIENCE).await.unwrap();
    let RenewReply::OtherOwner { remaining: Some(remaining), highest, holder } = reply else {
        panic!("{reply:?}")
    };
    assert!(remaining <= Duration::from_secs(20), "{remaining:?}");
    assert_eq!((highest, holder.as_deref()), (Some(new.fence), Some("report-1")));
    let reply = client.release(&old.release(true), PATIENCE).await.unwrap();
    assert_eq!(reply, ReleaseReply::NotOwner);
    assert_eq!(server.cli(&["GET", &keys().lease]).unwrap(), new.token.as_str());
    assert_eq!(server.cli(&["EXISTS", &keys().clean]).unwrap(), "0");
    let left: u64 = server.cli(&["PTTL", &keys().lease]).unwrap().parse().unwrap();
    assert!(left <= 20_000, "a renewal by somebody else extended it to {left} ms");
}

#[tokio::test]
async fn a_floor_is_passed_by_one_and_a_lower_one_changes_nothing() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    for (floor, expected) in [(41, 42), (7, 43), (43, 44), (1_000_000_000_000, 1_000_000_000_001)] {
        let held = hold_by(&mut client, Acquire { floor: Some(fence(floor)), ..acquire("report-0") }).await;
        assert_eq!(held.fence, fence(expected), "floor {floor}");
        client.release(&held.release(true), PATIENCE).await.unwrap();
    }
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "1000000000001");
}

#[tokio::test]
async fn the_last_fence_is_handed_out_once_and_then_none_is() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    server.cli(&["SET", &keys().fence, "999999999999998"]).unwrap();
    let held = hold(&mut client, "report-0").await;
    assert_eq!(held.fence.get(), 999_999_999_999_999);
    assert!(matches!(client.renew(&held.renew(), PATIENCE).await, Ok(RenewReply::Renewed { .. })));
    client.release(&held.release(true), PATIENCE).await.unwrap();

    assert_refused(&mut client, acquire("report-0"), &["999999999999999", &keys().fence, "another name"])
        .await;
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "999999999999999");
    assert_eq!(server.cli(&["EXISTS", &keys().lease]).unwrap(), "0");
    assert_eq!(server.cli(&["EXISTS", &keys().clean]).unwrap(), "1");

    // The floor may be at the end as well.
    server.cli(&["SET", &keys().fence, "5"]).unwrap();
    let beyond = Acquire { floor: Some(fence(999_999_999_999_999)), ..acquire("report-0") };
    assert_refused(&mut client, beyond, &["999999999999999"]).await;
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "5");
}

#[tokio::test]
async fn fifteen_digits_are_counted_exactly() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    for base in [123_456_789_012_344_u64, 999_999_999_999_990, 900_719_925_474_099] {
        server.cli(&["SET", &keys().fence, &base.to_string()]).unwrap();
        for step in 1..=3 {
            let held = hold(&mut client, "report-0").await;
            assert_eq!(held.fence.get(), base + step);
            assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), (base + step).to_string());
            client.release(&held.release(true), PATIENCE).await.unwrap();
        }
    }
}

#[tokio::test]
async fn garbage_in_the_sequence_is_refused_with_the_remedy_and_left_alone() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let garbage = ["abc", "", " 1", "-1", "1.5", "1e14", "0x10", "007", "1234567890123456", "1\r\n+OK"];
    for text in garbage {
        server.cli(&["SET", &keys().fence, text]).unwrap();
        assert_refused(&mut client, acquire("report-0"), &[&keys().fence, "SET", "nothing was changed"])
            .await;
        assert_eq!(server.cli(&["STRLEN", &keys().fence]).unwrap(), text.len().to_string(), "{text:?}");
        assert_eq!(server.cli(&["DBSIZE"]).unwrap(), "1", "{text:?}");
    }
    server.cli(&["DEL", &keys().fence]).unwrap();
    server.cli(&["RPUSH", &keys().fence, "1"]).unwrap();
    assert_refused(&mut client, acquire("report-0"), &["another type", &keys().fence]).await;
    assert_eq!(server.cli(&["LLEN", &keys().fence]).unwrap(), "1");

    // And the remedy works.
    server.cli(&["SET", &keys().fence, "41"]).unwrap();
    assert_eq!(hold(&mut client, "report-0").await.fence, fence(42));
}

#[tokio::test]
async fn garbage_in_the_sequence_ends_a_holder_and_changes_nothing() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold_by(&mut client, Acquire { ttl: Duration::from_secs(20), ..acquire("report-0") }).await;
    server.cli(&["SET", &keys().fence, "abc"]).unwrap();
    let error = client.renew(&held.renew(), PATIENCE).await.unwrap_err();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::Sequence, .. }), "{error}");
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "abc");
    assert!(server.cli(&["PTTL", &keys().lease]).unwrap().parse::<u64>().unwrap() <= 20_000);
}

#[tokio::test]
async fn a_sequence_that_fell_back_is_repaired_and_the_holding_is_lost() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold_by(&mut client, Acquire { floor: Some(fence(99)), ..acquire("report-0") }).await;
    server.cli(&["PEXPIRE", &keys().lease, "20000"]).unwrap();
    server.cli(&["SET", &keys().fence, "40"]).unwrap();
    let reply = client.renew(&held.renew(), PATIENCE).await.unwrap();
    assert_eq!(reply, RenewReply::SequenceLost { found: Some(fence(40)) });
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "100");
    assert!(server.cli(&["PTTL", &keys().lease]).unwrap().parse::<u64>().unwrap() <= 20_000, "extended");
}

#[tokio::test]
async fn a_redis_that_lost_everything_still_hands_out_greater_fences_after_a_renewal() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold_by(&mut client, Acquire { floor: Some(fence(99)), ..acquire("report-0") }).await;
    server.cli(&["FLUSHALL"]).unwrap();
    let reply = client.renew(&held.renew(), PATIENCE).await.unwrap();
    assert_eq!(reply, RenewReply::KeyGone { highest: None });
    assert_eq!(hold(&mut client, "report-1").await.fence, fence(101));
    shown(&[16], "the sequence is repaired by the holder whose renewal shows it, which is LOST; the next fence is greater").unwrap();
}

#[tokio::test]
async fn a_sequence_ahead_of_the_holder_is_no_loss() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    server.cli(&["SET", &keys().fence, "500"]).unwrap();
    assert!(matches!(client.renew(&held.renew(), PATIENCE).await, Ok(RenewReply::Renewed { .. })));
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "500");
}

#[tokio::test]
async fn the_mark_of_a_clean_end_is_given_once() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let first = hold(&mut client, "report-0").await;
    assert!(!first.clean, "nobody has ended yet");
    client.release(&first.release(true), PATIENCE).await.unwrap();
    let second = hold(&mut client, "report-0").await;
    assert!(second.clean);
    // It ends without a release.
    server.cli(&["DEL", &keys().lease]).unwrap();
    let third = hold(&mut client, "report-0").await;
    assert!(!third.clean, "the mark was given twice");
    client.release(&third.release(false), PATIENCE).await.unwrap();
    assert!(!hold(&mut client, "report-0").await.clean, "an unclean release set the mark");
}

#[tokio::test]
async fn a_release_is_published_and_works_once() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    let reply = client.release(&held.release(true), PATIENCE).await.unwrap();
    assert_eq!(reply, ReleaseReply::Released { listeners: Some(0) });
    assert_eq!(client.release(&held.release(true), PATIENCE).await.unwrap(), ReleaseReply::NotOwner);
}

#[tokio::test]
async fn a_missing_right_to_publish_undoes_nothing() {
    let server = RedisServer::start().unwrap();
    for rights in [["+@all", "-publish"], ["+@all", "resetchannels"]] {
        let rules = ["ACL", "SETUSER", "quiet", "reset", "on", ">secret", "~*", rights[0], rights[1]];
        server.cli(&rules).unwrap();
        let mut client = Client::new(place_as(server.address().to_string(), user("quiet", "secret")));
        let held = hold(&mut client, "report-0").await;
        let reply = client.release(&held.release(true), PATIENCE).await.unwrap();
        assert_eq!(reply, ReleaseReply::Released { listeners: None });
        assert_eq!(server.cli(&["EXISTS", &keys().lease]).unwrap(), "0");
        assert_eq!(server.cli(&["GET", &keys().clean]).unwrap(), "1");
        server.cli(&["DEL", &keys().clean]).unwrap();
    }
}

#[tokio::test]
async fn inspecting_tells_everything_but_the_token_and_changes_nothing() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let nothing = client.inspect(PATIENCE).await.unwrap();
    assert_eq!((nothing.held, nothing.remaining, nothing.clean), (false, None, false));
    assert_eq!((nothing.sequence, nothing.holder), (Sequence::Empty, None));

    let held = hold(&mut client, "report-0").await;
    let found = client.inspect(PATIENCE).await.unwrap();
    assert!(found.held && found.remaining.unwrap() <= TTL);
    assert_eq!((&found.sequence, found.holder.as_deref()), (&Sequence::At(fence(1)), Some("report-0")));
    assert!(!format!("{found:?}").contains(held.token.as_str()));

    client.release(&held.release(true), PATIENCE).await.unwrap();
    let found = client.inspect(PATIENCE).await.unwrap();
    assert!(!found.held && found.clean);
    assert!(client.inspect(PATIENCE).await.unwrap().clean, "inspecting took the mark away");

    server.cli(&["SET", &keys().fence, "abc"]).unwrap();
    assert_eq!(client.inspect(PATIENCE).await.unwrap().sequence, Sequence::Invalid("abc".to_owned()));
}

#[tokio::test]
async fn each_database_has_leases_of_its_own() {
    let server = RedisServer::start().unwrap();
    let mut other = support::place(server.address().to_string());
    other.server.database = 3;
    hold(&mut client(&server), "report-0").await;
    assert_eq!(hold(&mut Client::new(other.clone()), "report-1").await.fence, fence(1));
    assert_eq!(server.cli(&["-n", "3", "GET", &keys().holder]).unwrap(), "report-1");
    other.server.database = 99;
    let error = Client::new(other).acquire(&acquire("report-2"), PATIENCE).await.unwrap_err();
    assert!(error.to_string().contains("out of range"), "{error}");
    assert!(!error.may_have_happened());
}

#[tokio::test]
async fn the_token_alone_proves_ownership() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    let mut forged = held.renew();
    forged.token = new_token();
    let reply = client.renew(&forged, PATIENCE).await.unwrap();
    assert!(matches!(reply, RenewReply::OtherOwner { .. }), "{reply:?}");
    shown(&[11], "renew and release with another token change nothing").unwrap();
}

async fn assert_refused(client: &mut Client, acquire: Acquire, words: &[&str]) {
    let error = client.acquire(&acquire, PATIENCE).await.unwrap_err();
    let CallError::Refused { refusal: Refusal::Sequence, text, .. } = &error else { panic!("{error}") };
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
    assert!(!error.may_have_happened());
}
