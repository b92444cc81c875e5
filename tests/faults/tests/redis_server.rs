//! The Redis of a test is a real one, and does what the test says.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencedlease_faults::{RedisError, RedisServer};

#[test]
fn it_serves_and_two_of_them_know_nothing_of_each_other() {
    let (one, other) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    assert_eq!(one.cli(&["SET", "key", "value"]).unwrap(), "OK");
    assert_eq!(one.cli(&["GET", "key"]).unwrap(), "value");
    assert_eq!(other.cli(&["EXISTS", "key"]).unwrap(), "0");
    assert_ne!(one.address(), other.address());
}

#[test]
fn arguments_win_over_the_defaults() {
    let server = RedisServer::with_args(&["--maxmemory", "3mb", "--requirepass", "secret"]).unwrap();
    assert!(server.cli(&["-a", "secret", "CONFIG", "GET", "maxmemory"]).unwrap().ends_with("3145728"));
    let refused = server.cli(&["GET", "key"]).unwrap_err();
    assert!(refused.to_string().contains("NOAUTH"), "{refused}");
}

#[test]
fn a_stopped_server_answers_nothing_until_it_goes_on() {
    let server = RedisServer::start().unwrap();
    server.stop().unwrap();
    assert!(server.is_stopped().unwrap());
    // The kernel still accepts for it.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    std::io::Write::write_all(&mut stream, b"PING\r\n").unwrap();
    stream.read_exact(&mut [0; 7]).unwrap_err();
    server.cont().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_killed_server_comes_back_empty_at_the_same_place() {
    let mut server = RedisServer::start().unwrap();
    let (address, pid) = (server.address(), server.pid().unwrap());
    server.cli(&["SET", "key", "value"]).unwrap();
    server.kill().unwrap();
    assert!(matches!(server.stop(), Err(RedisError::NotRunning)));
    TcpStream::connect(address).unwrap_err();
    server.restart().unwrap();
    assert_eq!(server.address(), address);
    assert_ne!(server.pid().unwrap(), pid);
    assert_eq!(server.cli(&["EXISTS", "key"]).unwrap(), "0");
}

#[test]
fn what_it_persists_survives_a_kill() {
    let mut server = RedisServer::with_args(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    server.cli(&["SET", "key", "value"]).unwrap();
    server.restart().unwrap();
    assert_eq!(server.cli(&["GET", "key"]).unwrap(), "value");
}

#[test]
fn it_is_gone_with_its_owner_but_not_with_the_thread_that_started_it() {
    let server = std::thread::spawn(|| RedisServer::start().unwrap()).join().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.cli(&["PING"]).unwrap(), "PONG");
    let process = format!("/proc/{}", server.pid().unwrap());
    let folder = server.folder().to_owned();
    assert!(Path::new(&process).exists());
    drop(server);
    assert!(!Path::new(&process).exists());
    assert!(!folder.exists());
}

/// Runs twice: as the test, and as the program that the test kills.
#[test]
fn it_is_gone_with_a_test_program_that_is_killed() {
    const OWNER: &str = "FENCEDLEASE_REDIS_OWNER";
    if std::env::var_os(OWNER).is_some() {
        let server = RedisServer::start().unwrap();
        println!("\nredis {}", server.pid().unwrap());
        std::thread::sleep(Duration::from_secs(60));
    }
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "it_is_gone_with_a_test_program_that_is_killed", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("redis ").map(str::to_owned));
    let process = format!("/proc/{}", pid.unwrap());
    assert!(Path::new(&process).exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !Path::new(&process).exists()
    });
    assert!(gone, "redis-server outlived its owner");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let error = RedisServer::with_args(&["--maxmemory", "plenty"]).unwrap_err();
    assert!(matches!(error, RedisError::Ended { .. }), "{error}");
}
