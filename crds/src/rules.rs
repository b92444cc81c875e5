//! The rules that the API server checks, in CEL.
