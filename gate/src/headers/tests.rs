use std::net::Ipv4Addr;

use super::*;

#[test]
fn a_query_is_kept_where_the_path_is_left_out() {
    let client = Client { address: Ipv4Addr::LOCALHOST.into(), is_tls: false };
    for (asked, sent) in [
        ("http://files.shop.svc?lifecycle", "/?lifecycle"),
        ("http://files.shop.svc", "/"),
        ("/reports/a?b=c", "/reports/a?b=c"),
    ] {
        let (mut parts, ()) = hyper::Request::delete(asked).body(()).unwrap().into_parts();
        to_backend(&mut parts, client, None, Some(0));
        assert_eq!(parts.uri.to_string(), sent, "{asked}");
    }
}
