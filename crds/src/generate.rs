//! The YAML that is generated from the types: the CRD itself, and the chart's copy.

use kube::CustomResourceExt as _;

use crate::FencedLease;

const NOTE: &str = "# Generated from crds/src by `make crds`. Do not edit.\n";

/// Each generated file: its path from the repository's root, and its text.
pub fn files() -> Result<[(&'static str, String); 2], serde_yaml::Error> {
    let mut crd = FencedLease::crd();
    let plain = serde_yaml::to_string(&crd)?;
    // An uninstalled chart must not take every FencedLease with it.
    crd.metadata
        .annotations
        .get_or_insert_default()
        .insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
    let kept = serde_yaml::to_string(&crd)?;
    Ok([
        ("crds/yaml/fencedleases.yaml", format!("{NOTE}{plain}")),
        (
            "charts/fencedlease/templates/fencedleases-crd.yaml",
            format!("{NOTE}{{{{- if .Values.crds.install }}}}\n{kept}{{{{- end }}}}\n"),
        ),
    ])
}
