//! What is executed, and how it is found: as a container runtime would, by the environment's PATH.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use fencedlease_wire::{exit, paths};

use super::machine::Grant;
use crate::sys::Program;

/// The path of a runtime whose image names none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program for this command under this grant. `None` if a text has a zero byte in it, which neither an
/// argument nor a variable can have.
pub(super) fn program(
    command: &[OsString],
    environment: impl Iterator<Item = (OsString, OsString)>,
    grant: &Grant,
) -> Option<Program> {
    let ours = [
        (paths::ENV_RESOURCE, grant.resource.clone()),
        (paths::ENV_FENCE, grant.fence.to_string()),
        (paths::ENV_HOLDING, grant.holding.to_string()),
    ];
    let mut search = OsString::from(DEFAULT_PATH);
    let mut variables = Vec::new();
    for (name, value) in environment {
        if name == "PATH" {
            search.clone_from(&value);
        }
        if ours.iter().all(|(ours, _)| name != *ours) {
            variables.push(variable(&name, &value)?);
        }
    }
    for (name, value) in ours {
        variables.push(variable(name.as_ref(), value.as_ref())?);
    }
    Some(Program {
        paths: candidates(command.first()?, &search)?,
        arguments: command.iter().map(|argument| c_string(argument)).collect::<Option<_>>()?,
        environment: variables,
    })
}

/// The exit code and the text for a command that could not be run because of this errno.
pub(crate) fn failure(command: &OsStr, errno: i32) -> (u8, String) {
    let name = command.to_string_lossy();
    let error = std::io::Error::from_raw_os_error(errno);
    match errno {
        libc::ENOENT | libc::ENOTDIR if !command.as_bytes().contains(&b'/') => (
            exit::NOT_FOUND,
            format!("the command {name:?} was not found in $PATH: name a program that the image has"),
        ),
        libc::ENOENT | libc::ENOTDIR => (
            exit::NOT_FOUND,
            format!(
                "the command {name:?} was not found: name a program that the image has (for a script, its interpreter must be there too)"
            ),
        ),
        _ => (
            exit::NOT_EXECUTABLE,
            format!("the command {name:?} cannot be executed: {error}. {}", remedy(errno)),
        ),
    }
}

fn remedy(errno: i32) -> &'static str {
    match errno {
        libc::EACCES | libc::EPERM | libc::EISDIR => "Make it a file that the container's user may execute",
        libc::ENOEXEC => {
            "Make it a program for this machine's architecture, or a script whose first line names its interpreter"
        }
        libc::EAGAIN | libc::ENOMEM => "Raise the container's limit of processes or of memory",
        libc::E2BIG => "Shorten its arguments and environment",
        _ => "Look for what this error means where the file lies",
    }
}

fn candidates(name: &OsStr, search: &OsStr) -> Option<Vec<CString>> {
    if name.as_bytes().contains(&b'/') || name.is_empty() {
        return Some(vec![c_string(name)?]);
    }
    search
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|folder| {
            let folder = if folder.is_empty() { b"." } else { folder };
            CString::new([folder, b"/", name.as_bytes()].concat()).ok()
        })
        .collect()
}

fn variable(name: &OsStr, value: &OsStr) -> Option<CString> {
    c_string(&OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat()))
}

fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests;
