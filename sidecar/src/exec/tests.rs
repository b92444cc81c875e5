use std::fs;

use clap::Parser as _;

use super::settings::{settings, wait};
use super::*;
use crate::args::{Args, Command as Part};

fn args(words: &[&str]) -> ExecArgs {
    let all = ["fencedlease", "exec", "--lease", "shop/report", "--redis", "redis:6379"];
    let all = all.iter().chain(words).chain(&["--", "true"]);
    match Args::try_parse_from(all).unwrap().command {
        Part::Exec(args) => *args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_becomes_the_settings_of_a_sidecar() {
    let text = settings(&args(&["--ttl", "30s", "--redis-secret-dir", "/etc/redis"])).unwrap();
    let (settings, _) = hold::settings::parse(&text).unwrap();
    assert_eq!(settings.resource.to_string(), "shop/report");
    assert_eq!(settings.timing.ttl_ms, 30_000);
    assert_eq!(settings.redis.credentials, fencedlease_wire::settings::CredentialSource::Mounted);
}

#[test]
fn a_mistake_names_the_option_what_was_found_and_what_is_accepted() {
    let told = |words: &[&str]| settings(&args(words)).unwrap_err().to_string();
    assert!(told(&["--ttl", "soon"]).contains("--ttl: \"soon\" is not a duration"));
    assert!(told(&["--ttl", "5s"]).contains("ttl"));
    assert!(told(&["--wait", "x"]).contains("--wait"));
    assert!(told(&["--max-hold", "10s"]).contains("--max-hold is 10s"));
    assert!(told(&["--installation", "A"]).contains("installation id"));
    let mut args = args(&[]);
    args.lease = "report".to_owned();
    assert!(settings(&args).unwrap_err().to_string().contains("NAMESPACE/NAME"));
    for found in ["redis", "redis:", ":6379", "redis:0", "redis://redis:6379"] {
        args.lease = "shop/report".to_owned();
        args.redis = found.to_owned();
        let mistake = settings(&args).unwrap_err().to_string();
        assert!(mistake.contains(&format!("--redis is {found:?}: write HOST:PORT")), "{mistake}");
    }
}

#[test]
fn gates_are_told_with_their_key_and_a_mistake_says_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let (key, bad) = (folder.path().join("key"), folder.path().join("bad"));
    fs::write(&key, "a".repeat(64)).unwrap();
    fs::write(&bad, "secret").unwrap();
    let (key, bad) = (key.display().to_string(), bad.display().to_string());
    let one = "reports=https://gate.example:8443";
    let text = settings(&args(&["--gate", one, "--gate", "b=http://b", "--gate-key-file", &key])).unwrap();
    let (settings_of_hold, config) = hold::settings::parse(&text).unwrap();
    assert_eq!(config.gates, settings_of_hold.gates);
    let gates: Vec<&str> = config.gates.iter().map(|gate| gate.url.as_str()).collect();
    assert_eq!(gates, ["https://gate.example:8443", "http://b"]);
    for (gate, key, told) in [
        ("reports", key.as_str(), "--gate is \"reports\": write NAME=URL"),
        ("a=gate:1", &key, "url of gate a is \"gate:1\": write https://HOST:PORT"),
        (one, "/nowhere", "--gate-key-file /nowhere"),
        (one, &bad, "openssl rand -hex 32"),
    ] {
        let mistake = settings(&args(&["--gate", gate, "--gate-key-file", key])).unwrap_err().to_string();
        assert!(mistake.contains(told) && !mistake.contains("secret"), "{mistake}");
    }
    let ca = args(&["--gate", one, "--gate-key-file", &key, "--gate-ca-file", "/nowhere"]);
    assert!(settings(&ca).unwrap_err().to_string().contains("--gate-ca-file /nowhere"));
}

#[test]
fn gates_without_a_key_are_refused() {
    let words =
        ["fencedlease", "exec", "--lease", "a/b", "--redis", "r:1", "--gate", "a=http://b", "--", "true"];
    let refused = Args::try_parse_from(words).unwrap_err().to_string();
    assert!(refused.contains("--gate-key-file"), "{refused}");
}

#[test]
fn without_an_option_the_lease_is_waited_for_for_ever() {
    assert_eq!(wait(&args(&[])).unwrap(), None);
    assert_eq!(wait(&args(&["--wait", "0s"])).unwrap(), Some(std::time::Duration::ZERO));
}

#[test]
fn a_lost_lease_ends_with_the_code_that_was_asked_for() {
    let status = |code: i32| ExitStatus::from_raw(code << 8);
    let args = args(&["--lost-exit-code", "75"]);
    assert_eq!(outcome(&args, Ending::Ran(status(195))).code, 75);
    assert_eq!(outcome(&args, Ending::Ran(status(3))).code, 3);
    assert_eq!(outcome(&args, Ending::Ran(ExitStatus::from_raw(9))).code, 137);
    let held = outcome(&args, Ending::HeldByAnother { holder: "host".into() });
    assert_eq!(held.code, 198);
    assert!(held.message.contains("shop/report is held by host"), "{}", held.message);
}
