use std::time::Duration;

use fencedlease_wire::{Fence, LossReason};

use super::*;

#[test]
fn only_a_confirmed_renewal_is_none_that_failed() {
    let reason = |reply| match renewal_outcome(&reply) {
        RenewalOutcome::Confirmed => None,
        RenewalOutcome::Failed { reason, .. } => Some(reason),
    };
    let address = || "redis:6379".to_owned();
    let confirmed = RenewReply::Renewed { found: None, server_time: Duration::ZERO };
    assert_eq!(reason(Ok(confirmed)), None);
    assert_eq!(reason(Ok(RenewReply::KeyGone { highest: None })), Some(LossReason::KeyGone));
    let found = Fence::new(3).ok();
    assert_eq!(reason(Ok(RenewReply::SequenceLost { found })), Some(LossReason::SequenceLost));
    let other = RenewReply::OtherOwner { remaining: None, highest: None, holder: None };
    assert_eq!(reason(Ok(other)), Some(LossReason::OtherOwner));
    let timeout = CallError::Timeout { address: address(), waited: Duration::from_secs(1) };
    assert_eq!(reason(Err(timeout)), Some(LossReason::RenewalTimeout));
    let closed = CallError::Closed { address: address(), text: "reset".to_owned() };
    assert_eq!(reason(Err(closed)), Some(LossReason::ConnectionClosed));
}
