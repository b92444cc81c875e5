//! Who may go to the backend now? The doors of all resources, with the store behind them and everybody who
//! waits in front.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use fencedlease_wire::Fence;
use fencedlease_wire::gate::GuardedResource;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::check::{Cut, Door, Fate, Mark, Refusal, RequestId, Verdict};
use crate::metrics::Metrics;
use crate::store::{Job, Record, Stored, unix_ms};

/// How long the parts of a desk wait.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// How long complete requests of an older fence have to be answered.
    pub drain: Duration,
    /// How long the desk stays closed after its start.
    pub closed: Duration,
    /// How long one request or raise waits to be let in.
    pub admission: Duration,
}

/// The doors of all resources.
pub struct Desk {
    doors: HashMap<GuardedResource, Arc<Shared>>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    is_broken: AtomicBool,
    next_id: AtomicU64,
    start: Instant,
    waits: Waits,
    metrics: Arc<Metrics>,
}

struct Shared {
    resource: GuardedResource,
    door: Mutex<Door>,
    since_ms: AtomicU64,
    /// Wakes those who wait in front of the door.
    changed: Notify,
    /// Tells those who are on their way that a newer fence is stored.
    raised: watch::Sender<u64>,
}

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotLetIn {
    /// By what is stored.
    Refused(Refusal),
    /// The store cannot keep a raise.
    StoreFailed,
    /// The wait was too long.
    TooLong,
}

/// A row of the page for people.
#[derive(Clone, Debug)]
pub struct Row {
    /// The resource.
    pub resource: GuardedResource,
    /// Its highest mark, if there was any.
    pub highest: Option<Mark>,
    /// When that was stored, in ms of Unix time.
    pub since_ms: u64,
    /// How many requests are on their way.
    pub on_their_way: usize,
}

/// The right of one request to be on its way. Without a word it ends as [`Fate::Unsettled`].
pub struct Passage {
    shared: Arc<Shared>,
    id: RequestId,
    start: Instant,
    raised: watch::Receiver<u64>,
    fate: Fate,
}

impl Desk {
    /// A desk for these resources, with what the store remembers of them.
    pub fn new(
        resources: &[GuardedResource],
        stored: &BTreeMap<GuardedResource, Record>,
        jobs: mpsc::Sender<Job>,
        waits: Waits,
        metrics: Arc<Metrics>,
    ) -> Self {
        let shared = |resource: &GuardedResource| {
            let record = stored.get(resource);
            let highest = record.map(|record| record.mark.clone());
            Arc::new(Shared {
                resource: resource.clone(),
                door: Mutex::new(Door::new(highest, waits.closed, waits.drain)),
                since_ms: AtomicU64::new(record.map_or(0, |record| record.time_ms)),
                changed: Notify::new(),
                raised: watch::Sender::new(0),
            })
        };
        Self {
            doors: resources.iter().map(|resource| (resource.clone(), shared(resource))).collect(),
            jobs: Mutex::new(Some(jobs)),
            is_broken: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            start: Instant::now(),
            waits,
            metrics,
        }
    }

    /// Lets a request through once it may pass.
    pub async fn admit(
        self: &Arc<Self>,
        resource: &GuardedResource,
        mark: &Mark,
    ) -> Result<Passage, NotLetIn> {
        self.wait_for(resource, mark, |shared, door| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            let raised = shared.raised.subscribe();
            door.enter(id, mark.clone());
            Passage { shared: Arc::clone(shared), id, start: self.start, raised, fate: Fate::Unsettled }
        })
        .await
    }

    /// Raises the fence, and answers when it is durable and no older request is on its way any more: the
    /// highest fence, and how many older requests have an unknown fate.
    pub async fn raise(
        self: &Arc<Self>,
        resource: &GuardedResource,
        mark: &Mark,
    ) -> Result<(Fence, u64), NotLetIn> {
        self.wait_for(resource, mark, |_, door| (mark.fence, door.unsettled())).await
    }

    /// Everything that is remembered, by resource.
    pub fn rows(&self) -> Vec<Row> {
        let row = |shared: &Arc<Shared>| {
            let door = shared.lock();
            Row {
                resource: shared.resource.clone(),
                highest: door.highest().cloned(),
                since_ms: shared.since_ms.load(Ordering::Relaxed),
                on_their_way: door.on_their_way(),
            }
        };
        let mut rows: Vec<Row> = self.doors.values().map(row).collect();
        rows.sort_by(|one, other| one.resource.cmp(&other.resource));
        rows
    }

    /// How many checked requests are on their way.
    pub fn on_their_way(&self) -> usize {
        self.doors.values().map(|shared| shared.lock().on_their_way()).sum()
    }

    /// Whether nothing can be stored until a restart.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Whether the wait after an unclean end is over.
    pub fn is_open(&self) -> bool {
        self.now() >= self.waits.closed
    }

    /// Takes no raise any more, so that the store's thread can end.
    pub fn close(&self) {
        self.lock_jobs().take();
    }

    async fn wait_for<T>(
        self: &Arc<Self>,
        resource: &GuardedResource,
        mark: &Mark,
        pass: impl Fn(&Arc<Shared>, &mut Door) -> T,
    ) -> Result<T, NotLetIn> {
        let shared = self.doors.get(resource).ok_or(NotLetIn::StoreFailed)?;
        let wait = async {
            loop {
                let mut changed = std::pin::pin!(shared.changed.notified());
                changed.as_mut().enable();
                let verdict = {
                    let mut door = shared.lock();
                    let verdict = door.judge(mark, self.now());
                    if verdict == Verdict::Pass {
                        return Ok(pass(shared, &mut door));
                    }
                    verdict
                };
                match verdict {
                    Verdict::Refused(refusal) => return Err(NotLetIn::Refused(refusal)),
                    Verdict::Store => self.store(shared, mark).await?,
                    Verdict::Wait(Some(until)) => tokio::select! {
                        () = changed => {}
                        () = sleep_until(self.start + until) => {}
                    },
                    Verdict::Wait(None) | Verdict::Pass => changed.await,
                }
            }
        };
        timeout(self.waits.admission, wait).await.unwrap_or(Err(NotLetIn::TooLong))
    }

    /// Hands a raise to the store's thread, which tells the door whether or not anybody still waits here.
    async fn store(self: &Arc<Self>, shared: &Arc<Shared>, mark: &Mark) -> Result<(), NotLetIn> {
        let (tell, told) = oneshot::channel();
        let (desk, door) = (Arc::clone(self), Arc::clone(shared));
        let done = move |stored: Stored| {
            desk.is_broken.fetch_or(stored.is_broken, Ordering::Relaxed);
            desk.metrics.raise(stored.is_durable, stored.took);
            door.stored(stored.is_durable, desk.now());
            // Whoever asked may have gone.
            let _ = tell.send(stored.is_durable);
        };
        let job = Job { resource: shared.resource.clone(), mark: mark.clone(), done: Box::new(done) };
        let is_sent = self.lock_jobs().as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !is_sent {
            shared.stored(false, self.now());
            return Err(NotLetIn::StoreFailed);
        }
        if told.await == Ok(true) { Ok(()) } else { Err(NotLetIn::StoreFailed) }
    }

    /// Time since the start.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn lock_jobs(&self) -> MutexGuard<'_, Option<mpsc::Sender<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage {
    /// The backend may have all of the request from now on.
    pub fn complete(&self) {
        self.shared.lock().complete(self.id);
    }

    /// The request was answered, or nothing that the backend could carry out has reached it.
    pub fn settle(mut self) {
        self.fate = Fate::Settled;
    }

    /// Waits until the request has to be cut. Asked anew after [`Passage::complete`].
    pub async fn cut(&mut self) {
        loop {
            let _ = self.raised.borrow_and_update();
            let cut = self.shared.lock().cut(self.id);
            match cut {
                Cut::Now => return,
                Cut::At(at) => return sleep_until(self.start + at).await,
                // The sender lives as long as the door, which this passage keeps.
                Cut::No => drop(self.raised.changed().await),
            }
        }
    }
}

// === impl Passage ===

impl Drop for Passage {
    fn drop(&mut self) {
        self.shared.lock().ended(self.id, self.fate);
        self.shared.changed.notify_waiters();
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self, is_durable: bool, now: Duration) {
        {
            let mut door = self.lock();
            if is_durable {
                door.stored(now);
                self.since_ms.store(unix_ms(), Ordering::Relaxed);
            } else {
                door.not_stored();
            }
        }
        self.raised.send_modify(|raises| *raises += 1);
        self.changed.notify_waiters();
    }
}
