//! Eight clients at one gate that is killed while they work, and what each of them saw.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::judge::{Saw, Seen};
use crate::support::{Answer, Client, Holder, Nginx, Setup, Store};

const CLIENTS: u64 = 8;
const OPERATIONS: usize = 7;
const KILLS: u64 = 2;

/// What happens to the store when a gate is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Disk {
    /// It is kept.
    Kept,
    /// It is lost, which must be noticed in the history.
    Lost,
}

/// What a run's clients share.
struct Shared {
    address: Mutex<SocketAddr>,
    clock: AtomicU64,
    fences: AtomicU64,
    path: String,
    history: Mutex<Vec<Seen>>,
}

/// The history of one run, which is another for each seed.
pub(crate) fn run(nginx: &Nginx, seed: u64, disk: Disk) -> Vec<Seen> {
    let store = Store::new();
    let setup = Setup::new(nginx.address).with(&[
        "--drain-ms",
        "60",
        "--log-level",
        "warn,fencedlease_gate::app=info",
    ]);
    let gate = setup.start(&store);
    let shared = Shared {
        address: Mutex::new(gate.address),
        clock: AtomicU64::new(0),
        fences: AtomicU64::new(1),
        path: format!("/history-{seed}-{disk:?}"),
        history: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let shared = &shared;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || work(shared, client, &mut Random(seed * CLIENTS + client + 1))))
            .collect();
        // A gate dies with the thread that started it, so that is this one.
        let mut random = Random(seed + 77);
        let mut gate = gate;
        for _ in 0..KILLS {
            std::thread::sleep(Duration::from_micros(random.below(25_000)));
            gate.kill();
            if disk == Disk::Lost {
                std::fs::remove_dir_all(store.data()).unwrap();
            }
            gate = setup.start(&store);
            *shared.address.lock().unwrap() = gate.address;
        }
        for client in clients {
            client.join().unwrap();
        }
    });
    shared.history.into_inner().unwrap()
}

fn work(shared: &Shared, client: u64, random: &mut Random) {
    let mut holder = Holder { fence: 1, holder: 1 };
    let mut connection = None;
    for operation in 0..OPERATIONS {
        // Some go on with an old fence, as the dead do; some share one, and a few claim another's.
        let newest = shared.fences.load(Ordering::SeqCst);
        match random.below(8) {
            0 | 1 => {
                let fence = shared.fences.fetch_add(1, Ordering::SeqCst) + 1;
                holder = Holder { fence, holder: u8::try_from(client).unwrap() };
            }
            2 => holder = Holder { fence: newest, holder: u8::try_from(client % 2).unwrap() },
            3 | 4 => holder.fence = newest,
            _ => {}
        }
        let value = format!("{client}-{operation}");
        act(shared, &mut connection, holder, &value, random);
    }
}

fn act(shared: &Shared, connection: &mut Option<Client>, holder: Holder, value: &str, random: &mut Random) {
    let mut client = match connection.take() {
        Some(client) => client,
        None => reconnect(shared),
    };
    let ticket = holder.ticket();
    let ticket = [("FencedLease", ticket.as_str())];
    let kind = random.below(10);
    let pause = Duration::from_micros(random.below(8_000));
    let called = shared.clock.fetch_add(1, Ordering::SeqCst);
    let (method, path, body) = match kind {
        0..4 => ("PUT", shared.path.as_str(), value),
        4 | 5 => ("PUT-SLOWLY", shared.path.as_str(), value),
        6 => ("POST", "/.fencedlease/v1/raise", ""),
        7 | 8 => ("GET", shared.path.as_str(), ""),
        _ => ("GET-OPENLY", shared.path.as_str(), ""),
    };
    let answer = match method {
        "PUT-SLOWLY" => client.try_send_slowly(path, holder, value.as_bytes(), pause),
        "GET-OPENLY" => client.try_send("GET", path, &[], b""),
        method => client.try_send(method, path, &ticket, body.as_bytes()),
    };
    let answered = shared.clock.fetch_add(1, Ordering::SeqCst);
    let saw = saw(method, answer.as_ref().ok());
    if answer.is_ok_and(|answer| answer.result() != "unknown") {
        *connection = Some(client);
    }
    let is_checked = method != "GET-OPENLY";
    let is_write = method.starts_with("PUT");
    shared.history.lock().unwrap().push(Seen {
        holder: is_checked.then_some(holder),
        value: is_write.then(|| value.to_owned()),
        called,
        answered,
        saw,
    });
}

fn saw(method: &str, answer: Option<&Answer>) -> Saw {
    let Some(answer) = answer else { return Saw::Unknown };
    let value = || match answer.status {
        200 => Saw::Read(Some(answer.text())),
        404 => Saw::Read(None),
        _ => Saw::Unknown,
    };
    match (answer.result(), method) {
        ("refused", _) => Saw::Refused,
        ("passed", "POST") => Saw::Raised,
        ("passed", "GET") | ("none", _) => value(),
        ("passed", _) if matches!(answer.status, 201 | 204) => Saw::Written,
        ("rejected", _) => panic!("{answer:?}"),
        _ => Saw::Unknown,
    }
}

fn reconnect(shared: &Shared) -> Client {
    loop {
        let address = *shared.address.lock().unwrap();
        match Client::try_connect(address) {
            Ok(client) => return client,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// xorshift64*, so that a seed gives the same choices again.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        for shift in [12, -25_i32, 27] {
            let moved = if shift < 0 { self.0 << -shift } else { self.0 >> shift };
            self.0 ^= moved;
        }
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % end
    }
}
