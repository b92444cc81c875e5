use super::*;
use crate::command::{command, run};

#[test]
fn what_the_authority_signs_is_verified_by_another_program_also_after_it_was_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new().unwrap();
    authority.identity().write(folder.path(), "ca").unwrap();
    let subject = Subject {
        name: "system:node:node-1",
        group: Some("system:nodes"),
        hosts: &["node-1"],
        addresses: &[IpAddr::from([198, 51, 100, 11])],
    };
    authority.issue(&subject).unwrap().write(folder.path(), "first").unwrap();
    let again = Authority::read(folder.path(), "ca").unwrap();
    again.issue(&subject).unwrap().write(folder.path(), "second").unwrap();
    for name in ["first", "second"] {
        let (ca, file) = (folder.path().join("ca.crt"), folder.path().join(format!("{name}.crt")));
        let mut verify = command(&["openssl", "verify", "-verify_ip", "198.51.100.11", "-CAfile"]);
        run(verify.arg(ca).arg(&file)).unwrap();
        let shown = run(command(&["openssl", "x509", "-noout", "-subject", "-in"]).arg(&file)).unwrap();
        assert!(shown.contains("O = system:nodes") && shown.contains("CN = system:node:node-1"), "{shown}");
    }
}

#[test]
fn a_key_is_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    Authority::new().unwrap().identity().write(folder.path(), "ca").unwrap();
    let mode = fs::metadata(folder.path().join("ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
