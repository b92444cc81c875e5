use super::*;

fn id(byte: u8) -> HoldingId {
    HoldingId::from_random([byte; 8])
}

fn folder() -> (tempfile::TempDir, Page, NoteFile) {
    let folder = tempfile::tempdir().unwrap();
    let page = Page::open(folder.path()).unwrap();
    let note = NoteFile::new(folder.path()).unwrap();
    (folder, page, note)
}

const NOW: BootTime = BootTime::from_millis(90_000);

#[test]
fn a_new_volume_has_nothing_interrupted() {
    let (_folder, page, note) = folder();
    assert_eq!(note.interrupted(&page, NOW), None);
}

#[test]
fn a_holding_that_did_not_end_is_found_with_its_guards_and_its_last_confirmation() {
    let (folder, page, note) = folder();
    let guards = vec![("app".to_owned(), "s".to_owned())];
    note.write(&id(7), Fence::new(41).unwrap(), &guards).unwrap();
    page.mark(&Mark::Released(id(6)));
    page.mark(&Mark::Confirmed(BootTime::from_millis(80_123)));
    drop(page);
    let found = note.interrupted(&Page::open(folder.path()).unwrap(), NOW).unwrap();
    assert_eq!(found.confirmed_at, BootTime::from_millis(80_123));
    assert_eq!((found.holding, found.fence.get(), found.grants), (id(7), 41, guards));
    assert!(!found.loss_was_noted);
}

#[test]
fn a_loss_that_was_noted_is_known_as_such_and_an_end_in_order_leaves_nothing() {
    let (_folder, page, note) = folder();
    note.write(&id(7), Fence::new(41).unwrap(), &[]).unwrap();
    page.mark(&Mark::Lost(id(7)));
    assert!(note.interrupted(&page, NOW).unwrap().loss_was_noted);
    page.mark(&Mark::Released(id(7)));
    assert_eq!(note.interrupted(&page, NOW), None);
}

#[test]
fn another_boots_holding_has_no_guards_left() {
    let (folder, page, note) = folder();
    let guards = vec![("app".to_owned(), "s".to_owned())];
    let other = NoteFile { path: folder.path().join(NOTE_FILE), boot_id: "other".to_owned() };
    other.write(&id(7), Fence::new(41).unwrap(), &guards).unwrap();
    let found = note.interrupted(&page, NOW).unwrap();
    assert_eq!((found.grants.len(), found.confirmed_at), (0, BootTime::default()));
}

#[test]
fn garbage_is_no_note() {
    let (folder, page, note) = folder();
    fs::write(folder.path().join(NOTE_FILE), b"{\"holding\":").unwrap();
    assert_eq!(note.interrupted(&page, NOW), None);
}
