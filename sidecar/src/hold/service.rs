//! The thread that talks to everybody who may wait: the application's socket, probes, metrics, reports and
//! logs. It is told of the pod by the watching thread and can delay it in nothing.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use anyhow::Context as _;
use fencedlease_wire::endpoint;
use fencedlease_wire::gate::TICKET_HEADER_IN_DOCS;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::admin::{self, Admin};
use super::facts::Teller;
use super::mailbox::Post;
use super::metrics::{Metrics, observe};
use super::news::{Latest, News, NewsReceiver};
use super::operator::Operator;
use super::pod::{Event, Fact, State};
use super::report::{self, About};
use super::socket::{self, Socket};
use super::tickets::Tickets;
use super::watch::Letter;
use crate::clock;

/// All that the service needs.
pub struct Service {
    /// News of the watching thread; the service ends with them.
    pub news: NewsReceiver,
    /// `lease.sock`.
    pub lease_socket: UnixListener,
    /// Probes and metrics.
    pub admin_socket: TcpListener,
    /// Whether a waiting pod is Ready.
    pub standby_is_ready: bool,
    /// The metrics.
    pub metrics: Metrics,
    /// To the watching thread.
    pub post: Post<Letter>,
    /// What gates believe, where there are gates.
    pub tickets: Option<Arc<Tickets>>,
    /// Whom to report to, and about whom.
    pub operator: Option<(Arc<Operator>, About)>,
}

impl Service {
    /// Serves until the watching thread ends, then sends the last reports.
    pub async fn serve(self) -> anyhow::Result<()> {
        let latest = self.news.latest();
        let mut tasks = JoinSet::new();
        let lease_socket = tokio::net::UnixListener::from_std(self.lease_socket)?;
        tasks.spawn(named(
            "lease.sock",
            socket::serve(
                lease_socket,
                application_socket(latest.clone(), self.post, self.tickets, &self.metrics),
            ),
        ));
        let admin = Admin {
            latest: latest.clone(),
            now: clock::now,
            standby_is_ready: self.standby_is_ready,
            metrics: self.metrics.clone(),
        };
        let admin_socket = tokio::net::TcpListener::from_std(self.admin_socket)?;
        tasks.spawn(named("probes and metrics", admin::serve(admin_socket, admin)));
        let mut reports = Reports::start(self.operator, latest);
        let teller = Teller::new(self.metrics.clone());
        let mut speaker = Speaker { news: self.news, teller, metrics: self.metrics };
        loop {
            tokio::select! {
                told = speaker.news.next() => match told {
                    Some(told) => {
                        if let Some(fact) = speaker.tell(told) {
                            reports.send(fact);
                        }
                    }
                    None => return reports.finish().await,
                },
                Some(ended) = tasks.join_next() => return ended?,
                ended = reports.ended() => return ended.context("the reports to the operator ended"),
            }
        }
    }
}

/// Publishes, logs and counts.
struct Speaker {
    news: NewsReceiver,
    metrics: Metrics,
    teller: Teller,
}

impl Speaker {
    /// Takes in news; gives what the operator is to be told.
    fn tell(&mut self, news: News) -> Option<endpoint::Fact> {
        match news {
            News::View(published) => {
                let fence = match &published.state {
                    State::Active { fence, .. } => Some(fence.get()),
                    _ => None,
                };
                self.metrics.lease_active.set(i64::from(fence.is_some()));
                // A fence has at most 15 digits: every one is a float of its own.
                #[expect(clippy::cast_precision_loss, reason = "at most 15 digits")]
                self.metrics.fence_current.set(fence.unwrap_or_default() as f64);
                self.news.publish(*published);
                None
            }
            News::Fact { fact, at } => {
                if matches!(*fact, Fact::LossNoticed { .. }) {
                    observe(&self.metrics.loss_notify, clock::now().since(at));
                }
                self.teller.tell(&fact, at, &self.news.last().resource)
            }
        }
    }
}

/// The task that reports, if there is somebody to report to.
struct Reports {
    facts: Option<mpsc::UnboundedSender<endpoint::Fact>>,
    task: JoinSet<()>,
}

impl Reports {
    fn start(operator: Option<(Arc<Operator>, About)>, latest: Latest) -> Self {
        let mut task = JoinSet::new();
        let facts = operator.map(|(operator, about)| {
            let (facts, told) = mpsc::unbounded_channel();
            let random = || getrandom::u64().unwrap_or(u64::MAX);
            task.spawn(report::report(operator, about, told, latest, random));
            facts
        });
        Self { facts, task }
    }

    fn send(&self, fact: endpoint::Fact) {
        if let Some(facts) = &self.facts {
            // A task that is gone is noticed by `ended`.
            let _ = facts.send(fact);
        }
    }

    /// The task ended, which it does not do while its sender lives.
    async fn ended(&mut self) -> Result<(), JoinError> {
        match self.task.join_next().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    async fn finish(mut self) -> anyhow::Result<()> {
        self.facts = None;
        match self.task.join_next().await {
            Some(ended) => Ok(ended?),
            None => Ok(()),
        }
    }
}

fn application_socket(
    latest: Latest,
    post: Post<Letter>,
    tickets: Option<Arc<Tickets>>,
    metrics: &Metrics,
) -> Socket {
    let (allowed, refused) = (metrics.commit_checks_allowed.clone(), metrics.commit_checks_refused.clone());
    let remaining = metrics.commit_remaining.clone();
    let counts = metrics.clone();
    let post = std::sync::Mutex::new(post);
    Socket {
        latest,
        now: clock::now,
        step_down: Arc::new(move || {
            let post = post.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            post.send(Letter { event: Event::StepDown, at: clock::now() });
        }),
        headers: Arc::new(move |fence, holding| {
            // A pod with gates is ACTIVE only once it had a key, which it keeps.
            let ticket = tickets.as_ref().and_then(|tickets| tickets.sign(fence, holding).ok());
            ticket.map(|ticket| (TICKET_HEADER_IN_DOCS.to_owned(), ticket)).into_iter().collect()
        }),
        on_commit_check: Arc::new(move |is_allowed, left| {
            if is_allowed {
                allowed.inc();
            } else {
                refused.inc();
            }
            observe(&remaining, left);
        }),
        on_fence_rejected: Arc::new(move |kind| counts.fence_rejected(kind)),
    }
}

/// None of these ends by itself: an end says that something broke.
async fn named(name: &'static str, task: impl Future<Output = std::io::Result<()>>) -> anyhow::Result<()> {
    task.await.with_context(|| format!("{name} cannot be served"))?;
    Err(anyhow::anyhow!("{name} ended"))
}
