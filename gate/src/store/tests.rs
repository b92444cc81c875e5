use std::sync::{Arc, Mutex};

use fencedlease_wire::{Fence, HoldingId};
use tempfile::TempDir;

use super::*;
use crate::check::Mark;

fn record(resource: &str, fence: u64) -> Record {
    let mark = Mark { fence: Fence::new(fence).unwrap(), holder: Some(HoldingId::from_random([7; 8])) };
    Record { resource: resource.parse().unwrap(), mark, time_ms: 1_764_684_611_123 }
}

fn fences(store: &Store) -> Vec<(String, u64)> {
    store.highest().values().map(|it| (it.resource.to_string(), it.mark.fence.get())).collect()
}

/// A folder with the log of three raises.
fn three() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut store = Store::open(folder.path(), &[]).unwrap();
    for fence in [3, 4, 5] {
        store.append(&[record("shop/report", fence)]).unwrap();
    }
    folder
}

#[test]
fn what_was_stored_is_there_again() {
    let folder = three();
    let mut store = Store::open(folder.path(), &[]).unwrap();
    store.append(&[record("shop/ledger", 1), record("shop/report", 9)]).unwrap();
    drop(store);
    let store = Store::open(folder.path(), &[]).unwrap();
    assert_eq!(fences(&store), [("shop/ledger".to_owned(), 1), ("shop/report".to_owned(), 9)]);
}

#[test]
fn a_second_owner_is_refused_in_words() {
    let folder = TempDir::new().unwrap();
    let first = Store::open(folder.path(), &[]).unwrap();
    let error = Store::open(folder.path(), &[]).err().unwrap();
    assert!(error.to_string().contains("in use by another gate"), "{error}");
    drop(first);
    Store::open(folder.path(), &[]).unwrap();
}

#[test]
fn a_log_that_ends_anywhere_in_its_last_line_lacks_that_line_alone() {
    let folder = three();
    let path = folder.path().join(LOG);
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for length in last..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let store = Store::open(folder.path(), &[]).unwrap();
        assert_eq!(fences(&store), [("shop/report".to_owned(), 4)], "cut to {length}");
    }
}

#[test]
fn zeros_after_the_last_line_are_a_torn_write() {
    let folder = three();
    let path = folder.path().join(LOG);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 90]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(fences(&Store::open(folder.path(), &[]).unwrap()), [("shop/report".to_owned(), 5)]);
    bytes.extend([0; 500]);
    fs::write(&path, &bytes).unwrap();
    let error = Store::open(folder.path(), &[]).err().unwrap();
    assert!(error.to_string().contains("590 bytes"), "{error}");
}

#[test]
fn no_byte_can_be_changed_unnoticed_and_a_damaged_log_stays_as_it_is() {
    let folder = three();
    let path = folder.path().join(LOG);
    let whole = fs::read(&path).unwrap();
    for index in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[index] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = Store::open(folder.path(), &[]).err().unwrap_or_else(|| panic!("byte {index}"));
        assert!(error.to_string().contains("is damaged"), "{error}");
        assert!(error.to_string().contains("--floor"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn lines_that_are_missing_or_moved_are_met() {
    let folder = three();
    let path = folder.path().join(LOG);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 4);
    for order in [vec![0, 2, 3], vec![0, 1, 3], vec![0, 2, 1, 3], vec![0, 1, 1, 2, 3], vec![1, 2, 3], vec![]]
    {
        let other: String = order.iter().map(|index| lines[*index]).collect();
        fs::write(&path, other).unwrap();
        assert!(matches!(Store::open(folder.path(), &[]), Err(StoreError::Damaged { .. })), "{order:?}");
    }
}

#[test]
fn a_floor_raises_and_never_lowers() {
    let folder = three();
    let floor = |fence| Record {
        mark: Mark { holder: None, ..record("x/y", fence).mark },
        ..record("shop/report", fence)
    };
    assert_eq!(fences(&Store::open(folder.path(), &[floor(4)]).unwrap())[0].1, 5);
    assert_eq!(fences(&Store::open(folder.path(), &[floor(8)]).unwrap())[0].1, 8);
    let store = Store::open(folder.path(), &[]).unwrap();
    assert_eq!(store.highest().values().next().unwrap().mark.holder, None);
}

#[test]
fn only_a_clean_end_counts_as_one_and_only_once() {
    let folder = TempDir::new().unwrap();
    let first = Store::open(folder.path(), &[]).unwrap();
    assert!(first.ended_cleanly(), "there was none before it");
    drop(first);
    let second = Store::open(folder.path(), &[]).unwrap();
    assert!(!second.ended_cleanly());
    second.end_cleanly().unwrap();
    assert!(Store::open(folder.path(), &[]).unwrap().ended_cleanly());
    assert!(!Store::open(folder.path(), &[]).unwrap().ended_cleanly());
}

#[test]
fn a_long_log_is_written_anew() {
    let folder = TempDir::new().unwrap();
    let mut store = Store::open(folder.path(), &[]).unwrap();
    let mut fence = 0;
    while fence < 120_000 {
        let batch: Vec<Record> = (0..1000).map(|step| record("shop/report", fence + step + 1)).collect();
        fence += 1000;
        store.append(&batch).unwrap();
    }
    assert!(fs::metadata(folder.path().join(LOG)).unwrap().len() < REWRITE_BYTES);
    store.append(&[record("shop/report", fence + 1)]).unwrap();
    drop(store);
    assert_eq!(fences(&Store::open(folder.path(), &[]).unwrap())[0].1, fence + 1);
}

/// A log that fails at what it is told to, and keeps what it has.
struct Failing(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    append: bool,
    sync: bool,
    truncate: bool,
    truncated_to: Option<u64>,
}

impl LogFile for Failing {
    fn append(&mut self, _bytes: &[u8]) -> io::Result<()> {
        fails(self.0.lock().unwrap().append)
    }

    fn sync(&mut self) -> io::Result<()> {
        fails(self.0.lock().unwrap().sync)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut plan = self.0.lock().unwrap();
        plan.truncated_to = Some(length);
        fails(plan.truncate)
    }
}

fn fails(really: bool) -> io::Result<()> {
    if really { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

fn failing(plan: Plan) -> (TempDir, Store, Arc<Mutex<Plan>>) {
    let folder = three();
    let mut store = Store::open(folder.path(), &[]).unwrap();
    let plan = Arc::new(Mutex::new(plan));
    store.log = Box::new(Failing(Arc::clone(&plan)));
    (folder, store, plan)
}

#[test]
fn a_full_disk_stores_nothing_and_is_used_again_when_there_is_room() {
    let (_folder, mut store, plan) = failing(Plan { append: true, ..Plan::default() });
    assert!(store.append(&[record("shop/report", 6)]).is_err());
    assert_eq!(plan.lock().unwrap().truncated_to, Some(store.length));
    assert_eq!(fences(&store)[0].1, 5);
    plan.lock().unwrap().append = false;
    store.append(&[record("shop/report", 6)]).unwrap();
}

#[test]
fn what_cannot_be_synced_or_taken_back_breaks_the_store() {
    for plan in
        [Plan { sync: true, ..Plan::default() }, Plan { append: true, truncate: true, ..Plan::default() }]
    {
        let (_folder, mut store, plan) = failing(plan);
        assert!(store.append(&[record("shop/report", 6)]).is_err());
        *plan.lock().unwrap() = Plan::default();
        assert!(matches!(store.append(&[record("shop/report", 6)]), Err(StoreError::Broken)));
        assert_eq!(fences(&store)[0].1, 5);
    }
}

#[test]
fn a_log_that_has_gone_is_no_first_start() {
    let folder = TempDir::new().unwrap();
    drop(Store::open(folder.path(), &[]).unwrap());
    fs::remove_file(folder.path().join(LOG)).unwrap();
    assert!(matches!(Store::open(folder.path(), &[]), Err(StoreError::Gone(_))));
    assert!(!folder.path().join(LOG).exists());
    let floor = Record {
        resource: "shop/report".parse().unwrap(),
        mark: Mark { fence: "7".parse().unwrap(), holder: None },
        time_ms: 0,
    };
    drop(Store::open(folder.path(), &[floor]).unwrap());
    assert_eq!(Store::open(folder.path(), &[]).unwrap().highest().len(), 1);
}
