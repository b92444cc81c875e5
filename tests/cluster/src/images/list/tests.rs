use std::collections::BTreeSet;

use super::*;

#[test]
fn each_image_has_an_archive_of_its_own() {
    let files: BTreeSet<&str> = IMAGES.iter().map(Image::file).collect();
    assert_eq!(files.len(), IMAGES.len());
    assert!(files.contains("sidecar") && files.contains("pause"));
}

#[test]
fn programs_of_ours_run_as_a_numeric_user_and_start_what_the_image_holds() {
    for image in IMAGES {
        for part in image.parts {
            if let Part::Own { binary, .. } = part {
                assert_eq!(image.settings().user, "65532:65532", "{}", image.name);
                assert_eq!(image.entrypoint, [format!("/{binary}")], "{}", image.name);
            }
        }
    }
}
