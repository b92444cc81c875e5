//! What does the machine of a holding hear of a renewal?

use fencedlease_core::RenewalOutcome;

use crate::{CallError, RenewReply};

/// Confirmed only if Redis said that it extended the lease; everything else is a loss, with a text for people.
pub fn renewal_outcome(answer: &Result<RenewReply, CallError>) -> RenewalOutcome {
    let (reason, message) = match answer {
        Ok(reply) => match reply.loss() {
            None => return RenewalOutcome::Confirmed,
            Some(loss) => loss,
        },
        Err(error) => (error.loss_reason(), error.to_string()),
    };
    RenewalOutcome::Failed { reason, message }
}

#[cfg(test)]
mod tests;
