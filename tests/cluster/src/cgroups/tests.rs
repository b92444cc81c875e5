use super::*;

#[test]
fn hierarchies_of_both_versions_are_found_and_nothing_else() {
    let mounts = "proc /proc proc rw 0 0\n\
                  cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                  cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                  tmpfs /sys/fs/cgroup tmpfs rw 0 0\n";
    let found = hierarchies(mounts);
    let expected = [("/sys/fs/cgroup/cpu,cpuacct", false), ("/sys/fs/cgroup/unified", true)];
    assert_eq!(found, expected.map(|(mount, unified)| Hierarchy { mount: mount.into(), unified }));
}

#[test]
fn a_host_without_controllers_is_refused_with_the_remedy() {
    let empty = tempfile::tempdir().unwrap();
    let unified = Hierarchy { mount: empty.path().to_path_buf(), unified: true };
    fs::write(empty.path().join("cgroup.controllers"), "cpu pids\n").unwrap();
    let message = check(std::slice::from_ref(&unified)).unwrap_err().to_string();
    assert!(message.contains("memory") && message.contains("--cgroupns=host"), "{message}");
    fs::write(empty.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
    check(&[unified]).unwrap();
    check(&hierarchies("c /c/memory cgroup rw 0 0\nc /c/cpu,cpuacct cgroup rw 0 0\n")).unwrap();
    assert!(check(&hierarchies("c /c/memory cgroup rw 0 0\nc /c/cpuset cgroup rw 0 0\n")).is_err());
}

#[test]
fn folders_are_made_with_what_a_kubelet_needs_and_removed_to_the_last() {
    let root = tempfile::tempdir().unwrap();
    let hierarchy = |name: &str, unified| {
        let mount = root.path().join(name);
        fs::create_dir(&mount).unwrap();
        Hierarchy { mount, unified }
    };
    let all = [hierarchy("pids", false), hierarchy("unified", true)];
    fs::write(all[1].mount.join("cgroup.controllers"), "cpu memory pids rdma\n").unwrap();
    make(&all, Machine::Node(1)).unwrap();
    let control = fs::read_to_string(all[1].mount.join("cgroup.subtree_control")).unwrap();
    assert_eq!(control, "+cpu +memory +pids");
    fs::create_dir_all(all[0].mount.join("fencedlease/node-1/kubepods/burstable")).unwrap();
    assert_eq!(remaining(&all).len(), 2);
    remove(&all).unwrap();
    assert!(remaining(&all).is_empty());
    assert!(all[0].mount.exists());
}
