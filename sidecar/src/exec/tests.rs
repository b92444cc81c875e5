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
