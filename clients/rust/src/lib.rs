//! What an application asks its sidecar: which fence to write with, whether a commit may still start, and when
//! to stop.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use fencedlease_client::{Client, Ended};
//!
//! let client = Client::from_env()?;
//! let holding = client.holding().await?;
//! let fence = holding.fence();
//! let work = async {
//!     // The long part, and right before the write:
//!     let permit = client.commit_check(Some(fence), Some(Duration::from_secs(3))).await?;
//!     Ok::<_, fencedlease_client::ClientError>(permit.fence())
//! };
//! match holding.run(work).await {
//!     Ok(result) => println!("written with fence {}", result?),
//!     Err(ended) => println!("cancelled: {ended}"),
//! }
//! # Ok(()) }
//! ```
//!
//! Dropping work is not rolling it back: what was sent may still arrive. Have the resource compare the fence.

mod client;
mod error;
mod events;
mod holding;
mod http;

pub use client::{Client, Permit};
pub use error::ClientError;
pub use events::{Event, Events};
pub use fencedlease_wire::gate::TICKET_HEADER;
pub use fencedlease_wire::socket::{CommitRefusal, FenceRejection, LeaseView, ResourceKind};
pub use fencedlease_wire::{EndReason, Fence, HoldingId, LossReason, PlannedEnd};
pub use holding::{Ended, Holding};
