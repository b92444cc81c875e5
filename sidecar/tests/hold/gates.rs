//! A gate that answers badly is asked again, and what becomes of it is told to people and operator.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::operator::Operator;
use crate::support::pod::Pod;
use crate::support::world::World;

const WORK: &str = "exec sleep 1000";
const STORED: &str = r#"{"resource":"shop/report","fence":1,"unsettled":0}"#;

/// Plays a gate on a thread that ends with the test's process: gives one answer after the other, and the last one
/// from then on. An empty one ends the connection without a word.
struct FakeGate {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<Vec<String>>>,
}

impl FakeGate {
    fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers.iter().map(|&answer| answer.to_owned()).collect()));
        let gate = Self { address, seen: Arc::clone(&seen), answers: Arc::clone(&answers) };
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                    head.push(byte[0]);
                }
                seen.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let mut answers = answers.lock().unwrap();
                let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
                // Who asks may not read it all.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        gate
    }

    fn answer_from_now_on(&self, answer: &str) {
        *self.answers.lock().unwrap() = vec![answer.to_owned()];
    }

    fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn settings(&self) -> Value {
        json!([{"name": "reports", "url": format!("http://{}", self.address)}])
    }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    request.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default()
}

#[test]
fn a_raise_whose_answer_is_lost_or_no_answer_is_sent_again_by_the_same_holder() {
    let world = World::new();
    let long = answer("200 OK", &"x".repeat(1024 * 1024));
    let html = answer("200 OK", "<html>It works</html>");
    let gate = FakeGate::start(&["", &html, &long, &answer("200 OK", STORED)]);
    let pod = Pod::start("one", world.redis.address(), |settings| settings["gates"] = gate.settings());
    let _container = pod.run("app", WORK);
    let lease = pod.until("ACTIVE");
    assert_eq!(lease["fence"], 1);
    let requests = gate.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    let holder = format!(";fence=1;holder={};", lease["holding"].as_str().unwrap());
    for request in &requests {
        assert!(request.starts_with("POST /.fencedlease/v1/raise HTTP/1.1\r\n"), "{request}");
        assert!(header(request, "fencedlease: v1;resource=shop/report").starts_with(&holder), "{request}");
        assert_eq!(header(request, "host: "), gate.address.to_string());
    }
    assert!(pod.metric("fencedlease_raises_total{result=\"failed\"}") >= 3.0);
    assert!((pod.metric("fencedlease_raises_total{result=\"stored\"}") - 1.0).abs() < f64::EPSILON);
}

#[test]
fn how_the_gates_stand_is_told_to_the_operator() {
    let world = World::new();
    let operator = Operator::start("");
    let full = r#"{"code":"StoreFailed","message":"the store cannot keep it"}"#;
    let gate = FakeGate::start(&[&answer("503 Service Unavailable", full)]);
    let pod = Pod::start("one", world.redis.address(), |settings| {
        settings["gates"] = gate.settings();
        settings["endpoint"] = json!({"url": operator.url, "caPem": operator.ca_pem});
    });
    let _container = pod.run("app", WORK);
    let standing = |kind: &str| {
        eventually(&format!("a standing {kind}"), || {
            let facts = operator.requests().into_iter().map(|request| request.body["fact"].clone());
            facts.map(|fact| fact["gates"].clone()).find(|gates| gates["kind"] == kind)
        })
    };
    let message = standing("GateUnreachable")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("gate reports (http://") && message.contains("503 StoreFailed"), "{message}");
    assert_eq!(pod.lease()["state"], "WAITING");
    assert_eq!(pod.probe("/startup").status, 200, "a warm pod's containers are up");
    gate.answer_from_now_on(&answer("200 OK", STORED));
    pod.until("ACTIVE");
    assert_eq!(standing("Raised")["message"], "");
}

#[test]
fn without_a_key_the_pod_says_which_file_it_lacks_and_runs_once_it_is_there() {
    let world = World::new();
    let gate = FakeGate::start(&[&answer("200 OK", STORED)]);
    let mut pod = Pod::start("one", world.redis.address(), |settings| settings["gates"] = gate.settings());
    let key = pod.gate_key_file();
    std::fs::write(&key, "no key").unwrap();
    eventually("the key that it had is gone wrong", || pod.log().contains("cannot be used").then_some(()));
    pod.kill_sidecar();
    pod.start_sidecar();
    let _container = pod.run("app", WORK);
    let told = eventually("a message", || {
        pod.lease()["message"].as_str().map(str::to_owned).filter(|text| text.contains("cannot sign"))
    });
    assert!(told.contains(&key.display().to_string()) && told.contains("openssl rand -hex 32"), "{told}");
    assert!(gate.requests().is_empty(), "nothing is sent unsigned");
    std::fs::write(&key, "b".repeat(64)).unwrap();
    pod.until("ACTIVE");
}
