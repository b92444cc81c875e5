//! Tests on a real Kubernetes with FencedLease installed. One program, so that as many run at a time as are asked for,
//! to the end; what changes the cluster for all comes after it (`whole_cluster`), and what uninstalls last.

mod admission;
mod chart;
mod cold;
mod credentials;
mod cut_off;
mod ends;
mod footprint;
mod gate_chart;
mod gates;
mod helpers;
mod late_write;
mod lease_lifecycle;
mod losses;
mod max_hold;
mod operator;
mod pods_as_written;
mod probes;
mod rollouts;
mod tls;
mod warnings;
mod workload_kinds;
