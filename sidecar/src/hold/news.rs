//! What the watching thread tells the service, and how far the service has come with it.
//!
//! A workload may ask in the very instant in which it was started. Who answers must therefore not fall behind what
//! the watching thread has told already, though that thread waits for nobody: it counts what it tells, and an answer
//! waits until as much was heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fencedlease_core::BootTime;
use tokio::sync::{mpsc, watch};

use super::pod::{Fact, Published};

/// What the watching thread tells.
#[derive(Debug)]
pub enum News {
    /// The pod as it is now.
    View(Box<Published>),
    /// Something that happened, and when.
    Fact {
        /// What.
        fact: Box<Fact>,
        /// When.
        at: BootTime,
    },
}

/// Tells. Never waits; what is told after the receiver is gone is lost.
#[derive(Debug)]
pub struct NewsSender {
    news: mpsc::UnboundedSender<News>,
    told: Arc<AtomicU64>,
}

/// Hears, and publishes the views.
#[derive(Debug)]
pub struct NewsReceiver {
    news: mpsc::UnboundedReceiver<News>,
    heard: u64,
    views: watch::Sender<Heard>,
    told: Arc<AtomicU64>,
}

/// The last view, never older than what was told before it is asked.
#[derive(Clone, Debug)]
pub struct Latest {
    views: watch::Receiver<Heard>,
    told: Arc<AtomicU64>,
}

/// A view, and how many there were up to it.
#[derive(Debug)]
struct Heard {
    number: u64,
    published: Arc<Published>,
}

/// A way from the watching thread to the service; `first` is the pod before anything is told.
pub fn news(first: Published) -> (NewsSender, NewsReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let told = Arc::new(AtomicU64::new(0));
    let (views, _) = watch::channel(Heard { number: 0, published: Arc::new(first) });
    let news = NewsSender { news: sender, told: Arc::clone(&told) };
    (news, NewsReceiver { news: receiver, heard: 0, views, told })
}

impl NewsSender {
    /// Tells how the pod is now. Who asks [`Latest`] from now on hears this, or what is later.
    pub fn view(&self, published: Published) {
        self.told.fetch_add(1, Ordering::SeqCst);
        self.send(News::View(Box::new(published)));
    }

    /// Tells what happened, and when.
    pub fn fact(&self, fact: Fact, at: BootTime) {
        self.send(News::Fact { fact: Box::new(fact), at });
    }

    fn send(&self, news: News) {
        // A service that is gone has ended the process, or is about to.
        let _ = self.news.send(news);
    }
}

impl NewsReceiver {
    /// The next news; `None` once the watching thread is gone.
    pub async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// Makes a view the latest.
    pub fn publish(&mut self, published: Published) {
        self.heard += 1;
        self.views.send_replace(Heard { number: self.heard, published: Arc::new(published) });
    }

    /// The last view that was published here.
    pub fn last(&self) -> Arc<Published> {
        Arc::clone(&self.views.borrow().published)
    }

    /// For those who answer.
    pub fn latest(&self) -> Latest {
        Latest { views: self.views.subscribe(), told: Arc::clone(&self.told) }
    }
}

impl Latest {
    /// The view as of now: waits, for what is a moment, until all was heard that has been told.
    pub async fn get(&mut self) -> Arc<Published> {
        let told = self.told.load(Ordering::SeqCst);
        // A receiver that is gone has nothing newer; the process ends then.
        let _ = self.views.wait_for(|heard| heard.number >= told).await;
        Arc::clone(&self.views.borrow_and_update().published)
    }

    /// The last view that was heard, at once. For those whom a moment's delay does not mislead.
    pub fn last(&self) -> Arc<Published> {
        Arc::clone(&self.views.borrow().published)
    }

    /// A view that was not given yet; `None` once the receiver is gone.
    pub async fn next(&mut self) -> Option<Arc<Published>> {
        self.views.changed().await.ok()?;
        Some(Arc::clone(&self.views.borrow_and_update().published))
    }
}

#[cfg(test)]
mod tests;
