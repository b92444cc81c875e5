//! The proxy in front of a real Redis: each fault does what it says, to whom it says, and is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests fail as tests do")]

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fencedlease_faults::{
    Clients, Direction, Fault, FaultProxy, Order, RedisServer, fetch_snapshot, send_order, serve_control,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LONG: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(150);
const PONG: &str = "+PONG\r\n";

async fn set_up() -> (RedisServer, FaultProxy) {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address().to_string()).await.unwrap();
    (redis, proxy)
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

async fn send(stream: &mut TcpStream, command: &str) {
    stream.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
}

/// One read; an empty text is the end of the stream.
async fn receive(stream: &mut TcpStream) -> io::Result<String> {
    let mut buffer = [0; 256];
    let count = timeout(LONG, stream.read(&mut buffer)).await??;
    Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
}

async fn ask(stream: &mut TcpStream, command: &str) -> io::Result<String> {
    send(stream, command).await;
    receive(stream).await
}

async fn assert_silent(stream: &mut TcpStream) {
    let mut byte = [0];
    timeout(SHORT, stream.read(&mut byte)).await.expect_err("something came");
}

fn assert_reset(outcome: &io::Result<String>) {
    let kind = outcome.as_ref().expect_err("no reset").kind();
    assert_eq!(kind, io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn it_passes_and_counts() {
    let (_redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    assert_eq!(ask(&mut client, "PING").await.unwrap(), PONG);
    let open = proxy.snapshot().client(LOCAL);
    assert_eq!((open.connections, open.open, open.request_bytes, open.reply_bytes), (1, 1, 6, 7));
    assert_eq!((open.delayed_bytes, open.reset), (0, 0));
    drop(client);
    proxy.until(LONG, |state| state.total.open == 0).await.unwrap();
}

#[tokio::test]
async fn a_delay_of_replies_is_at_least_as_long_as_it_says() {
    let (_redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    proxy.set(Clients::All, Fault::Delay { delay_ms: 120, direction: Direction::Replies });
    let begun = Instant::now();
    assert_eq!(ask(&mut client, "PING").await.unwrap(), PONG);
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert_eq!(proxy.snapshot().total.delayed_bytes, 7);
}

#[tokio::test]
async fn a_held_request_reaches_redis_when_it_is_released() {
    let (redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    proxy.set(Clients::All, Fault::Hold { direction: Direction::Requests });
    send(&mut client, "SET key value").await;
    proxy.until(LONG, |state| state.total.held_request_bytes == 15).await.unwrap();
    assert_silent(&mut client).await;
    assert_eq!(redis.cli(&["EXISTS", "key"]).unwrap(), "0");
    proxy.set(Clients::All, Fault::Pass);
    assert_eq!(receive(&mut client).await.unwrap(), "+OK\r\n");
    assert_eq!(redis.cli(&["GET", "key"]).unwrap(), "value");
    assert_eq!(proxy.snapshot().total.held_request_bytes, 0);
}

#[tokio::test]
async fn a_held_request_of_a_client_that_has_gone_still_arrives() {
    let (redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    proxy.set(Clients::All, Fault::Hold { direction: Direction::Both });
    send(&mut client, "SET key value").await;
    proxy.until(LONG, |state| state.total.held_request_bytes == 15).await.unwrap();
    drop(client);
    proxy.set(Clients::All, Fault::Pass);
    proxy.until(LONG, |state| state.total.open == 0).await.unwrap();
    assert_eq!(redis.cli(&["GET", "key"]).unwrap(), "value");
}

#[tokio::test]
async fn a_dropped_reply_never_comes_though_redis_has_done_it() {
    let (redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Replies });
    send(&mut client, "INCR count").await;
    proxy.until(LONG, |state| state.total.dropped_reply_bytes == 4).await.unwrap();
    assert_silent(&mut client).await;
    assert_eq!(redis.cli(&["GET", "count"]).unwrap(), "1");
    proxy.set(Clients::All, Fault::Pass);
    assert_reset(&receive(&mut client).await);
    assert_eq!(proxy.snapshot().total.reset, 1);
    assert_eq!(ask(&mut connect(&proxy).await, "GET count").await.unwrap(), "$1\r\n1\r\n");
}

#[tokio::test]
async fn a_dropped_request_never_reaches_redis() {
    let (redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Requests });
    send(&mut client, "INCR count").await;
    proxy.until(LONG, |state| state.total.dropped_request_bytes == 12).await.unwrap();
    assert_eq!(redis.cli(&["EXISTS", "count"]).unwrap(), "0");
}

#[tokio::test]
async fn held_replies_can_be_dropped_instead_of_released() {
    let (_redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    proxy.set(Clients::All, Fault::Hold { direction: Direction::Replies });
    send(&mut client, "PING").await;
    proxy.until(LONG, |state| state.total.held_reply_bytes == 7).await.unwrap();
    proxy.set(Clients::All, Fault::Drop { direction: Direction::Replies });
    let after = proxy.until(LONG, |state| state.total.dropped_reply_bytes == 7).await.unwrap();
    assert_eq!(after.total.held_reply_bytes, 0);
    assert_silent(&mut client).await;
}

#[tokio::test]
async fn a_cut_resets_what_is_open_and_what_comes() {
    let (_redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    assert_eq!(ask(&mut client, "PING").await.unwrap(), PONG);
    proxy.set(Clients::All, Fault::Cut);
    assert_reset(&receive(&mut client).await);
    let mut next = connect(&proxy).await;
    assert_reset(&receive(&mut next).await);
    let counted = proxy.until(LONG, |state| state.total.open == 0).await.unwrap().total;
    assert_eq!((counted.connections, counted.reset, counted.refused), (2, 1, 1));
    proxy.set(Clients::All, Fault::Pass);
    assert_eq!(ask(&mut connect(&proxy).await, "PING").await.unwrap(), PONG);
}

#[tokio::test]
async fn a_fault_of_one_client_leaves_another_alone() {
    let (_redis, proxy) = set_up().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(proxy.address()).await.unwrap();
    let mut client = connect(&proxy).await;
    assert_eq!(ask(&mut other, "PING").await.unwrap(), PONG);
    proxy.set(Clients::One(LOCAL), Fault::Cut);
    assert_reset(&receive(&mut client).await);
    assert_eq!(ask(&mut other, "PING").await.unwrap(), PONG);
    let state = proxy.snapshot();
    assert_eq!(state.client(LOCAL).reset, 1);
    assert_eq!(state.client([127, 0, 0, 2].into()).reset, 0);
}

#[tokio::test]
async fn much_data_passes_whole_both_ways() {
    let (_redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    let value = "x".repeat(6 * 1024 * 1024);
    let header = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", value.len());
    let mut answer = vec![0; format!("${}\r\n\r\n", value.len()).len() + value.len()];
    let (mut reader, mut writer) = client.split();
    let whole = async {
        writer.write_all(format!("{header}{value}\r\n").as_bytes()).await.unwrap();
    };
    let (read, ()) = tokio::join!(timeout(LONG, reader.read_exact(&mut answer)), whole);
    read.unwrap().unwrap();
    assert!(answer.ends_with(format!("{value}\r\n").as_bytes()));
}

#[tokio::test]
async fn a_target_that_is_not_there_ends_the_connection_and_is_counted() {
    let nowhere = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = FaultProxy::start(nowhere.to_string()).await.unwrap();
    let mut client = connect(&proxy).await;
    assert_reset(&receive(&mut client).await);
    proxy.until(LONG, |state| state.total.unreachable == 1).await.unwrap();
}

#[tokio::test]
async fn a_proxy_that_is_dropped_leaves_no_connection() {
    let (_redis, proxy) = set_up().await;
    let mut client = connect(&proxy).await;
    assert_eq!(ask(&mut client, "PING").await.unwrap(), PONG);
    let address = proxy.address();
    drop(proxy);
    assert_eq!(receive(&mut client).await.unwrap_or_default(), "");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn waiting_for_what_does_not_happen_fails_with_the_state() {
    let (_redis, proxy) = set_up().await;
    let error = proxy.until(SHORT, |state| state.total.connections > 0).await.unwrap_err();
    assert!(error.to_string().contains("connections: 0"), "{error}");
}

#[tokio::test]
async fn it_is_told_over_http() {
    let (_redis, proxy) = set_up().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = listener.local_addr().unwrap().to_string();
    tokio::spawn(serve_control(listener, proxy.handle().clone()));
    let mut client = connect(&proxy).await;
    assert_eq!(ask(&mut client, "PING").await.unwrap(), PONG);
    let order = Order { client: Some(LOCAL), fault: Fault::Cut };
    let state = send_order(&control, order).await.unwrap();
    assert_eq!(state.faults.clients[&LOCAL], Fault::Cut);
    assert_reset(&receive(&mut client).await);
    assert_eq!(fetch_snapshot(&control).await.unwrap().client(LOCAL).reset, 1);

    let mut raw = TcpStream::connect(&control).await.unwrap();
    let request =
        "PUT /fault HTTP/1.1\r\nhost: x\r\ncontent-length: 24\r\n\r\n{\"fault\":{\"kind\":\"nap\"}} ";
    raw.write_all(request.as_bytes()).await.unwrap();
    let answer = receive(&mut raw).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("unknown variant `nap`"), "{answer}");
}
