//! A renewal whose reply is lost, late or never sent, and servers that are killed, stopped or silent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use std::time::Duration;

use fencedlease_core::{BootTime, Holding, HoldingState, RenewalOutcome, Timing};
use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Direction, Fault, FaultProxy, RedisServer};
use fencedlease_redis::{
    Acquire, AcquireReply, CallError, Client, CredentialError, CredentialFuture, CredentialProvider,
    ReleaseReply, RenewReply, renewal_outcome,
};
use fencedlease_wire::endpoint::RedisStandingKind;
use fencedlease_wire::settings::TimingSettings;
use fencedlease_wire::{HoldingId, LossReason};
use support::{PATIENCE, acquire, client, fence, hold, hold_by, keys, place, until};
use tokio::net::TcpListener;
use tokio::time::Instant;

const SHORT: Duration = Duration::from_millis(200);

async fn proxied(server: &RedisServer) -> (FaultProxy, Client) {
    let proxy = FaultProxy::start(server.address().to_string()).await.unwrap();
    let client = Client::new(place(proxy.address().to_string()));
    (proxy, client)
}

fn reason(answer: &Result<RenewReply, CallError>) -> LossReason {
    match renewal_outcome(answer) {
        RenewalOutcome::Failed { reason, .. } => reason,
        RenewalOutcome::Confirmed => panic!("confirmed: {answer:?}"),
    }
}

#[tokio::test]
async fn a_renewal_whose_reply_is_lost_is_a_timeout_though_redis_did_it() {
    let server = RedisServer::start().unwrap();
    let (proxy, mut client) = proxied(&server).await;
    let held = hold(&mut client, "report-0").await;
    server.cli(&["PEXPIRE", &keys().lease, "30000"]).unwrap();
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Replies });
    let start = Instant::now();
    let answer = client.renew(&held.renew(), SHORT).await;
    let took = start.elapsed();
    assert_eq!(reason(&answer), LossReason::RenewalTimeout);
    assert!(matches!(answer, Err(CallError::Timeout { .. })), "{answer:?}");
    assert!(took >= SHORT && took < SHORT * 4, "{took:?}");
    assert!(proxy.snapshot().total.dropped_reply_bytes > 0, "no reply was lost");
    assert!(server.cli(&["PTTL", &keys().lease]).unwrap().parse::<i64>().unwrap() > 30_000);
    // The connection that may still get the old answer is gone, so no later call can take it for its own.
    assert!(!client.is_connected());
    proxy.set(Clients::All, Fault::Pass);
    assert!(matches!(
        client.release(&held.release(false), PATIENCE).await,
        Ok(ReleaseReply::Released { .. })
    ));
    assert_eq!(proxy.snapshot().total.connections, 2);
    shown(
        &[4],
        "LOST by RenewalTimeout, though Redis had renewed; the connection with the old answer is given up",
    )
    .unwrap();
}

#[tokio::test]
async fn a_renewal_whose_reply_is_late_is_a_timeout_and_its_reply_is_never_read() {
    let server = RedisServer::start().unwrap();
    let (proxy, mut client) = proxied(&server).await;
    let held = hold(&mut client, "report-0").await;
    proxy.set(Clients::All, Fault::Delay { delay_ms: 400, direction: Direction::Replies });
    let answer = client.renew(&held.renew(), SHORT).await;
    assert_eq!(reason(&answer), LossReason::RenewalTimeout);
    proxy.set(Clients::All, Fault::Pass);
    let reply = client.inspect(PATIENCE).await.unwrap();
    assert!(reply.held);
    shown(&[2, 9], "LOST by RenewalTimeout at 200 ms; the answer of 400 ms is never read").unwrap();
}

#[tokio::test]
async fn a_slow_network_within_the_timeout_is_no_loss() {
    let server = RedisServer::start().unwrap();
    let (proxy, mut client) = proxied(&server).await;
    let held = hold(&mut client, "report-0").await;
    proxy.set(Clients::All, Fault::Delay { delay_ms: 700, direction: Direction::Both });
    // Beyond the library's own limit of 500 ms.
    let answer = client.renew(&held.renew(), PATIENCE).await;
    assert!(matches!(answer, Ok(RenewReply::Renewed { .. })), "{answer:?}");
    assert!(proxy.snapshot().total.delayed_bytes > 0, "nothing was delayed");
    // Connecting may take as long.
    let mut fresh = Client::new(place(proxy.address().to_string()));
    let answer = fresh.renew(&held.renew(), PATIENCE).await;
    assert!(matches!(answer, Ok(RenewReply::Renewed { .. })), "{answer:?}");
    shown(&[1], "confirmed at a delay of 700 ms each way").unwrap();
}

#[tokio::test]
async fn a_renewal_that_never_reaches_redis_is_a_timeout_and_did_nothing() {
    let server = RedisServer::start().unwrap();
    let (proxy, mut client) = proxied(&server).await;
    let held = hold(&mut client, "report-0").await;
    server.cli(&["PEXPIRE", &keys().lease, "30000"]).unwrap();
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Requests });
    assert_eq!(reason(&client.renew(&held.renew(), SHORT).await), LossReason::RenewalTimeout);
    assert!(proxy.snapshot().total.dropped_request_bytes > 0, "no request was lost");
    assert!(server.cli(&["PTTL", &keys().lease]).unwrap().parse::<i64>().unwrap() <= 30_000);
}

#[tokio::test]
async fn a_connection_that_closes_under_a_renewal_is_said_to_be_closed() {
    let server = RedisServer::start().unwrap();
    let (proxy, mut client) = proxied(&server).await;
    let held = hold(&mut client, "report-0").await;
    proxy.set(Clients::All, Fault::Hold { direction: Direction::Replies });
    let renew = held.renew();
    let (answer, ()) = tokio::join!(client.renew(&renew, PATIENCE), async {
        proxy.until(PATIENCE, |seen| seen.total.held_reply_bytes > 0).await.unwrap();
        proxy.set(Clients::All, Fault::Cut);
    });
    assert_eq!(reason(&answer), LossReason::ConnectionClosed);
    assert!(matches!(answer, Err(CallError::Closed { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_connection_that_closed_while_nothing_was_asked_ends_nothing() {
    let server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold(&mut client, "report-0").await;
    for _ in 0..5 {
        server.cli(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        until("the closed connection is noticed", async || !client.is_connected()).await;
        let answer = client.renew(&held.renew(), PATIENCE).await;
        assert!(matches!(answer, Ok(RenewReply::Renewed { .. })), "{answer:?}");
    }
}

#[tokio::test]
async fn a_killed_server_refuses_at_once_and_comes_back_without_the_lease() {
    let mut server = RedisServer::start().unwrap();
    let mut client = client(&server);
    let held = hold_by(&mut client, Acquire { floor: Some(fence(41)), ..acquire("report-0") }).await;
    server.kill().unwrap();
    until("the closed connection is noticed", async || !client.is_connected()).await;
    let answer = client.renew(&held.renew(), PATIENCE).await;
    assert_eq!(reason(&answer), LossReason::ConnectionClosed);
    let error = answer.unwrap_err();
    assert!(matches!(error, CallError::Connect { .. }) && !error.may_have_happened(), "{error:?}");
    assert_eq!(error.standing(), RedisStandingKind::Timeout);
    server.restart().unwrap();
    let answer = client.renew(&held.renew(), PATIENCE).await;
    assert_eq!(reason(&answer), LossReason::KeyGone);
    assert_eq!(hold(&mut client, "report-1").await.fence, fence(43));
    shown(&[16], "LOST by KeyGone once it is back; the next fence is 43 after 42").unwrap();
}

#[tokio::test]
async fn a_stopped_server_is_a_timeout_whether_connected_or_not() {
    let server = RedisServer::start().unwrap();
    let mut connected = client(&server);
    let held = hold(&mut connected, "report-0").await;
    server.stop().unwrap();
    let answer = connected.renew(&held.renew(), SHORT).await;
    assert_eq!(reason(&answer), LossReason::RenewalTimeout);
    assert!(answer.unwrap_err().may_have_happened());
    // The kernel accepts for it, but nobody logs us in, so nothing was asked.
    let answer = client(&server).renew(&held.renew(), SHORT).await;
    assert_eq!(reason(&answer), LossReason::RenewalTimeout);
    let error = answer.unwrap_err();
    assert!(matches!(error, CallError::ConnectTimeout { .. }) && !error.may_have_happened(), "{error:?}");
    server.cont().unwrap();
    assert!(matches!(client(&server).renew(&held.renew(), PATIENCE).await, Ok(RenewReply::Renewed { .. })));
    shown(&[5, 13], "LOST by RenewalTimeout, with the old connection and with a new one that is accepted and not answered").unwrap();
}

#[tokio::test]
async fn what_speaks_another_protocol_is_an_error_and_no_success() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let web = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let page = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, page).await.unwrap();
        }
    };
    let mut client = Client::new(place(address.to_string()));
    let held = acquire("report-0");
    let answer = tokio::select! {
        answer = client.acquire(&held, PATIENCE) => answer,
        () = web => unreachable!(),
    };
    let error = answer.unwrap_err();
    assert_eq!(error.loss_reason(), LossReason::RenewalError, "{error:?}");
    shown(&[12], "a web server in place of Redis: RenewalError, never ACTIVE").unwrap();
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_named() {
    let mut client = Client::new(place("redis.invalid:6379"));
    let error = client.acquire(&acquire("report-0"), PATIENCE).await.unwrap_err();
    assert!(error.to_string().starts_with("no connection to redis.invalid:6379"), "{error}");
}

/// Credentials that nobody has.
struct Missing;

impl CredentialProvider for Missing {
    fn credentials(&self) -> CredentialFuture<'_> {
        Box::pin(std::future::ready(Err(CredentialError("the Secret redis-shop is not there".to_owned()))))
    }
}

/// Credentials that somebody is still looking for.
struct Slow;

impl CredentialProvider for Slow {
    fn credentials(&self) -> CredentialFuture<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_had_fail_the_call_within_its_deadline() {
    let server = RedisServer::start().unwrap();
    let mut place = place(server.address().to_string());
    place.credentials = std::sync::Arc::new(Missing);
    let error = Client::new(place.clone()).acquire(&acquire("report-0"), PATIENCE).await.unwrap_err();
    assert_eq!(error.standing(), RedisStandingKind::SecretNotFound);
    assert!(error.to_string().ends_with("the Secret redis-shop is not there"), "{error}");
    place.credentials = std::sync::Arc::new(Slow);
    let error = Client::new(place).acquire(&acquire("report-0"), SHORT).await.unwrap_err();
    assert!(matches!(error, CallError::ConnectTimeout { .. }), "{error:?}");
}

#[tokio::test]
async fn a_second_holding_begins_while_the_reply_of_the_first_is_under_way() {
    let server = RedisServer::start().unwrap();
    let (proxy, mut slow) = proxied(&server).await;
    slow.inspect(PATIENCE).await.unwrap();
    proxy.set(Clients::All, Fault::Hold { direction: Direction::Replies });
    let (start, sent_at) = (Instant::now(), BootTime::from_millis(1_000_000));
    let first = Acquire { ttl: Duration::from_millis(150), ..acquire("report-0") };
    let (answer, second) = tokio::join!(slow.acquire(&first, PATIENCE), async {
        proxy.until(PATIENCE, |seen| seen.total.held_reply_bytes > 0).await.unwrap();
        until("the first lease has run out", async || server.cli(&["EXISTS", &keys().lease]).unwrap() == "0")
            .await;
        let second = hold(&mut client(&server), "report-1").await;
        proxy.set(Clients::All, Fault::Pass);
        second
    });
    let AcquireReply::Acquired { fence: first_fence, .. } = answer.unwrap() else { panic!("not acquired") };
    assert!(second.fence > first_fence);

    // The late answer is one, but the machine does not start anybody on it. The smallest ttl that it takes is
    // longer than a test should last, so the clock that is told to it is the real one, a hundred times as fast.
    let settings = TimingSettings {
        ttl_ms: 15_000,
        renew_interval_ms: None,
        renew_timeout_ms: 1_000,
        grace_period_ms: 2_000,
        kill_budget_ms: 2_000,
        commit_margin_ms: 2_000,
    };
    let timing = Timing::try_new(&settings).unwrap();
    let now = sent_at + start.elapsed() * 100;
    let id = HoldingId::from_random([1; 8]);
    let holding = Holding::acquired(id, first_fence, timing, Duration::from_hours(1), sent_at, now);
    assert!(matches!(holding.state(), HoldingState::Lost(_)), "{:?}", holding.state());

    // And Redis says whose it is.
    let renew = fencedlease_redis::Renew { token: first.token, ttl: first.ttl, fence: first_fence };
    assert_eq!(reason(&slow.renew(&renew, PATIENCE).await), LossReason::OtherOwner);
    assert_eq!(server.cli(&["GET", &keys().lease]).unwrap(), second.token.as_str());
    shown(&[9, 10], "the late answer is LOST at once; its renewal is refused by OtherOwner").unwrap();
}
