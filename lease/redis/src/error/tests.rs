use super::*;

#[test]
fn an_error_is_read_by_its_effect() {
    let texts = [
        ("NOAUTH Authentication required.", Refusal::Auth),
        ("NOAUTH HELLO must be called with the client already authenticated", Refusal::Auth),
        ("WRONGPASS invalid username-password pair or user is disabled.", Refusal::Auth),
        ("NOPERM this user has no permissions to run the 'eval' command", Refusal::Permission),
        (
            "ERR The user executing the script can't run this command or subcommand script: 5c1, on @user_script:36.",
            Refusal::Permission,
        ),
        (
            "ERR Error running script (call to f_5c1): @user_script:36: @user_script: 36: -NOPERM this user",
            Refusal::Permission,
        ),
        (
            "READONLY You can't write against a read only replica. script: 5c1, on @user_script:51.",
            Refusal::ReadOnly,
        ),
        (
            "ERR Error running script (call to f_5c1): @user_script:3: -READONLY You can't write against a read only",
            Refusal::ReadOnly,
        ),
        (
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            Refusal::ReadOnly,
        ),
        ("LOADING Redis is loading the dataset in memory", Refusal::Loading),
        (
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            Refusal::Misconf,
        ),
        ("NOREPLICAS Not enough good replicas to write.", Refusal::NoReplicas),
        (
            "OOM command not allowed when used memory > 'maxmemory'. script: 5c1, on @user_script:50.",
            Refusal::OutOfMemory,
        ),
        ("MOVED 3999 10.0.0.7:6379", Refusal::Cluster),
        ("CLUSTERDOWN Hash slot not served", Refusal::Cluster),
        (
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            Refusal::Script,
        ),
        ("WRONGTYPE Operation against a key holding the wrong kind of value script: 5c1", Refusal::Script),
        ("FENCEDLEASE_SEQUENCE the sequence in k is \"OOM\", not a number", Refusal::Sequence),
        ("ERR max number of clients reached", Refusal::Other),
        ("", Refusal::Other),
    ];
    for (text, refusal) in texts {
        assert_eq!(Refusal::of(text), refusal, "{text}");
    }
}

#[test]
fn only_what_was_sent_and_not_refused_may_have_happened() {
    let address = || "redis:6379".to_owned();
    let waited = Duration::from_secs(1);
    let text = String::new;
    let refused = CallError::Refused { address: address(), refusal: Refusal::OutOfMemory, text: text() };
    let cases = [
        (CallError::ConnectTimeout { address: address(), waited }, false, LossReason::RenewalTimeout),
        (CallError::Connect { address: address(), text: text() }, false, LossReason::ConnectionClosed),
        (CallError::Credentials { address: address(), text: text() }, false, LossReason::RenewalError),
        (CallError::Timeout { address: address(), waited }, true, LossReason::RenewalTimeout),
        (CallError::Closed { address: address(), text: text() }, true, LossReason::ConnectionClosed),
        (refused, false, LossReason::RenewalError),
        (CallError::Protocol { address: address(), text: text() }, true, LossReason::RenewalError),
    ];
    for (error, may_have_happened, reason) in cases {
        assert_eq!(error.may_have_happened(), may_have_happened, "{error:?}");
        assert_eq!(error.loss_reason(), reason, "{error:?}");
        assert!(!error.loss_reason().is_stated_by_redis(), "{error:?}");
    }
}

#[test]
fn texts_name_whom_was_asked_and_how_long() {
    let error = CallError::Timeout { address: "redis:6379".to_owned(), waited: Duration::from_secs(1) };
    assert_eq!(error.to_string(), "no answer from redis:6379 in 1s");
}
