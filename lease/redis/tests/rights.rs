//! A user with the least rights can do everything, one with less cannot, and nobody can touch another namespace.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use fencedlease_faults::RedisServer;
use fencedlease_redis::{AcquireReply, COMMANDS, CallError, Client, LeaseKeys, Refusal, Rights};
use fencedlease_wire::ResourceName;
use support::{Held, PATIENCE, acquire, place_as, user};

/// A user with these rights, and nothing in the list of what was refused.
fn make_user(server: &RedisServer, rules: &[String]) -> Client {
    let mut words = vec!["ACL", "SETUSER", "exact", "reset", "on", ">secret"];
    words.extend(rules.iter().map(String::as_str));
    server.cli(&words).unwrap();
    server.cli(&["ACL", "LOG", "RESET"]).unwrap();
    Client::new(place_as(server.address().to_string(), user("exact", "secret")))
}

fn rights() -> Vec<String> {
    Rights::new("c1", Some("shop"), 0).unwrap().rules()
}

/// All that is ever asked of Redis beside listening, twice, as far as it gets.
async fn live(client: &mut Client) -> Result<(), CallError> {
    for _ in 0..2 {
        let acquire = acquire("report-0");
        let reply = client.acquire(&acquire, PATIENCE).await?;
        let AcquireReply::Acquired { fence, clean, previous_holder } = reply else { panic!("{reply:?}") };
        let held = Held { token: acquire.token, fence, clean, previous_holder };
        client.renew(&held.renew(), PATIENCE).await?;
        client.inspect(PATIENCE).await?;
        client.release(&held.release(true), PATIENCE).await?;
    }
    Ok(())
}

/// What the user was refused, by name.
fn refused(server: &RedisServer) -> Vec<String> {
    let log = server.cli(&["ACL", "LOG"]).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let objects = lines.windows(2).filter(|pair| pair[0] == "object").map(|pair| pair[1].to_owned());
    objects.collect()
}

#[tokio::test]
async fn with_the_least_rights_nothing_is_refused() {
    let server = RedisServer::start().unwrap();
    let mut client = make_user(&server, &rights());
    live(&mut client).await.unwrap();
    assert_eq!(refused(&server), [""; 0]);
}

#[tokio::test]
async fn each_right_is_needed() {
    let server = RedisServer::start().unwrap();
    // Listening needs these two, which agent.rs shows.
    for command in COMMANDS.into_iter().filter(|command| !["subscribe", "ping"].contains(command)) {
        server.cli(&["FLUSHALL"]).unwrap();
        let less: Vec<String> = rights().into_iter().filter(|rule| *rule != format!("+{command}")).collect();
        let mut client = make_user(&server, &less);
        // What it says is judged below: some of it goes on without.
        let said = live(&mut client).await;
        // A name is set beside the first call.
        support::until("a refusal", async || refused(&server).contains(&command.to_owned())).await;
        assert!(said.is_err() || ["publish", "client|setname"].contains(&command), "{command} is not needed");
    }
}

#[tokio::test]
async fn another_namespace_is_out_of_reach() {
    let server = RedisServer::start().unwrap();
    make_user(&server, &rights());
    for (installation, namespace) in [("c1", "shop2"), ("c1", "sho"), ("c2", "shop")] {
        let mut other = place_as(server.address().to_string(), user("exact", "secret"));
        other.keys = LeaseKeys::new(&ResourceName::new(installation, namespace, "report").unwrap());
        let error = Client::new(other).acquire(&acquire("report-0"), PATIENCE).await.unwrap_err();
        assert!(matches!(error, CallError::Refused { refusal: Refusal::Permission, .. }), "{error:?}");
    }
    assert_eq!(server.cli(&["DBSIZE"]).unwrap(), "0");
}
