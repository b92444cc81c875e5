//! The operator's parts: what it injects, admits, serves, watches and reports.
