//! The loop that speaks to Redis for somebody who must never wait.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Direction, Fault, FaultProxy, RedisServer};
use fencedlease_redis::agent::{Answer, Call, Hint, Notice, Order, Request, serve};
use fencedlease_redis::{
    Acquire, AcquireReply, CallError, CredentialFuture, CredentialProvider, Credentials, Place, Refusal,
    ReleaseReply, RenewReply, Rights,
};
use support::{CLIENT_NAME, Held, PATIENCE, TTL, acquire, client, fence, hold, keys, place, until, user};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

const SHORT: Duration = Duration::from_millis(200);

/// An agent, and what it tells.
struct Agent {
    orders: UnboundedSender<Order>,
    notices: UnboundedReceiver<Notice>,
    task: JoinSet<()>,
}

impl Agent {
    fn start(place: Place) -> Self {
        let (orders, received) = unbounded_channel();
        let (tell, notices) = unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(serve(
            place,
            received,
            Box::new(move |notice| {
                // A test that has ended listens no more.
                let _ = tell.send(notice);
            }),
        ));
        Self { orders, notices, task }
    }

    fn call(&self, id: u64, timeout: Duration, request: Request) {
        self.orders.send(Order::Call(Call { id, timeout, request })).unwrap();
    }

    fn listen(&self, wanted: bool) {
        self.orders.send(Order::Listen(wanted)).unwrap();
    }

    async fn notice(&mut self) -> Notice {
        timeout(PATIENCE, self.notices.recv()).await.expect("no notice").unwrap()
    }

    async fn outcome(&mut self) -> (u64, Answer) {
        match self.notice().await {
            Notice::Outcome { id, answer } => (id, answer),
            hint @ Notice::Hint(_) => panic!("{hint:?}"),
        }
    }

    async fn hint(&mut self) -> Hint {
        match self.notice().await {
            Notice::Hint(hint) => hint,
            outcome @ Notice::Outcome { .. } => panic!("{outcome:?}"),
        }
    }

    async fn hold(&mut self, holder: &str) -> Held {
        let acquire = acquire(holder);
        let token = acquire.token.clone();
        self.call(0, PATIENCE, Request::Acquire(acquire));
        match self.outcome().await {
            (0, Answer::Acquire(Ok(AcquireReply::Acquired { fence, clean, previous_holder }))) => {
                Held { token, fence, clean, previous_holder }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn each_call_has_one_outcome_with_its_id() {
    let server = RedisServer::start().unwrap();
    let mut agent = Agent::start(place(server.address().to_string()));
    let held = agent.hold("report-0").await;
    agent.call(7, PATIENCE, Request::Renew(held.renew()));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (7, Answer::Renew(Ok(RenewReply::Renewed { .. })))), "{outcome:?}");
    agent.call(8, PATIENCE, Request::Acquire(acquire("report-0")));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (8, Answer::Acquire(Ok(AcquireReply::Held { .. })))), "{outcome:?}");
    agent.call(9, PATIENCE, Request::Release(held.release(true)));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (9, Answer::Release(Ok(ReleaseReply::Released { .. })))), "{outcome:?}");
    // All of it over one connection.
    assert!(server.cli(&["INFO", "clients"]).unwrap().contains("connected_clients:2\r\n"));
    assert_eq!(server.cli(&["CLIENT", "LIST"]).unwrap().matches(CLIENT_NAME).count(), 1);
}

#[tokio::test]
async fn calls_at_the_same_time_are_all_answered() {
    let server = RedisServer::start().unwrap();
    let mut agent = Agent::start(place(server.address().to_string()));
    let held = agent.hold("report-0").await;
    for id in 1..=20 {
        agent.call(id, PATIENCE, Request::Renew(held.renew()));
    }
    let mut ids = Vec::new();
    for _ in 1..=20 {
        let (id, answer) = agent.outcome().await;
        assert!(matches!(answer, Answer::Renew(Ok(RenewReply::Renewed { .. }))), "{answer:?}");
        ids.push(id);
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
    // Only one of the connections is kept.
    until("the others are closed", async || {
        server.cli(&["INFO", "clients"]).unwrap().contains("connected_clients:2\r\n")
    })
    .await;
}

/// Accepts the first connection and says nothing to it; carries all others on.
async fn swallow_the_first(target: SocketAddr) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _first = listener.accept().await.unwrap();
        let mut carried = JoinSet::new();
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            carried.spawn(async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, tasks)
}

#[tokio::test]
async fn a_renewal_that_hangs_delays_neither_a_release_nor_an_acquisition() {
    let server = RedisServer::start().unwrap();
    let held = hold(&mut client(&server), "report-0").await;
    let (address, _tasks) = swallow_the_first(server.address()).await;
    let mut agent = Agent::start(place(address.to_string()));
    let start = Instant::now();
    agent.call(1, Duration::from_secs(5), Request::Renew(held.renew()));
    // The first connection is the renewal's for sure.
    tokio::time::sleep(Duration::from_millis(50)).await;
    agent.call(2, PATIENCE, Request::Release(held.release(false)));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (2, Answer::Release(Ok(ReleaseReply::Released { .. })))), "{outcome:?}");
    agent.call(3, PATIENCE, Request::Acquire(acquire("report-1")));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (3, Answer::Acquire(Ok(AcquireReply::Acquired { .. })))), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (1, Answer::Renew(Err(CallError::ConnectTimeout { .. })))), "{outcome:?}");
}

#[tokio::test]
async fn a_renewal_unanswered_on_the_only_connection_does_not_delay_a_release() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.address().to_string()).await.unwrap();
    let mut agent = Agent::start(place(proxy.address().to_string()));
    let held = agent.hold("report-0").await;
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Replies });
    agent.call(1, PATIENCE, Request::Renew(held.renew()));
    proxy.until(PATIENCE, |seen| seen.total.dropped_reply_bytes > 0).await.unwrap();
    agent.call(2, SHORT, Request::Release(held.release(false)));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (2, Answer::Release(Err(CallError::ConnectTimeout { .. })))), "{outcome:?}");
    assert_eq!(proxy.snapshot().total.connections, 2, "the release waited behind the renewal");
}

#[tokio::test]
async fn an_acquisition_whose_answer_was_lost_is_released_by_its_token() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.address().to_string()).await.unwrap();
    let mut agent = Agent::start(place(proxy.address().to_string()));
    // So that the next call has a connection and only its answer is lost.
    let held = agent.hold("report-0").await;
    agent.call(1, PATIENCE, Request::Release(held.release(true)));
    agent.outcome().await;
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Replies });
    let lost = acquire("report-0");
    let token = lost.token.clone();
    agent.call(2, SHORT, Request::Acquire(lost));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (2, Answer::Acquire(Err(CallError::Timeout { .. })))), "{outcome:?}");
    assert_eq!(server.cli(&["GET", &keys().lease]).unwrap(), token.as_str(), "it did not happen");
    proxy.set(Clients::All, Fault::Pass);
    until("the lease is released", async || server.cli(&["EXISTS", &keys().lease]).unwrap() == "0").await;
    assert_eq!(server.cli(&["EXISTS", &keys().clean]).unwrap(), "0", "it was not a clean end");
    assert_eq!(agent.hold("report-0").await.fence, fence(3));
    shown(&[4], "an acquisition whose answer was lost: released by its token").unwrap();
}

#[tokio::test]
async fn an_acquisition_that_arrives_after_it_was_given_up_is_released_as_well() {
    let server = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(server.address().to_string()).await.unwrap();
    let mut agent = Agent::start(place(proxy.address().to_string()));
    let held = agent.hold("report-0").await;
    agent.call(1, PATIENCE, Request::Release(held.release(true)));
    agent.outcome().await;
    proxy.set(Clients::All, Fault::Hold { direction: Direction::Requests });
    agent.call(2, SHORT, Request::Acquire(acquire("report-0")));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (2, Answer::Acquire(Err(CallError::Timeout { .. })))), "{outcome:?}");
    assert_eq!(server.cli(&["GET", &keys().fence]).unwrap(), "1", "it arrived too early");
    proxy.set(Clients::All, Fault::Pass);
    until("it arrives", async || server.cli(&["GET", &keys().fence]).unwrap() == "2").await;
    until("the lease is released", async || server.cli(&["EXISTS", &keys().lease]).unwrap() == "0").await;
    shown(&[10], "released by its token, without anybody being ACTIVE").unwrap();
}

#[tokio::test]
async fn an_acquisition_that_was_refused_is_not_chased() {
    let server = RedisServer::start().unwrap();
    let mut agent = Agent::start(place(server.address().to_string()));
    server.cli(&["SET", &keys().fence, "abc"]).unwrap();
    agent.call(1, PATIENCE, Request::Acquire(acquire("report-0")));
    let (_, answer) = agent.outcome().await;
    let Answer::Acquire(Err(CallError::Refused { refusal: Refusal::Sequence, .. })) = answer else {
        panic!("{answer:?}")
    };
    let calls = || server.cli(&["INFO", "commandstats"]).unwrap().contains("cmdstat_eval:calls=1,");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(calls(), "something was asked in the background");
}

#[tokio::test]
async fn a_standby_hears_of_a_release_and_of_every_new_start_of_its_listening() {
    let server = RedisServer::start().unwrap();
    let mut holder = client(&server);
    let held = hold(&mut holder, "report-0").await;
    let mut agent = Agent::start(place(server.address().to_string()));
    agent.listen(true);
    agent.listen(true);
    assert_eq!(agent.hint().await, Hint::Listening);
    let reply = holder.release(&held.release(true), PATIENCE).await.unwrap();
    assert_eq!(reply, ReleaseReply::Released { listeners: Some(1) });
    assert_eq!(agent.hint().await, Hint::Released);

    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    assert_eq!(agent.hint().await, Hint::Listening);
    let held = hold(&mut holder, "report-0").await;
    holder.release(&held.release(true), PATIENCE).await.unwrap();
    assert_eq!(agent.hint().await, Hint::Released);

    agent.listen(false);
    until("nobody listens", async || {
        server.cli(&["PUBSUB", "NUMSUB", &keys().released]).unwrap().ends_with("\n0")
    })
    .await;
    agent.listen(true);
    assert_eq!(agent.hint().await, Hint::Listening);
}

#[tokio::test]
async fn listening_outlives_a_server_that_is_killed_and_does_nothing_else() {
    let mut server = RedisServer::start().unwrap();
    let mut agent = Agent::start(place(server.address().to_string()));
    agent.listen(true);
    assert_eq!(agent.hint().await, Hint::Listening);
    server.kill().unwrap();
    tokio::time::sleep(SHORT).await;
    assert!(agent.notices.try_recv().is_err(), "a closed connection was told as something");
    server.restart().unwrap();
    assert_eq!(agent.hint().await, Hint::Listening);
    assert_eq!(agent.hold("report-0").await.fence, fence(1));
}

#[tokio::test]
async fn a_user_without_a_right_to_the_channel_still_holds() {
    let server = RedisServer::start().unwrap();
    let rules = ["ACL", "SETUSER", "deaf", "reset", "on", ">secret", "~*", "resetchannels", "+@all"];
    server.cli(&rules).unwrap();
    let mut agent = Agent::start(support::place_as(server.address().to_string(), user("deaf", "secret")));
    agent.listen(true);
    let held = agent.hold("report-0").await;
    agent.call(1, PATIENCE, Request::Release(held.release(true)));
    let outcome = agent.outcome().await;
    let expected = ReleaseReply::Released { listeners: None };
    assert!(matches!(outcome, (1, Answer::Release(Ok(reply))) if reply == expected), "{outcome:?}");
}

#[tokio::test]
async fn a_user_with_the_least_rights_hears_of_releases_for_as_long_as_it_listens() {
    let server = RedisServer::start().unwrap();
    let rights = Rights::new("c1", Some("shop"), 0).unwrap().rules();
    let mut words = vec!["ACL", "SETUSER", "exact", "reset", "on", ">secret"];
    words.extend(rights.iter().map(String::as_str));
    server.cli(&words).unwrap();
    server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    let mut agent = Agent::start(support::place_as(server.address().to_string(), user("exact", "secret")));
    agent.listen(true);
    assert_eq!(agent.hint().await, Hint::Listening);
    until("a sign of life was asked for", async || {
        server.cli(&["INFO", "commandstats"]).unwrap().contains("cmdstat_ping:")
    })
    .await;
    let held = agent.hold("report-0").await;
    agent.call(1, PATIENCE, Request::Release(held.release(true)));
    let told = [agent.notice().await, agent.notice().await];
    assert!(told.iter().any(|it| matches!(it, Notice::Hint(Hint::Released))), "{told:?}");
    assert_eq!(server.cli(&["ACL", "LOG"]).unwrap(), "");
    server.cli(&["ACL", "SETUSER", "exact", "-subscribe"]).unwrap();
    agent.listen(false);
    agent.listen(true);
    until("a refusal", async || server.cli(&["ACL", "LOG"]).unwrap().contains("subscribe")).await;
}

/// Credentials that somebody changes.
struct Changing {
    present: Mutex<Credentials>,
    asked: AtomicUsize,
    rejected: AtomicUsize,
}

impl CredentialProvider for Changing {
    fn credentials(&self) -> CredentialFuture<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let present = self.present.lock().unwrap().clone();
        Box::pin(std::future::ready(Ok(present)))
    }

    fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn credentials_are_asked_for_at_each_connection_and_told_when_they_are_refused() {
    let server = RedisServer::start().unwrap();
    let set = |password: &str| {
        let password = format!(">{password}");
        server.cli(&["ACL", "SETUSER", "holder", "reset", "on", &password, "~*", "&*", "+@all"]).unwrap();
    };
    set("first");
    let changing = Arc::new(Changing {
        present: Mutex::new(user("holder", "first")),
        asked: AtomicUsize::new(0),
        rejected: AtomicUsize::new(0),
    });
    let seen = || (changing.asked.load(Ordering::Relaxed), changing.rejected.load(Ordering::Relaxed));
    let provider: Arc<dyn CredentialProvider> = changing.clone();
    let mut agent = Agent::start(Place { credentials: provider, ..place(server.address().to_string()) });
    let held = agent.hold("report-0").await;
    assert_eq!(seen(), (1, 0));

    // What is connected stays so, until it must connect again.
    set("second");
    agent.call(1, PATIENCE, Request::Renew(held.renew()));
    assert!(matches!(agent.outcome().await, (1, Answer::Renew(Ok(RenewReply::Renewed { .. })))));
    assert_eq!(seen(), (1, 0));
    server.cli(&["CLIENT", "KILL", "USER", "holder"]).unwrap();
    tokio::time::sleep(SHORT).await;
    agent.call(2, PATIENCE, Request::Acquire(acquire("report-0")));
    let (_, answer) = agent.outcome().await;
    assert!(
        matches!(&answer, Answer::Acquire(Err(CallError::Refused { refusal: Refusal::Auth, .. }))),
        "{answer:?}"
    );
    assert_eq!(seen(), (2, 1));
    *changing.present.lock().unwrap() = user("holder", "second");
    agent.call(3, PATIENCE, Request::Renew(held.renew()));
    let outcome = agent.outcome().await;
    assert!(matches!(outcome, (3, Answer::Renew(Ok(RenewReply::Renewed { .. })))), "{outcome:?}");
    assert_eq!(seen(), (3, 1));
}

#[tokio::test]
async fn the_agent_ends_with_its_orders_and_leaves_no_connection() {
    let server = RedisServer::start().unwrap();
    let mut agent = Agent::start(place(server.address().to_string()));
    agent.listen(true);
    assert_eq!(agent.hint().await, Hint::Listening);
    agent.hold("report-0").await;
    drop(agent.orders);
    timeout(PATIENCE, agent.task.join_next()).await.expect("it goes on").unwrap().unwrap();
    until("all connections are closed", async || {
        server.cli(&["INFO", "clients"]).unwrap().contains("connected_clients:1\r\n")
    })
    .await;
}

#[tokio::test]
async fn from_a_release_to_the_next_fence_it_takes_milliseconds() {
    const ROUNDS: usize = 100;
    let server = RedisServer::start().unwrap();
    let mut holder = client(&server);
    let mut agent = Agent::start(place(server.address().to_string()));
    agent.listen(true);
    assert_eq!(agent.hint().await, Hint::Listening);
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let held = hold(&mut holder, "report-0").await;
        let start = Instant::now();
        holder.release(&held.release(true), PATIENCE).await.unwrap();
        assert_eq!(agent.hint().await, Hint::Released);
        let next = Acquire { ttl: TTL, ..acquire("report-1") };
        let token = next.token.clone();
        agent.call(1, PATIENCE, Request::Acquire(next));
        let (_, Answer::Acquire(Ok(AcquireReply::Acquired { fence, .. }))) = agent.outcome().await else {
            panic!("not acquired")
        };
        took.push(start.elapsed());
        assert!(fence > held.fence);
        let next = Held { token, fence, clean: true, previous_holder: None };
        agent.call(2, PATIENCE, Request::Release(next.release(true)));
        // Its own release is published to itself as well.
        let both = [agent.notice().await, agent.notice().await];
        assert!(both.iter().any(|notice| matches!(notice, Notice::Hint(Hint::Released))), "{both:?}");
    }
    took.sort_unstable();
    let (median, worst) = (took[ROUNDS / 2], took[ROUNDS - 1]);
    println!("release to the next fence, {ROUNDS} times: median {median:?}, worst {worst:?}");
    assert!(median < Duration::from_millis(50), "median {median:?}");
}
