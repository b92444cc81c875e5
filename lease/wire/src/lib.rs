//! What crosses a process border, and nothing else: names, the fence, tokens, exit codes, and the JSON
//! that sidecar, guard, application and operator exchange. No I/O, no clock, no policy.

pub mod endpoint;
pub mod exit;
pub mod fence;
pub mod gate;
pub mod guard;
pub mod lost;
pub mod paths;
pub mod reason;
pub mod resource;
pub mod settings;
pub mod socket;
pub mod token;

pub use fence::{Fence, FenceError};
pub use reason::{EndReason, LossReason, PlannedEnd};
pub use resource::{ResourceName, ResourceNameError};
pub use settings::SidecarSettings;
pub use token::{HoldingId, OwnerToken, TokenError};
