use std::os::unix::fs::symlink;
use std::time::Duration;

use fencedlease_wire::gate::UnverifiedTicket;
use tempfile::TempDir;

use super::*;

const ONE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OTHER: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn tickets(file: &Path) -> Tickets {
    Tickets::new("shop/report".parse().unwrap(), file)
}

fn sign(tickets: &Tickets) -> Result<String, NoKey> {
    tickets.sign(Fence::new(42).unwrap(), &HoldingId::from_random([7; 8]))
}

/// Whether this key signed it, a moment ago.
fn is_of(value: &str, key: &str) -> bool {
    let ticket = UnverifiedTicket::parse(value).unwrap();
    let keys = GateKey::parse_file(key).unwrap();
    let ticket = ticket.verify(&keys, unix_ms(), Duration::from_secs(30));
    ticket.is_ok_and(|ticket| ticket.fence.get() == 42 && ticket.resource.as_str() == "shop/report")
}

#[test]
fn the_key_is_the_first_in_the_file_and_another_once_a_link_leads_elsewhere() {
    let folder = TempDir::new().unwrap();
    for (name, text) in [("1", format!("{ONE}\n")), ("2", format!("{OTHER}\n{ONE}\n"))] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("key"), text).unwrap();
    }
    // As the kubelet mounts Secrets.
    let link = folder.path().join("..data");
    symlink("1", &link).unwrap();
    let tickets = tickets(&link.join("key"));
    tickets.refresh();
    assert!(is_of(&sign(&tickets).unwrap(), ONE));
    symlink("2", folder.path().join("new")).unwrap();
    fs::rename(folder.path().join("new"), &link).unwrap();
    tickets.refresh();
    assert!(is_of(&sign(&tickets).unwrap(), OTHER));
}

#[test]
fn without_a_key_nothing_is_signed_and_the_text_names_file_and_remedy() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("key");
    let tickets = tickets(&file);
    tickets.refresh();
    let told = sign(&tickets).unwrap_err().to_string();
    assert!(told.contains(&file.display().to_string()) && told.contains("Secret"), "{told}");
    fs::write(&file, "secret, but no key\n").unwrap();
    tickets.refresh();
    let told = sign(&tickets).unwrap_err().to_string();
    assert!(told.contains(&file.display().to_string()) && told.contains("openssl rand -hex 32"), "{told}");
    assert!(!told.contains("secret, but"), "{told}");
}

#[test]
fn a_file_that_goes_wrong_leaves_the_key_as_it_was() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("key");
    fs::write(&file, ONE).unwrap();
    let tickets = tickets(&file);
    tickets.refresh();
    fs::write(&file, "").unwrap();
    tickets.refresh();
    assert!(is_of(&sign(&tickets).unwrap(), ONE));
    fs::remove_file(&file).unwrap();
    tickets.refresh();
    assert!(is_of(&sign(&tickets).unwrap(), ONE));
}
