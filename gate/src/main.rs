//! The gate's program.

fn main() {}
