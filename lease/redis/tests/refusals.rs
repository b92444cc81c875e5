//! A renewal that Redis refuses, by each kind of error it has; and what a refusal leaves behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use fencedlease_core::RenewalOutcome;
use fencedlease_faults::RedisServer;
use fencedlease_faults::matrix::shown;
use fencedlease_redis::{
    CallError, Client, Credentials, LeaseKeys, Refusal, ReleaseReply, RenewReply, renewal_outcome,
};
use fencedlease_wire::endpoint::RedisStandingKind;
use fencedlease_wire::{LossReason, ResourceName};
use support::{Held, PATIENCE, acquire, client, hold, keys, place, place_as, until, user};

/// The renewal is refused in this way, is a loss, and has not extended the lease; the connection is not kept.
async fn assert_renewal_refused(server: &RedisServer, client: &mut Client, held: &Held, expected: Refusal) {
    let answer = client.renew(&held.renew(), PATIENCE).await;
    let outcome = renewal_outcome(&answer);
    let error = answer.unwrap_err();
    let CallError::Refused { refusal, text, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*refusal, expected, "{text}");
    let RenewalOutcome::Failed { reason: LossReason::RenewalError, message } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(message.contains(&server.address().to_string()) && message.contains(text.as_str()), "{message}");
    assert!(!client.is_connected());
}

/// A lease with so little left that an extension would show.
async fn hold_shortened(server: &RedisServer, client: &mut Client) -> Held {
    let held = hold(client, "report-0").await;
    server.cli(&["PEXPIRE", &keys().lease, "30000"]).unwrap();
    held
}

fn assert_not_extended(server: &RedisServer) {
    let left: i64 = server.cli(&["PTTL", &keys().lease]).unwrap().parse().unwrap();
    assert!(left <= 30_000, "{left} ms");
}

#[tokio::test]
async fn readonly_because_the_master_became_a_replica() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold_shortened(&server, &mut client).await;
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    assert_renewal_refused(&server, &mut client, &held, Refusal::ReadOnly).await;
    assert_not_extended(&server);
    // Nobody has the lease there, and still nobody gets it.
    let mut other = place(server.address().to_string());
    other.keys = LeaseKeys::new(&ResourceName::new("c1", "shop", "other").unwrap());
    let error = Client::new(other).acquire(&acquire("report-1"), PATIENCE).await.unwrap_err();
    assert_eq!(error.standing(), RedisStandingKind::NotMaster, "{error}");
    shown(&[22], "READONLY").unwrap();
}

#[tokio::test]
async fn masterdown_because_a_replica_serves_no_stale_data() {
    let server = RedisServer::with_args(&["--replica-serve-stale-data", "no"]).unwrap();
    let mut client = client(&server);
    let held = hold_shortened(&server, &mut client).await;
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    assert_renewal_refused(&server, &mut client, &held, Refusal::ReadOnly).await;
}

#[tokio::test]
async fn loading_because_redis_reads_its_data() {
    let server = Arc::new(
        RedisServer::with_args(&[
            "--enable-debug-command",
            "yes",
            "--loading-process-events-interval-bytes",
            "1024",
        ])
        .unwrap(),
    );
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    server.cli(&["DEBUG", "POPULATE", "20000", "filler", "100"]).unwrap();
    // Microseconds for each key: it would take 20 s, and is cut short below.
    server.cli(&["CONFIG", "SET", "key-load-delay", "1000"]).unwrap();
    let reload = {
        let server = Arc::clone(&server);
        thread::spawn(move || server.cli(&["DEBUG", "RELOAD"]))
    };
    let mut refused = None;
    until("LOADING", async || {
        refused = client.renew(&held.renew(), PATIENCE).await.err();
        refused.is_some()
    })
    .await;
    // It would go on loading for half a minute.
    Command::new("kill").args(["-KILL", &server.pid().unwrap().to_string()]).status().unwrap();
    reload.join().unwrap().unwrap_err();
    let error = refused.unwrap();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::Loading, .. }), "{error:?}");
    assert_eq!(error.loss_reason(), LossReason::RenewalError);
    assert_eq!(error.standing(), RedisStandingKind::Failed);
    shown(&[22], "LOADING").unwrap();
}

#[tokio::test]
async fn misconf_because_redis_cannot_save() {
    let server = RedisServer::with_args(&["--save", "3600 1000000"]).unwrap();
    let mut client = client(&server);
    let held = hold_shortened(&server, &mut client).await;
    // A folder where the file should be makes every save fail, even for root.
    fs::create_dir_all(server.folder().join("dump.rdb/in-the-way")).unwrap();
    server.cli(&["BGSAVE"]).unwrap();
    until("a failed save", async || {
        server.cli(&["INFO", "persistence"]).unwrap().contains("rdb_last_bgsave_status:err")
    })
    .await;
    assert_renewal_refused(&server, &mut client, &held, Refusal::Misconf).await;
    assert_not_extended(&server);
    shown(&[22], "MISCONF").unwrap();
}

#[tokio::test]
async fn noreplicas_because_too_few_follow() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold_shortened(&server, &mut client).await;
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
    assert_renewal_refused(&server, &mut client, &held, Refusal::NoReplicas).await;
    assert_not_extended(&server);
    shown(&[22], "NOREPLICAS").unwrap();
}

#[tokio::test]
async fn noauth_and_wrongpass_at_a_new_connection() {
    let server = RedisServer::with_args(&["--requirepass", "secret"]).unwrap();
    let with = |password: &str| {
        Client::new(place_as(
            server.address().to_string(),
            Credentials { username: None, password: Some(password.to_owned()) },
        ))
    };
    let mut right = with("secret");
    let held = hold(&mut right, "report-0").await;
    for mut wrong in [client(&server), with("wrong"), with("")] {
        assert_renewal_refused(&server, &mut wrong, &held, Refusal::Auth).await;
        let error = wrong.acquire(&acquire("report-1"), PATIENCE).await.unwrap_err();
        assert_eq!(error.standing(), RedisStandingKind::AuthFailed);
        assert!(!error.may_have_happened());
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert!(matches!(right.renew(&held.renew(), PATIENCE).await, Ok(RenewReply::Renewed { .. })));
    shown(&[22], "NOAUTH and WRONGPASS").unwrap();
}

#[tokio::test]
async fn a_password_changed_under_a_holder_ends_nothing_until_it_must_connect_again() {
    let server = RedisServer::with_args(&["--requirepass", "old"]).unwrap();
    let credentials = Credentials { username: None, password: Some("old".to_owned()) };
    let mut client = Client::new(place_as(server.address().to_string(), credentials));
    let held = hold(&mut client, "report-0").await;
    server.cli(&["-a", "old", "CONFIG", "SET", "requirepass", "new"]).unwrap();
    assert!(matches!(client.renew(&held.renew(), PATIENCE).await, Ok(RenewReply::Renewed { .. })));
    server.cli(&["-a", "new", "CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    until("the closed connection is noticed", async || !client.is_connected()).await;
    assert_renewal_refused(&server, &mut client, &held, Refusal::Auth).await;
}

#[tokio::test]
async fn noperm_by_effect_for_a_command_inside_the_script_and_for_the_script_itself() {
    let server = RedisServer::start().unwrap();
    server.cli(&["ACL", "SETUSER", "holder", "reset", "on", ">secret", "~*", "&*", "+@all"]).unwrap();
    let mut client = Client::new(place_as(server.address().to_string(), user("holder", "secret")));
    let held = hold_shortened(&server, &mut client).await;
    let inside = ["-pexpire", "-pttl", "-get"];
    for right in inside.into_iter().chain(["-eval", "resetkeys"]) {
        server.cli(&["ACL", "SETUSER", "holder", right]).unwrap();
        assert_renewal_refused(&server, &mut client, &held, Refusal::Permission).await;
        server.cli(&["ACL", "SETUSER", "holder", "+@all", "~*"]).unwrap();
    }
    assert_not_extended(&server);
    server.cli(&["ACL", "SETUSER", "holder", "-eval"]).unwrap();
    let error = client.acquire(&acquire("report-1"), PATIENCE).await.unwrap_err();
    assert_eq!(error.standing(), RedisStandingKind::PermissionDenied);
    shown(&[22], "NOPERM, also inside a script").unwrap();
}

#[tokio::test]
async fn an_acquisition_that_lacks_any_right_leaves_no_lease() {
    let server = RedisServer::start().unwrap();
    for right in ["-get", "-set", "-incr", "-del", "-exists"] {
        server
            .cli(&["ACL", "SETUSER", "holder", "reset", "on", ">secret", "~*", "&*", "+@all", right])
            .unwrap();
        let mut client = Client::new(place_as(server.address().to_string(), user("holder", "secret")));
        let error = client.acquire(&acquire("report-0"), PATIENCE).await.unwrap_err();
        assert!(matches!(error, CallError::Refused { refusal: Refusal::Permission, .. }), "{right}: {error}");
        assert_eq!(server.cli(&["EXISTS", &keys().lease]).unwrap(), "0", "{right}");
    }
}

#[tokio::test]
async fn a_full_redis_refuses_an_acquisition_and_neither_a_renewal_nor_a_release() {
    let server = RedisServer::with_args(&["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"]).unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    let mut place = place(server.address().to_string());
    place.keys = LeaseKeys::new(&ResourceName::new("c1", "shop", "other").unwrap());
    let mut other = Client::new(place.clone());
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();

    let error = other.acquire(&acquire("report-1"), PATIENCE).await.unwrap_err();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::OutOfMemory, .. }), "{error}");
    assert_eq!(server.cli(&["EXISTS", &place.keys.lease, &place.keys.fence]).unwrap(), "0");

    server.cli(&["PEXPIRE", &keys().lease, "5000"]).unwrap();
    let reply = client.renew(&held.renew(), PATIENCE).await.unwrap();
    assert!(matches!(reply, RenewReply::Renewed { .. }), "{reply:?}");
    assert!(server.cli(&["PTTL", &keys().lease]).unwrap().parse::<i64>().unwrap() > 30_000);
    let reply = client.release(&held.release(true), PATIENCE).await.unwrap();
    assert!(matches!(reply, ReleaseReply::Released { .. }), "{reply:?}");
    assert_eq!(server.cli(&["EXISTS", &keys().lease]).unwrap(), "0");
    shown(&[22], "full: no acquisition, renewals and releases go on").unwrap();
}

#[tokio::test]
async fn a_value_of_another_type_at_the_lease_is_an_error_and_no_loss_that_redis_states() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    server.cli(&["DEL", &keys().lease]).unwrap();
    server.cli(&["RPUSH", &keys().lease, "x"]).unwrap();
    assert_renewal_refused(&server, &mut client, &held, Refusal::Script).await;
}

#[tokio::test]
async fn a_busy_redis_refuses_a_renewal() {
    let server = Arc::new(RedisServer::with_args(&["--busy-reply-threshold", "50"]).unwrap());
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    let endless = {
        let server = Arc::clone(&server);
        thread::spawn(move || server.cli(&["EVAL", "while true do end", "0"]))
    };
    let mut refused = None;
    until("BUSY", async || {
        refused = client.renew(&held.renew(), PATIENCE).await.err();
        refused.is_some()
    })
    .await;
    server.cli(&["SCRIPT", "KILL"]).unwrap();
    endless.join().unwrap().unwrap_err();
    let error = refused.unwrap();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::Script, .. }), "{error}");
}
