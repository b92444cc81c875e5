//! What every fence check has to do, through the proxy.

use crate::support::{Client, Holder, KEY, Nginx, RESOURCE, Setup, Store, holder, unix_ms};

#[test]
fn lower_is_refused_greater_raises_equal_is_for_its_holder_alone() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let mut client = gate.client();
    assert_eq!(client.put("/a", holder(5), "five").said(), (201, "passed", String::new()));
    assert_eq!(client.put("/a", holder(5), "again").said(), (204, "passed", String::new()));
    let other = Holder { fence: 5, holder: 99 };
    assert_eq!(client.put("/a", other, "other").said(), (412, "refused", "FenceOfAnotherHolder".to_owned()));
    assert_eq!(client.put("/a", holder(4), "four").said(), (412, "refused", "FenceLower".to_owned()));
    assert_eq!(nginx.file("a").unwrap(), "again");
    assert_eq!(client.put("/a", holder(6), "six").said(), (204, "passed", String::new()));
    assert_eq!(client.put("/a", holder(5), "late").said(), (412, "refused", "FenceLower".to_owned()));
    assert_eq!(nginx.file("a").unwrap(), "six");
}

#[test]
fn a_raise_refuses_older_writes_before_the_new_holder_has_written() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let mut client = gate.client();
    assert_eq!(client.put("/a", holder(5), "five").status, 201);
    let answer = client.raise(holder(6));
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "{\"resource\":\"shop/report\",\"fence\":6,\"unsettled\":0}\n")
    );
    assert_eq!(client.raise(holder(6)).status, 200, "a retry");
    assert_eq!(client.put("/a", holder(5), "late").result(), "refused");
    assert_eq!(client.raise(holder(5)).said(), (412, "refused", "FenceLower".to_owned()), "no zombie raises");
    assert_eq!(client.raise(Holder { fence: 6, holder: 1 }).code(), "FenceOfAnotherHolder");
    assert_eq!(nginx.file("a").unwrap(), "five");
}

#[test]
fn a_ticket_cannot_be_made_borrowed_or_kept() {
    let (nginx, store) = (Nginx::start(), Store::new());
    store.set_key("shop_other", KEY);
    let gate = Setup::new(nginx.address)
        .with(&["--guard", "shop/report=/reports/", "--guard", "shop/other=/other/"])
        .start(&store);
    let mut client = gate.client();
    let five = holder(5);
    let now = unix_ms();
    let forged = "b".repeat(64);
    for (ticket, said) in [
        (None, (428, "rejected", "TicketMissing")),
        (Some("fence=5".to_owned()), (400, "rejected", "TicketMalformed")),
        (Some(five.ticket().replace("fence=5", "fence=6")), (401, "rejected", "TicketForged")),
        (Some(five.ticket_of(RESOURCE, &forged, now)), (401, "rejected", "TicketForged")),
        (Some(five.ticket_of(RESOURCE, KEY, now - 61_000)), (401, "rejected", "TicketOld")),
        (Some(five.ticket_of(RESOURCE, KEY, now + 61_000)), (401, "rejected", "TicketAhead")),
        (Some(five.ticket_of("shop/other", KEY, now)), (403, "rejected", "ResourceMismatch")),
        (Some(five.ticket_of("shop/none", KEY, now)), (403, "rejected", "ResourceMismatch")),
        (Some(five.ticket().replace("fence=5", "fence=0")), (400, "rejected", "TicketMalformed")),
        (Some(five.ticket().replace("fence=5", "fence=-5")), (400, "rejected", "TicketMalformed")),
        (Some(five.ticket().replace("fence=5", "fence=")), (400, "rejected", "TicketMalformed")),
        (
            Some(five.ticket().replace("fence=5", "fence=1000000000000000")),
            (400, "rejected", "TicketMalformed"),
        ),
    ] {
        let headers: Vec<(&str, &str)> =
            ticket.iter().map(|ticket| ("FencedLease", ticket.as_str())).collect();
        let answer = client.send("PUT", "/reports/a", &headers, b"x");
        let (status, result, code) = said;
        assert_eq!(answer.said(), (status, result, code.to_owned()), "{ticket:?}");
    }
    let twice = [("FencedLease", five.ticket()), ("FencedLease", five.ticket())];
    let twice: Vec<(&str, &str)> = twice.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(client.send("PUT", "/reports/a", &twice, b"x").code(), "TicketTwice");
    assert_eq!(nginx.file("reports/a"), None);
    assert_eq!(client.put("/reports/a", Holder { fence: 999_999_999_999_999, holder: 1 }, "x").status, 201);
}

#[test]
fn a_key_is_changed_without_a_restart() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let mut client = gate.client();
    let new = "b".repeat(64);
    let mut put = |key: &str| {
        let ticket = holder(5).ticket_of(RESOURCE, key, unix_ms());
        client.send("PUT", "/a", &[("FencedLease", &ticket)], b"x").status
    };
    assert_eq!(put(&new), 401);
    store.set_key("shop_report", &format!("{KEY}\n{new}\n"));
    crate::support::eventually("the new key is taken", || put(&new) != 401);
    assert_ne!(put(KEY), 401, "the old one is still there");
    store.set_key("shop_report", &new);
    crate::support::eventually("the old key is gone", || put(KEY) == 401);
    assert_ne!(put(&new), 401);
}

#[test]
fn reads_pass_by_rule_and_a_read_with_a_ticket_is_checked() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let mut client = gate.client();
    assert_eq!(client.put("/a", holder(5), "five").status, 201);
    let answer = client.send("GET", "/a", &[], b"");
    assert_eq!((answer.status, answer.result(), answer.text().as_str()), (200, "none", "five"));
    assert_eq!(client.send("HEAD", "/a", &[], b"").header("content-length"), Some("4"));
    let read = |client: &mut Client, fence| {
        let answer = client.send("GET", "/a", &[("FencedLease", &holder(fence).ticket())], b"");
        (answer.status, answer.result().to_owned())
    };
    assert_eq!(read(&mut client, 5), (200, "passed".to_owned()));
    assert_eq!(read(&mut client, 6), (200, "passed".to_owned()));
    assert_eq!(
        read(&mut client, 5),
        (412, "refused".to_owned()),
        "what promised to be fresh is not any more"
    );
    drop(gate);
    let gate = Setup::new(nginx.address).with(&["--reads", "fresh"]).start(&store);
    let mut client = gate.client();
    assert_eq!(client.send("GET", "/a", &[], b"").status, 428);
    assert_eq!(read(&mut client, 6), (200, "passed".to_owned()));
}
