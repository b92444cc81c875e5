//! A backend that does what no good one does: it stalls, or cuts connections.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rustix::io::Errno;
use rustix::net::RecvFlags;

/// What a backend does with a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mood {
    /// Answers 200 to whole requests.
    Answers,
    /// Reads the whole request, and answers when the mood changes.
    Stalls,
    /// Reads the whole request, then ends the connection.
    Cuts,
    /// Answers 413 as soon as it has the head.
    AnswersEarly,
    /// Reads nothing after the head.
    ReadsNothing,
}

/// A server on a free port. Its threads end with the test program.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    shared: Arc<(Mutex<Mood>, Condvar)>,
    whole: Arc<AtomicU64>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Backend {
    pub(crate) fn start(mood: Mood) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let backend = Self {
            address: socket.local_addr().unwrap(),
            shared: Arc::new((Mutex::new(mood), Condvar::new())),
            whole: Arc::default(),
            open: Arc::default(),
        };
        let copy = backend.clone();
        std::thread::spawn(move || {
            for stream in socket.incoming().map_while(Result::ok) {
                let copy = copy.clone();
                copy.open.lock().unwrap().push(stream.try_clone().unwrap());
                std::thread::spawn(move || {
                    copy.serve(&stream);
                    // Others may have it too, so that dropping it does not end it.
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        backend
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.shared.0.lock().unwrap() = mood;
        self.shared.1.notify_all();
    }

    /// How many requests it has got wholly.
    pub(crate) fn whole(&self) -> u64 {
        self.whole.load(Ordering::SeqCst)
    }

    /// How many connections their other side has ended.
    pub(crate) fn left_by_peers(&self) -> u64 {
        let is_left = |stream: &&TcpStream| {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            matches!(rustix::net::recv(stream, &mut [0; 1], flags), Ok((0, _)) | Err(Errno::CONNRESET))
        };
        self.open.lock().unwrap().iter().filter(is_left).count() as u64
    }

    /// Ends every connection.
    pub(crate) fn close_all(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    fn mood(&self) -> Mood {
        *self.shared.0.lock().unwrap()
    }

    fn wait_while(&self, mood: Mood) {
        let mut now = self.shared.0.lock().unwrap();
        while *now == mood {
            now = self.shared.1.wait(now).unwrap();
        }
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut bytes = Vec::new();
        while let Some(head) = read_until_head(&mut stream, &mut bytes) {
            if self.mood() == Mood::AnswersEarly {
                let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n");
            }
            self.wait_while(Mood::ReadsNothing);
            let length = length(&bytes[..head]);
            while bytes.len() < head + length {
                let mut more = [0; 16384];
                match stream.read(&mut more) {
                    Ok(read @ 1..) => bytes.extend(&more[..read]),
                    _ => return,
                }
            }
            bytes.drain(..head + length);
            self.whole.fetch_add(1, Ordering::SeqCst);
            self.wait_while(Mood::Stalls);
            if self.mood() == Mood::Cuts {
                return;
            }
            if self.mood() == Mood::AnswersEarly {
                continue;
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n").is_err() {
                return;
            }
        }
    }
}

fn read_until_head(stream: &mut impl Read, bytes: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            return Some(at + 4);
        }
        let mut more = [0; 4096];
        match stream.read(&mut more) {
            Ok(read @ 1..) => bytes.extend(&more[..read]),
            _ => return None,
        }
    }
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    value.unwrap_or(0)
}
