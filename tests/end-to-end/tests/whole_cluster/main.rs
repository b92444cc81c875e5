//! Tests that change what all others use: the operator, its policy, a node. They run one at a time and in a program of
//! their own, since one of them among the others would have those wait for it, and it for those.

mod admission_policy;
mod drain;
mod operator;
