//! When is a FencedLease looked at? When it or one of its pods changes, and from time to time, since a
//! holder's silence is nothing that a watch tells.
//!
//! Every replica does this: reads come from its own cache, and a write changes something or is not made, so
//! leader election would save no work worth having.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fencedlease_crds::FencedLease;
use futures::channel::mpsc;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::controller::{Action, Config, Error, applier};
use kube::runtime::reflector::Store;
use tokio::sync::watch;

use crate::cache::Touched;
use crate::gate_keys::GateKeys;
use crate::status::write::{Statuses, WriteError};
use crate::tidy::Tidy;

/// How often a FencedLease with a holder is looked at without any sign.
const LOOK_HELD: Duration = Duration::from_secs(15);
/// How often any other is.
const LOOK: Duration = Duration::from_mins(1);
/// How soon one is looked at again after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// Changes that come together are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(250);
/// How many are looked at at a time.
const AT_A_TIME: u16 = 8;

/// What a look needs.
struct Looker {
    statuses: Arc<Statuses>,
    gate_keys: Arc<GateKeys>,
    tidy: Tidy,
}

/// Looks at what `touched` names, until `stop`.
pub async fn run(
    leases: Store<FencedLease>,
    touched: mpsc::Receiver<Touched>,
    statuses: Arc<Statuses>,
    gate_keys: Arc<GateKeys>,
    tidy: Tidy,
    mut stop: watch::Receiver<bool>,
) {
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let queue = touched.map(Ok::<_, Infallible>).take_until(stopped);
    let looks = applier(
        |lease, context| Box::pin(look(lease, context)),
        |_, error: &WriteError, _| {
            tracing::warn!(error = error as &dyn std::error::Error, "cannot keep a status");
            Action::requeue(AGAIN)
        },
        Arc::new(Looker { statuses, gate_keys, tidy }),
        leases,
        queue.into_stream(),
        Config::default().debounce(DEBOUNCE).concurrency(AT_A_TIME),
    );
    looks
        .for_each(async |look| match look {
            // A failed look was told by the policy above; a FencedLease that is gone needs none.
            Ok(_) | Err(Error::ReconcilerFailed(..) | Error::ObjectNotFound(_)) => {}
            Err(error) => tracing::warn!(%error, "a FencedLease was not looked at"),
        })
        .await;
}

async fn look(lease: Arc<FencedLease>, looker: Arc<Looker>) -> Result<Action, WriteError> {
    let held = lease.status.as_ref().is_some_and(|status| status.holder.is_some());
    let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
    looker.gate_keys.look(&lease).await;
    looker.statuses.refresh(lease).await?;
    looker.tidy.look(&namespace, &name, Timestamp::now()).await;
    Ok(Action::requeue(if held { LOOK_HELD } else { LOOK }))
}
