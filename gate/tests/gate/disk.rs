//! Stores that are taken, damaged, torn or full.

use std::fs;

use fencedlease_faults::matrix::shown;

use crate::support::{Nginx, Setup, Store, eventually, holder};

#[test]
fn a_second_gate_refuses_a_store_that_is_in_use() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let setup = Setup::new(nginx.address);
    let gate = setup.start(&store);
    let log = setup.refused(&store);
    assert!(log.contains("in use by another gate"), "{log}");
    assert_eq!(gate.client().put("/a", holder(5), "x").status, 201, "the first goes on");
    shown(&[51], "refused, and the log says that another gate uses the store; the first goes on").unwrap();
}

#[test]
fn a_damaged_store_is_refused_with_a_way_out_and_a_torn_one_is_not() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let setup = Setup::new(nginx.address);
    let gate = setup.start(&store);
    for fence in [5, 6] {
        assert_eq!(gate.client().raise(holder(fence)).status, 200);
    }
    gate.kill();
    let path = store.data().join("fences.log");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"0123 torn"].concat()).unwrap();
    let gate = setup.start(&store);
    assert_eq!(gate.client().put("/a", holder(5), "late").result(), "refused");
    gate.kill();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace(" 6 ", " 4 ")).unwrap();
    let log = setup.refused(&store);
    assert!(log.contains("is damaged: line 2") && log.contains("--floor RESOURCE=FENCE"), "{log}");
    fs::rename(&path, path.with_extension("damaged")).unwrap();
    let gate = setup.clone().with(&["--floor", "shop/report=6"]).start(&store);
    assert_eq!(gate.client().put("/a", holder(5), "late").result(), "refused");
    assert_eq!(gate.client().put("/a", holder(6), "six").result(), "passed");
}

#[test]
fn a_full_disk_raises_nothing_passes_the_holder_and_refuses_the_old() {
    let (nginx, store) = (Nginx::start(), Store::new());
    fs::create_dir(store.data()).unwrap();
    let mut setup = Setup::new(nginx.address);
    let script = "exec unshare --user --map-root-user --mount sh -c \
                  'mount -t tmpfs -o size=12k none \"$0\" && exec \"$@\"' DATA \"$@\"";
    setup.around = Some(script.replace("DATA", &store.data().display().to_string()));
    let gate = setup.start(&store);
    let mut client = gate.client();
    let full = (1..1000).find(|fence| client.raise(holder(*fence)).status != 200).unwrap();
    assert!(full > 10, "full after {full}");
    let last = full - 1;
    assert_eq!(client.raise(holder(full)).said(), (503, "unavailable", "StoreFailed".to_owned()));
    assert_eq!(client.put("/a", holder(full), "new").said(), (503, "unavailable", "StoreFailed".to_owned()));
    assert_eq!(client.put("/a", holder(last - 1), "late").result(), "refused");
    assert_eq!(client.put("/a", holder(last), "held").status, 201);
    assert_eq!(nginx.file("a").unwrap(), "held");
    assert_eq!(gate.admin("/healthz").0, 200, "there may be room again");
    eventually("the log says so", || gate.log().contains("a raise could not be stored"));
    shown(&[50], &format!("full after {full} raises: 503 for a greater fence, the holder of {last} writes on, older ones are refused")).unwrap();
}
