use std::process::Command;

use super::*;

#[test]
fn a_process_is_its_number_and_its_name() {
    let process = HostProcess::parse("42 sh").unwrap();
    assert_eq!((process.pid, process.name.as_str()), (42, "sh"));
    assert!(HostProcess::parse("no number").is_err());
}

#[test]
fn the_list_has_a_living_process_and_not_a_zombie() {
    // A zombie of ours: it has ended, and nobody has waited for it yet.
    let mut zombie = Command::new("true").spawn().unwrap();
    let living = std::process::id();
    let mut printed = String::new();
    for _ in 0..500 {
        // Every line of a cgroup file has a colon, so this lists every process.
        let list = Command::new("sh").args(["-c", &format!("{LIST}\nlist :"), "sh"]).output().unwrap();
        printed = String::from_utf8(list.stdout).unwrap();
        if !printed.lines().any(|line| line.starts_with(&format!("{} ", zombie.id()))) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pids: Vec<u32> = printed.lines().map(|line| HostProcess::parse(line).unwrap().pid).collect();
    assert!(pids.contains(&living), "{printed}");
    assert!(!pids.contains(&zombie.id()), "{printed}");
    zombie.wait().unwrap();
}

#[test]
fn the_shell_sees_its_nodes_processes() {
    let pod = manifest("shell-on-node-1", "node-1");
    assert_eq!(pod["spec"]["hostPID"], true);
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["privileged"], true);
}
