use std::time::Duration;

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

async fn start(router: Router) -> (SocketAddr, watch::Sender<bool>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let server = Server { name: "test", listener, tls: None, router };
    (address, stop, tokio::spawn(server.run(stopped)))
}

async fn send(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    stream
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_request_that_is_under_way_at_the_end_is_answered() {
    let (begun, wait_begun) = tokio::sync::oneshot::channel();
    let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
    let (go, wait_go) = watch::channel(false);
    let router = Router::new().route(
        "/",
        get(move || {
            let (begun, mut go) = (begun.lock().unwrap().take(), wait_go.clone());
            async move {
                begun.unwrap().send(()).unwrap();
                go.wait_for(|go| *go).await.unwrap();
                "late"
            }
        }),
    );
    let (address, stop, server) = start(router).await;
    let stream = send(address).await;
    wait_begun.await.unwrap();
    stop.send_replace(true);
    go.send_replace(true);
    assert!(read_all(stream).await.ends_with("late"));
    server.await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_does_not_delay_the_end() {
    let (address, stop, server) = start(Router::new()).await;
    let mut idle = send(address).await;
    let mut answer = [0; 512];
    assert!(idle.read(&mut answer).await.unwrap() > 0, "the connection is served, and then idle");
    stop.send_replace(true);
    timeout(Duration::from_secs(5), server).await.unwrap().unwrap();
    assert_eq!(read_all(idle).await, "");
}

#[tokio::test]
async fn nothing_is_accepted_after_the_end() {
    let (address, stop, server) = start(Router::new()).await;
    stop.send_replace(true);
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn what_is_no_http_is_answered_and_closed() {
    let (address, stop, server) = start(Router::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"\x16\x03\x01 nonsense\r\n\r\n").await.unwrap();
    assert!(read_all(stream).await.starts_with("HTTP/1.1 400"));
    stop.send_replace(true);
    server.await.unwrap();
}
