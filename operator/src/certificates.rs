//! Which certificates does the operator serve with, and who trusts them?
//!
//! A certificate authority and a leaf of our own live in one Secret of the operator's namespace. Both
//! replicas read it; whoever comes first renews it. [`plan`] decides what is due, [`issue`] makes it,
//! [`store`] keeps it, [`served`] hands it to TLS, and [`bundle`] tells the API server whom to trust.

pub mod bundle;
pub mod issue;
pub mod material;
pub mod plan;
pub mod served;
pub mod store;
pub mod upkeep;

pub use material::{Authority, Leaf, Material};
