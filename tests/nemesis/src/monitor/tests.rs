use super::*;

const LEASE: &str = "fencedlease:v1:{exec/shop/l}:lease";

fn read(lines: &[String]) -> Vec<Executed> {
    let mut parser = Parser::default();
    lines.iter().filter_map(|line| parser.line(line, 1_000_000_000)).collect()
}

fn from_script(command: &str, key: &str, rest: &str) -> String {
    format!("+3.000002 [0 lua] \"{command}\" \"fencedlease:v1:{{exec/shop/l}}:{key}\" {rest}\r\n")
}

#[test]
fn an_acquisition_is_told_with_run_token_and_fence() {
    let lines = [
        format!(
            "+3.000001 [0 127.0.0.1:5] \"EVAL\" \"a \\\"script\\\"\" \"4\" \"{LEASE}\" \"b\" \"c\" \"d\" \"ab\" \"5000\" \"6\" \"{{\\\"name\\\":\\\"run-12\\\"}}\"\r\n"
        ),
        from_script("SET", "fence", "\"6\""),
        from_script("INCR", "fence", ""),
        from_script("SET", "lease", "\"ab\" \"PX\" \"5000\""),
    ];
    let expected = Executed::Acquired { at: 2_000_002_000, token: "ab".into(), fence: 7, run: 12 };
    assert_eq!(read(&lines), [expected]);
}

#[test]
fn renewals_and_releases_are_those_of_the_scripts_token() {
    let eval = |keys: &str| format!("+3.0 [0 1:1] \"EVALSHA\" \"x\" {keys} \"ab\" \"1\"\r\n");
    let lines = [
        eval("\"3\" \"a\" \"b\" \"c\""),
        from_script("PEXPIRE", "lease", "\"5000\""),
        eval("\"2\" \"a\" \"b\""),
        from_script("DEL", "lease", ""),
    ];
    let (at, token) = (2_000_002_000, "ab".to_owned());
    assert_eq!(
        read(&lines),
        [Executed::Renewed { at, token: token.clone() }, Executed::Released { at, token }]
    );
}

#[test]
fn what_others_delete_was_taken_away() {
    let lines = [
        format!("+3.0 [0 127.0.0.1:5] \"del\" \"{LEASE}\"\r\n"),
        "+3.0 [0 127.0.0.1:5] \"FLUSHALL\"\r\n".to_owned(),
    ];
    assert_eq!(read(&lines), vec![Executed::TakenAway { at: 2_000_000_000 }; 2]);
}
