use fencedlease_wire::{Fence, HoldingId};

use super::*;

fn grant() -> Grant {
    Grant {
        holding: HoldingId::from_random([1; 8]),
        fence: Fence::new(42).unwrap(),
        resource: "shop/ledger".to_owned(),
    }
}

fn made(command: &[&str], environment: &[(&str, &str)]) -> Option<Program> {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let environment = environment.iter().map(|(name, value)| (name.into(), value.into()));
    program(&command, environment, &grant())
}

fn texts(strings: &[CString]) -> Vec<&str> {
    strings.iter().map(|string| string.to_str().unwrap()).collect()
}

#[test]
fn a_name_is_looked_up_in_the_environments_path() {
    let program = made(&["app", "--port", "80"], &[("PATH", "/opt/bin::/bin")]).unwrap();
    assert_eq!(texts(&program.paths), ["/opt/bin/app", "./app", "/bin/app"]);
    assert_eq!(texts(&program.arguments), ["app", "--port", "80"], "it is called by the name that was given");
}

#[test]
fn a_name_without_a_path_variable_is_looked_up_where_runtimes_do() {
    let program = made(&["app"], &[]).unwrap();
    assert_eq!(program.paths.len(), 6);
    assert_eq!(program.paths[1].to_str(), Ok("/usr/local/bin/app"));
}

#[test]
fn a_name_with_a_slash_is_a_path() {
    for name in ["/app", "./app", "bin/app"] {
        assert_eq!(texts(&made(&[name], &[("PATH", "/bin")]).unwrap().paths), [name]);
    }
}

#[test]
fn the_grants_variables_replace_what_was_there() {
    let environment = [("FENCEDLEASE_FENCE", "1"), ("HOME", "/"), ("FENCEDLEASE_SOCKET", "/s")];
    let program = made(&["app"], &environment).unwrap();
    let expected = [
        "HOME=/",
        "FENCEDLEASE_SOCKET=/s",
        "FENCEDLEASE_RESOURCE=shop/ledger",
        "FENCEDLEASE_FENCE=42",
        "FENCEDLEASE_HOLDING=0101010101010101",
    ];
    assert_eq!(texts(&program.environment), expected);
}

#[test]
fn no_command_and_zero_bytes_are_no_program() {
    assert!(made(&[], &[]).is_none());
    assert!(made(&["a\0b"], &[]).is_none());
    assert!(made(&["a"], &[("NAME", "a\0b")]).is_none());
}

#[test]
fn failures_have_the_codes_of_a_container_runtime() {
    assert_eq!(failure("app".as_ref(), libc::ENOENT).0, exit::NOT_FOUND);
    assert_eq!(failure("/app".as_ref(), libc::ENOTDIR).0, exit::NOT_FOUND);
    for errno in [libc::EACCES, libc::ENOEXEC, libc::ELOOP, libc::EAGAIN, libc::ENOMEM] {
        assert_eq!(failure("/app".as_ref(), errno).0, exit::NOT_EXECUTABLE);
    }
    let (_, message) = failure("app".as_ref(), libc::EAGAIN);
    assert!(message.contains("\"app\"") && message.contains("limit of processes"), "{message}");
}
