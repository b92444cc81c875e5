//! A cluster that answers at once, the same to every question.

use std::collections::BTreeMap;
use std::sync::Arc;

use fencedlease_crds::{FencedLease, FencedLeaseSpec, GateSpec, StandbyMode};
use fencedlease_operator::inject::{Installation, InstallationRedis, Resources, SidecarImage};
use fencedlease_operator::webhook::{Cluster, LookUpError};
use fencedlease_wire::settings::EndpointSettings;
use futures::future::{BoxFuture, ready};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// It has the FencedLeases `report`, `gated` and `cold`, and `new` where it is asked; of `silent` nothing is known.
pub(super) struct Known;

impl Cluster for Known {
    fn installation(&self) -> Installation {
        let quantities = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).to_owned())).collect()
        };
        Installation {
            id: "fuzz".to_owned(),
            version: "0.1.0".to_owned(),
            sidecar: SidecarImage {
                image: "fencedlease/sidecar:0.1.0".to_owned(),
                pull_policy: "IfNotPresent".to_owned(),
                resources: Resources {
                    requests: quantities(&[("cpu", "10m"), ("memory", "16Mi")]),
                    limits: quantities(&[("memory", "64Mi")]),
                },
                log_level: "info".to_owned(),
            },
            endpoint: EndpointSettings {
                url: "https://fencedlease-operator.fencedlease.svc:8443".to_owned(),
                ca_pem: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned(),
            },
            redis: Some(InstallationRedis {
                addresses: vec!["redis.fencedlease.svc:6379".to_owned()],
                database: 0,
                has_credentials: true,
            }),
            restart_rules_work: true,
        }
    }

    fn cached_lease(&self, _namespace: &str, name: &str) -> Option<Arc<FencedLease>> {
        let mut lease = FencedLease::new(name, FencedLeaseSpec::default());
        match name {
            "report" => {}
            "cold" => lease.spec.standby.mode = StandbyMode::Cold,
            "gated" => {
                let (name, url) = ("g".to_owned(), "https://gate.shop.svc".to_owned());
                lease.spec.gates = vec![GateSpec { name, url, ca_ref: None }];
            }
            _ => return None,
        }
        Some(Arc::new(lease))
    }

    fn live_lease<'a>(
        &'a self,
        _namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<FencedLease>, LookUpError>> {
        Box::pin(ready(match name {
            "new" => Ok(Some(FencedLease::new(name, FencedLeaseSpec::default()))),
            "silent" => Err(LookUpError::Timeout),
            _ => Ok(None),
        }))
    }

    fn count_pods<'a>(
        &'a self,
        _namespace: &'a str,
        selector: &'a str,
    ) -> BoxFuture<'a, Result<usize, LookUpError>> {
        Box::pin(ready(match selector {
            "app=silent" => Err(LookUpError::Timeout),
            "app=report" => Ok(0),
            _ => Ok(1),
        }))
    }

    fn disruption_budgets<'a>(
        &'a self,
        _namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PodDisruptionBudget>, LookUpError>> {
        let budget = |app: &str, min_available, max_unavailable| PodDisruptionBudget {
            spec: Some(PodDisruptionBudgetSpec {
                selector: Some(LabelSelector {
                    match_labels: Some(BTreeMap::from([("app".to_owned(), app.to_owned())])),
                    ..LabelSelector::default()
                }),
                min_available,
                max_unavailable,
                ..PodDisruptionBudgetSpec::default()
            }),
            ..PodDisruptionBudget::default()
        };
        Box::pin(ready(Ok(vec![
            budget("report", Some(IntOrString::String("50%".to_owned())), None),
            budget("shop", None, Some(IntOrString::Int(1))),
        ])))
    }
}
