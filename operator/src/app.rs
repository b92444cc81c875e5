//! How do the operator's parts come together? Everything is bound before anything runs, and one set owns
//! every task.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use futures::channel::mpsc;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::events::{Recorder, Reporter};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::admin::{self, Readiness};
use crate::args::Args;
use crate::cache::{Caches, caches};
use crate::certificates::bundle::keep_bundle;
use crate::certificates::served::ServedCertificate;
use crate::certificates::store::CertificateStore;
use crate::certificates::upkeep::Upkeep;
use crate::endpoint::Endpoint;
use crate::endpoint::caller::Callers;
use crate::endpoint::credentials::InstallationSecret;
use crate::metrics::Metrics;
use crate::serve::Server;
use crate::status::write::Statuses;
use crate::tasks::Tasks;
use crate::{controller, embedded_redis, events, installation, restart_rules};

/// How long requests still come in after readiness fails: endpoints must be taken out everywhere first.
const LEAVE: Duration = Duration::from_secs(5);
const LEASES: &str = "the list of FencedLeases";
const PODS: &str = "the list of pods";

struct Listeners {
    webhook: TcpListener,
    endpoint: TcpListener,
    admin: TcpListener,
}

/// Runs the operator until it is told to end.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let mut config = Config::infer().await.context("cannot find a way to the Kubernetes API")?;
    // A library that repeats calls hides how the API server is, and writes twice what may be written once.
    config.default_retry = false;
    let client = Client::try_from(config).context("cannot use the way to the Kubernetes API")?;
    let listeners = bind(&args).await?;
    let id = installation::id(client.clone(), &args.namespace, &args.installation_id).await?;

    if let Some(name) = args.redis_secret().filter(|_| args.redis_secret_create) {
        embedded_redis::ensure_password(client.clone(), &args.namespace, &name).await?;
    }
    let metrics = Arc::new(Metrics::new().context("cannot make the metrics")?);
    let served = Arc::new(ServedCertificate::default());
    let store = CertificateStore::new(
        client.clone(),
        &args.namespace,
        args.certificate_secret.clone(),
        args.certificate_names(),
    );
    let upkeep = Upkeep::new(store, Arc::clone(&served), Arc::clone(&metrics));
    upkeep.look(Timestamp::now()).await.context("cannot set up the certificates")?;
    let tls = served.server_config()?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        installation = id,
        endpoint = args.endpoint_url(),
        webhook = %listeners.webhook.local_addr()?,
        listen = %listeners.endpoint.local_addr()?,
        admin = %listeners.admin.local_addr()?,
        "the operator starts"
    );

    let (caches, feeds) = caches();
    let readiness = Readiness::default();
    readiness.needs(LEASES);
    readiness.needs(PODS);
    let mut tasks = Tasks::default();
    let (touch, touched) = mpsc::channel(1024);
    let recorder = Recorder::new(client.clone(), reporter(&args));
    let (events, publishing) = events::events(recorder, tasks.stop());
    tasks.add("events", publishing);
    let has_redis = !args.redis_addresses().is_empty();
    let statuses = Arc::new(Statuses::new(client.clone(), caches.clone(), events, has_redis));
    let endpoint = Endpoint::new(
        client.clone(),
        Callers::new(client.clone(), caches.clone()),
        caches.leases.clone(),
        Arc::clone(&statuses),
        InstallationSecret::new(client.clone(), &args.namespace, args.redis_secret()),
        upkeep.bundle(),
    );
    tasks.add("controller", controller::run(caches.leases.clone(), touched, statuses, tasks.stop()));
    tasks.add("caches", feeds.run(client.clone(), touch, tasks.stop()));
    tasks.add("readiness", fill(caches.clone(), readiness.clone(), tasks.stop()));
    keep_trusted(&mut tasks, &client, &args, &upkeep);
    tasks.add("certificates", upkeep.run(tasks.stop()));
    let (rules, _) = watch::channel(false);
    tasks.add(
        "restart rules",
        restart_rules::keep_asking(client.clone(), args.namespace.clone(), rules, tasks.stop()),
    );
    let admin = admin::router(readiness.clone(), Arc::clone(&metrics), caches.leases.clone());
    for (name, listener, tls, router) in [
        ("webhook", listeners.webhook, Some(Arc::clone(&tls)), Router::new()),
        ("endpoint", listeners.endpoint, Some(tls), endpoint.router()),
        ("admin", listeners.admin, None, admin),
    ] {
        let server = Server { name, listener, tls, router };
        tasks.add(name, server.run(tasks.stop()));
    }
    tasks
        .run(|| async move {
            readiness.needs("the operator ends");
            tokio::time::sleep(LEAVE).await;
        })
        .await?;
    Ok(())
}

/// Who Events are from.
fn reporter(args: &Args) -> Reporter {
    Reporter { controller: "fencedlease.dev/operator".to_owned(), instance: args.pod_name.clone() }
}

fn keep_trusted(tasks: &mut Tasks, client: &Client, args: &Args, upkeep: &Upkeep) {
    tasks.add(
        "trust in the mutating webhooks",
        keep_bundle::<MutatingWebhookConfiguration>(
            client.clone(),
            args.mutating_webhook.clone(),
            upkeep.bundle(),
            tasks.stop(),
        ),
    );
    tasks.add(
        "trust in the validating webhooks",
        keep_bundle::<ValidatingWebhookConfiguration>(
            client.clone(),
            args.validating_webhook.clone(),
            upkeep.bundle(),
            tasks.stop(),
        ),
    );
}

/// Ready once the caches are filled; stays until `stop`.
async fn fill(caches: Caches, readiness: Readiness, mut stop: watch::Receiver<bool>) {
    let filled = async {
        if caches.leases.wait_until_ready().await.is_ok() {
            readiness.done(LEASES);
        }
        if caches.pods.wait_until_ready().await.is_ok() {
            readiness.done(PODS);
        }
    };
    tokio::select! {
        () = filled => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    // The sender lives as long as the tasks do, so its end is the same as its word.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn bind(args: &Args) -> anyhow::Result<Listeners> {
    Ok(Listeners {
        webhook: listen("--webhook-listen", args.webhook_listen).await?,
        endpoint: listen("--endpoint-listen", args.endpoint_listen).await?,
        admin: listen("--admin-listen", args.admin_listen).await?,
    })
}

async fn listen(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} ({flag})"))
}
