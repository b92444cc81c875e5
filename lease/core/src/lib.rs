//! The lease itself, as decisions over plain data: the timing rules, the machine of one holding, and when
//! a standby tries again. Deterministic: no I/O, no threads, and every instant is passed in.

pub mod backoff;
pub mod boot_time;
pub mod duration;
pub mod holding;
pub mod standby;
pub mod timing;

pub use boot_time::BootTime;
pub use holding::{Holding, HoldingState, Loss, RenewalCall, RenewalOutcome};
pub use timing::{Timing, TimingError};
