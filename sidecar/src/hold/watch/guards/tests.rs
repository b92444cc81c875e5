#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::io::{IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use fencedlease_wire::HoldingId;
use fencedlease_wire::guard::FromGuard;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::*;
use crate::clock;

/// How long the last close of a lingering socket waits.
const LINGER: Duration = Duration::from_secs(3);
/// What a pass may take on a busy machine; far below the other.
const SOON: Duration = Duration::from_millis(500);

/// A listener and who connects to it.
struct Stage {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    sockets: GuardSockets,
    /// Peers of lingering sockets, which never read.
    peers: Vec<TcpStream>,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guard.sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let sockets = GuardSockets::new(listener.into()).unwrap();
        Self { _folder: folder, path, sockets, peers: Vec::new() }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).unwrap()
    }

    /// A socket whose last close takes as long as [`LINGER`].
    fn lingering(&mut self) -> OwnedFd {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        self.peers.push(listener.accept().unwrap().0);
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 8192]).is_ok() {}
        socket.set_nonblocking(false).unwrap();
        set_socket_linger(&socket, Some(LINGER)).unwrap();
        socket.into()
    }

    /// One pass over everything, which must not take long.
    fn pass(&mut self, now: BootTime) -> Vec<Event> {
        let all = |sockets: &GuardSockets| sockets.connections.iter().map(|it| it.id).collect();
        let ready = Ready { listener: true, readable: all(&self.sockets), ..Ready::default() };
        let begun = Instant::now();
        let events = self.sockets.serve(&ready, now);
        assert!(begun.elapsed() < SOON, "a pass took {:?}", begun.elapsed());
        events
    }
}

fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) {
    let borrowed: Vec<_> = descriptors.iter().map(std::os::fd::AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

fn hello() -> Vec<u8> {
    let hello = FromGuard::Hello { container: "app".into(), secret: None, holding: None, acted: false };
    let mut line = serde_json::to_vec(&hello).unwrap();
    line.push(b'\n');
    line
}

fn own_pidfd() -> OwnedFd {
    pidfd_open(getpid(), PidfdFlags::empty()).unwrap()
}

#[test]
fn a_lingering_socket_takes_its_time_to_close() {
    let mut stage = Stage::new();
    let socket = stage.lingering();
    let begun = Instant::now();
    drop(socket);
    assert!(begun.elapsed() > SOON, "it closed in {:?}: the other tests would show nothing", begun.elapsed());
}

#[test]
fn descriptors_beside_the_pidfd_cut_the_connection_and_are_not_waited_for() {
    let mut stage = Stage::new();
    let client = stage.connect();
    stage.pass(clock::now());
    let fds = [own_pidfd(), stage.lingering(), stage.lingering()];
    send(&client, &hello(), &fds);
    drop(fds);
    let events = stage.pass(clock::now());
    assert!(events.is_empty(), "{events:?}");
    assert!(stage.sockets.connections.is_empty());
}

#[test]
fn what_is_no_pidfd_cuts_the_connection_and_is_not_waited_for() {
    let mut stage = Stage::new();
    let client = stage.connect();
    stage.pass(clock::now());
    let fd = stage.lingering();
    send(&client, &hello(), &[fd]);
    assert!(stage.pass(clock::now()).is_empty());
    assert!(stage.sockets.connections.is_empty());
}

#[test]
fn a_socket_with_unread_descriptors_is_not_waited_for_when_its_patience_ends() {
    let mut stage = Stage::new();
    let client = stage.connect();
    let fd = stage.lingering();
    send(&client, b"x", &[fd]);
    // Taken in by this pass and read by none.
    let ready = Ready { listener: true, ..Ready::default() };
    stage.sockets.serve(&ready, clock::now());
    assert_eq!(stage.sockets.connections.len(), 1);
    let begun = Instant::now();
    stage.sockets.serve(&Ready::default(), clock::now() + HELLO_PATIENCE + HELLO_PATIENCE);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(stage.sockets.connections.is_empty());
}

#[test]
fn who_is_turned_away_among_greeted_ones_is_not_waited_for() {
    let mut stage = Stage::new();
    let mut clients = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let client = stage.connect();
        send(&client, &hello(), &[own_pidfd()]);
        clients.push(client);
        stage.pass(clock::now());
    }
    stage.pass(clock::now());
    assert!(stage.sockets.connections.iter().all(|connection| connection.has_greeted));
    let last = stage.connect();
    let fd = stage.lingering();
    send(&last, b"x", &[fd]);
    stage.pass(clock::now());
    assert_eq!(stage.sockets.connections.len(), MAX_CONNECTIONS);
}

#[test]
fn while_much_is_to_be_closed_nothing_more_is_taken_in() {
    let mut stage = Stage::new();
    for round in 0..4 {
        let client = stage.connect();
        stage.pass(clock::now());
        let mut fds: Vec<OwnedFd> = (0..200).map(|_| own_pidfd()).collect();
        fds.push(stage.lingering());
        send(&client, b"x", &fds);
        drop(fds);
        stage.pass(clock::now());
        assert_eq!(stage.sockets.closer.is_behind(), round >= 1, "after {round}");
    }
    let late = stage.connect();
    stage.pass(clock::now());
    assert!(stage.sockets.connections.is_empty(), "nobody is let in");
    assert!(stage.sockets.next_instant().is_some(), "it is tried again");
    drop(late);
}

#[test]
fn a_hello_is_not_heard_of_who_is_cut_in_the_same_breath() {
    let mut stage = Stage::new();
    let client = stage.connect();
    stage.pass(clock::now());
    let mut lines = hello();
    lines.extend_from_slice(b"this is no message\n");
    send(&client, &lines, &[own_pidfd()]);
    let events = stage.pass(clock::now());
    assert!(events.is_empty(), "{events:?}");
    assert!(stage.sockets.next_gone().is_none(), "nobody was there who could be gone");
}

#[test]
fn the_last_words_of_a_guard_are_heard_before_it_is_gone() {
    let mut stage = Stage::new();
    let mut client = stage.connect();
    stage.pass(clock::now());
    send(&client, &hello(), &[own_pidfd()]);
    assert!(matches!(stage.pass(clock::now())[..], [Event::Hello { .. }]));
    let said = FromGuard::Ended { holding: HoldingId::from_random([1; 8]), exit_code: 3 };
    let mut lines = serde_json::to_vec(&said).unwrap();
    lines.extend_from_slice(b"\nthis is no message\n");
    client.write_all(&lines).unwrap();
    let events = stage.pass(clock::now());
    assert!(matches!(events[..], [Event::Said { .. }]), "{events:?}");
    assert!(stage.sockets.next_gone().is_some());
}

#[test]
fn what_clients_left_is_not_waited_for_at_the_end_either() {
    let mut stage = Stage::new();
    let client = stage.connect();
    stage.pass(clock::now());
    let fd = stage.lingering();
    send(&client, b"x", &[fd]);
    let not_accepted = stage.connect();
    let fd = stage.lingering();
    send(&not_accepted, b"x", &[fd]);
    let Stage { sockets, peers, .. } = stage;
    let begun = Instant::now();
    sockets.close();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop(peers);
}
