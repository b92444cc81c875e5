//! How does a FencedLease stand? From what sidecars report and what the caches show.
//!
//! [`fold`](fold::fold) takes one report into a status, [`settle`](settle::settle) makes phase, counts and
//! conditions of it, and [`write`] puts it where users see it. The first two are pure.

pub mod conditions;
pub mod fold;
pub mod order;
pub mod pods;
pub mod settle;
pub mod write;
