//! The program in the pod. *hold* keeps the lease and tells the guards; *guard* is PID 1 of a guarded
//! container and ends it in time, whatever becomes of the rest; *exec* is both outside Kubernetes. No Kubernetes client is in here.

pub mod acl;
pub mod args;
pub mod clock;
pub mod exec;
pub mod guard;
pub mod hold;
pub mod lines;
pub mod while_active;

pub mod sys;
