//! How do the operator's parts come together? Everything is bound before anything runs, and one set owns
//! every task.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use fencedlease_wire::settings::EndpointSettings;
use futures::channel::mpsc as touches;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::events::{Recorder, Reporter};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::admin::{self, Readiness};
use crate::args::Args;
use crate::cache::{Caches, Feeds, LEASES, PODS, caches};
use crate::certificates::bundle::keep_bundle;
use crate::certificates::served::ServedCertificate;
use crate::certificates::store::CertificateStore;
use crate::certificates::upkeep::Upkeep;
use crate::endpoint::Endpoint;
use crate::endpoint::caller::Callers;
use crate::endpoint::credentials::InstallationSecret;
use crate::gate_keys::GateKeys;
use crate::inject::Installation;
use crate::metrics::Metrics;
use crate::serve::Server;
use crate::status::write::Statuses;
use crate::tasks::Tasks;
use crate::tidy::Tidy;
use crate::webhook::{LiveCluster, Webhooks};
use crate::{controller, embedded_redis, events, installation, refusals, restart_rules};

/// How long requests still come in after readiness fails: endpoints must be taken out everywhere first.
const LEAVE: Duration = Duration::from_secs(5);
/// How long the API server may be silent on a connection that waits for it.
const READ_TIMEOUT: Duration = Duration::from_mins(5);
/// How many refusals wait to be told of.
const REFUSALS: usize = 256;
/// How many changes wait to be looked at; the watches wait in turn.
const TOUCHES: usize = 1024;

struct Listeners {
    webhook: TcpListener,
    endpoint: TcpListener,
    admin: TcpListener,
}

/// What the tasks share.
struct Shared {
    args: Args,
    client: Client,
    installation_id: String,
    metrics: Arc<Metrics>,
    caches: Caches,
    readiness: Readiness,
    bundle: watch::Receiver<String>,
    restart_rules: watch::Sender<bool>,
}

/// Runs the operator until it is told to end.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let installation = args.installation()?;
    let mut config = Config::infer().await.context("cannot find a way to the Kubernetes API")?;
    // A library that repeats calls hides how the API server is, and writes twice what may be written once.
    config.default_retry = false;
    // A connection that died without a word must not hold a task for ever; watches end by themselves sooner.
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    let client = Client::try_from(config).context("cannot use the way to the Kubernetes API")?;
    let listeners = bind(&args).await?;
    let installation_id = installation::id(client.clone(), &args.namespace, &args.installation_id).await?;
    if let Some(name) = args.redis_secret().filter(|_| args.redis_secret_create) {
        embedded_redis::ensure_password(client.clone(), &args.namespace, &name).await?;
    }
    let metrics = Arc::new(Metrics::new().context("cannot make the metrics")?);
    let (upkeep, shown) = certificates(&args, &client, &metrics).await?;
    announce(&args, &installation_id, &listeners)?;

    let (caches, feeds) = caches();
    let readiness = Readiness::default();
    readiness.needs(LEASES);
    readiness.needs(PODS);
    readiness.needs(restart_rules::ANSWER);
    let shared = Shared {
        args,
        client,
        installation_id,
        metrics,
        caches,
        readiness: readiness.clone(),
        bundle: upkeep.bundle(),
        restart_rules: watch::Sender::new(false),
    };
    let mut tasks = Tasks::default();
    keep_trusted(&mut tasks, &shared, upkeep);
    let (webhook, endpoint) = answer(&mut tasks, &shared, feeds, installation);
    let admin = admin::router(readiness.clone(), Arc::clone(&shared.metrics), shared.caches.leases.clone());
    let tls = shown.server_config()?;
    for (name, listener, tls, router) in [
        ("webhook", listeners.webhook, Some(Arc::clone(&tls)), webhook),
        ("endpoint", listeners.endpoint, Some(tls), endpoint),
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

/// Webhooks, endpoint, and what stands behind them.
fn answer(tasks: &mut Tasks, shared: &Shared, feeds: Feeds, installation: Installation) -> (Router, Router) {
    let Shared { args, client, caches, .. } = shared;
    let (touch, touched) = touches::channel(TOUCHES);
    tasks.add("caches", feeds.run(client.clone(), touch, shared.readiness.clone(), tasks.stop()));
    let reporter =
        Reporter { controller: "fencedlease.dev/operator".to_owned(), instance: args.pod_name.clone() };
    let (events, publishing) = events::events(Recorder::new(client.clone(), reporter), tasks.stop());
    tasks.add("events", publishing);
    let has_redis = installation.redis.is_some();
    let gate_keys = Arc::new(GateKeys::new(client.clone()));
    let statuses =
        Statuses::new(client.clone(), caches.clone(), events.clone(), gate_keys.clone(), has_redis);
    let statuses = Arc::new(statuses);
    let tidy = Tidy::new(client.clone(), caches.clone());
    tasks.add(
        "controller",
        controller::run(caches.leases.clone(), touched, Arc::clone(&statuses), gate_keys, tidy, tasks.stop()),
    );
    let (refuse, refused) = mpsc::channel(REFUSALS);
    tasks.add(
        "refusals",
        refusals::run(refused, caches.leases.clone(), Arc::clone(&statuses), events, tasks.stop()),
    );
    let (rules, asked) = (shared.restart_rules.clone(), args.namespace.clone());
    tasks.add(
        "restart rules",
        restart_rules::keep_asking(client.clone(), asked, rules, shared.readiness.clone(), tasks.stop()),
    );

    let (bundle, rules) = (shared.bundle.clone(), shared.restart_rules.subscribe());
    let id = shared.installation_id.clone();
    let cluster = LiveCluster::new(client.clone(), caches.leases.clone(), move || {
        let endpoint =
            EndpointSettings { url: installation.endpoint.url.clone(), ca_pem: bundle.borrow().clone() };
        Installation { id: id.clone(), endpoint, restart_rules_work: *rules.borrow(), ..installation.clone() }
    });
    let endpoint = Endpoint::new(
        client.clone(),
        Callers::new(client.clone(), caches.clone()),
        caches.leases.clone(),
        statuses,
        InstallationSecret::new(client.clone(), &args.namespace, args.redis_secret()),
        shared.bundle.clone(),
    );
    let webhooks = Webhooks::new(Arc::new(cluster), refuse, Arc::clone(&shared.metrics));
    (webhooks.router(), endpoint.router())
}

/// Certificates that are there and valid, and what keeps them so.
async fn certificates(
    args: &Args,
    client: &Client,
    metrics: &Arc<Metrics>,
) -> anyhow::Result<(Upkeep, Arc<ServedCertificate>)> {
    let served = Arc::new(ServedCertificate::default());
    let store = CertificateStore::new(
        client.clone(),
        &args.namespace,
        args.certificate_secret.clone(),
        args.certificate_names(),
    );
    let upkeep = Upkeep::new(store, Arc::clone(&served), Arc::clone(metrics));
    upkeep.look(Timestamp::now()).await.context("cannot set up the certificates")?;
    Ok((upkeep, served))
}

fn keep_trusted(tasks: &mut Tasks, shared: &Shared, upkeep: Upkeep) {
    let Shared { args, client, bundle, .. } = shared;
    tasks.add(
        "trust in the mutating webhooks",
        keep_bundle::<MutatingWebhookConfiguration>(
            client.clone(),
            args.mutating_webhook.clone(),
            bundle.clone(),
            tasks.stop(),
        ),
    );
    tasks.add(
        "trust in the validating webhooks",
        keep_bundle::<ValidatingWebhookConfiguration>(
            client.clone(),
            args.validating_webhook.clone(),
            bundle.clone(),
            tasks.stop(),
        ),
    );
    tasks.add("certificates", upkeep.run(tasks.stop()));
}

fn announce(args: &Args, installation_id: &str, listeners: &Listeners) -> anyhow::Result<()> {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        installation = installation_id,
        url = args.endpoint_url(),
        webhook = %listeners.webhook.local_addr()?,
        endpoint = %listeners.endpoint.local_addr()?,
        admin = %listeners.admin.local_addr()?,
        "the operator starts"
    );
    Ok(())
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
