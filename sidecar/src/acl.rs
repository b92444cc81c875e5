//! *acl*: prints the Redis command that makes a user with the least rights. It speaks to nobody.

use std::process::ExitCode;

use fencedlease_redis::Rights;
use fencedlease_wire::exit;

use crate::args::AclArgs;

/// Prints the command on one line, or says what is wrong with the arguments.
pub fn run(args: &AclArgs) -> ExitCode {
    match command(args) {
        Ok(command) => {
            println!("{command}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(exit::BAD_SETTINGS)
        }
    }
}

fn command(args: &AclArgs) -> Result<String, fencedlease_wire::ResourceNameError> {
    let rights = Rights::new(&args.installation, args.namespace.as_deref(), args.database)?;
    let user = args.user.clone().unwrap_or_else(|| match &args.namespace {
        Some(namespace) => format!("fencedlease-{namespace}"),
        None => "fencedlease".to_owned(),
    });
    Ok(format!("ACL SETUSER {user} reset on >PASSWORD {}", rights.rules().join(" ")))
}

#[cfg(test)]
mod tests;
