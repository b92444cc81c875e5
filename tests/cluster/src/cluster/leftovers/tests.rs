use std::process::Command;

use super::*;

#[test]
fn a_process_is_found_by_the_run_folder_in_its_environment_and_by_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        Command::new("sleep").arg("60").env(MARKER, folder.path().join("node-1")).spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    // A program that starts has its environment a moment after it is there.
    let mut found = Vec::new();
    for _ in 0..500 {
        found = marked_processes(|machine| machine.starts_with(folder.path())).unwrap();
        if !found.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let others = marked_processes(|machine| machine == folder.path()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found, [Process { pid, command: "sleep 60".to_owned() }]);
    assert!(others.is_empty());
    assert!(marked_processes(|machine| machine.starts_with(folder.path())).unwrap().is_empty());
}

#[test]
fn what_is_left_is_named_line_by_line() {
    let left = Leftovers {
        processes: vec![Process { pid: 7, command: "etcd --name=control".to_owned() }],
        mounts: vec!["/cache/run/x".to_owned()],
        cgroups: vec!["/sys/fs/cgroup/pids/fencedlease".into()],
        network: vec!["unreachable 198.19.0.0/16".to_owned()],
        folder: Some("/cache/run".into()),
    };
    assert!(!left.is_empty());
    assert_eq!(left.to_string().lines().count(), 5);
    assert!(left.to_string().contains("process 7: etcd --name=control"));
    assert!(Leftovers::default().is_empty());
}
