use super::*;

#[test]
fn the_command_names_user_keys_and_rights() {
    let args = AclArgs {
        installation: "c1".to_owned(),
        namespace: Some("shop".to_owned()),
        user: None,
        database: 0,
    };
    let command = command(&args).unwrap();
    let start = "ACL SETUSER fencedlease-shop reset on >PASSWORD ~fencedlease:v1:{c1/shop/*}:* &";
    assert!(command.starts_with(start) && command.contains(" +eval "), "{command}");
}
