//! A real gate in front of a real nginx, with real clients, crashes and disks.

mod crash;
mod fences;
mod support;
