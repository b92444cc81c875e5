//! The rules that the API server checks, in CEL, with messages that name field, value and remedy.
//!
//! Timing is decided by rules (R) and (C) in whole milliseconds, as the sidecar decides it; a test holds the
//! two together. Every drift, margin and stall below is a constant of the release: drift 1/5, both others 500 ms.

use kube::core::{Message, Rule};

/// A duration as users write it, in the Gateway API form.
pub(crate) const DURATION_PATTERN: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";
/// The most characters that a duration has.
pub(crate) const DURATION_LENGTH: u32 = 24;
/// The most characters that an address has: a DNS name, a colon, a port.
pub(crate) const ADDRESS_LENGTH: u32 = 259;
/// The most characters that a URL has: `https://` and an address.
pub(crate) const URL_LENGTH: u32 = 8 + ADDRESS_LENGTH;
/// The most characters that a DNS label has.
pub(crate) const LABEL_LENGTH: u32 = 63;

const PORT: &str = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
const OBJECT_NAME: &str = "matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')";
const HOST: &str = r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])";

/// A duration field of the spec has the form of a duration.
pub(crate) fn duration_form(field: &str) -> Rule {
    rule(
        format!("self.matches('{DURATION_PATTERN}')"),
        format!(
            "'spec.{field} \"%s\" is not a duration: write one to four numbers of at most five digits, \
             each with h, m, s or ms, such as 15s, 500ms or 1m30s'.format([self])"
        ),
    )
}

/// A duration field of the spec lies between these two.
pub(crate) fn duration_range(field: &str, least: &str, most: &str) -> Rule {
    rule(
        format!(
            "!self.matches('{DURATION_PATTERN}') || \
             (duration(self) >= duration('{least}') && duration(self) <= duration('{most}'))"
        ),
        format!("'spec.{field} is %s: it must lie between {least} and {most}'.format([self])"),
    )
}

/// Rule (R): a renewal that times out is noticed early enough to end the workload in time.
pub(crate) fn time_to_kill() -> Rule {
    let t = Timing::new();
    let Timing { ttl, interval, timeout, grace, budget, .. } = &t;
    let message = format!(
        "'spec.ttl %ss is too short: renewInterval %ss + renewTimeout %ss + 3 × stall 0.5s + gracePeriod %ss + \
         killBudget %ss = %ss must be below ttl/1.2 − 0.5s = %ss. Set ttl to %ss or more%s'.format({} + [{}])",
        in_seconds(&[
            ttl.clone(),
            interval.clone(),
            timeout.clone(),
            grace.clone(),
            budget.clone(),
            format!("{interval} + {timeout} + 1500 + {grace} + {budget}"),
            t.validity(),
            t.ttl_needed(),
        ]),
        shorter(
            "gracePeriod",
            &format!("5 * {ttl} - 6 * ({interval} + {timeout} + {budget} + 2000) - 1"),
            &t.commit_holds(),
        ),
    );
    rule(format!("!({}) || {}", Timing::well_formed(), t.kill_holds()), message).field_path(".ttl")
}

/// Rule (C): a healthy holder is never told that it is too late to commit. Speaks only where rule (R) holds,
/// so that one mistake gets one message.
pub(crate) fn time_to_commit() -> Rule {
    let t = Timing::new();
    let Timing { ttl, interval, timeout, budget, margin, .. } = &t;
    let message = format!(
        "'spec.commitMargin %ss is too long: renewInterval %ss + renewTimeout %ss + stall 0.5s + commitMargin %ss \
         = %ss must be below the %ss from a renewal to the kill instant. Set ttl to %ss or more%s'.format({} + \
         [{}])",
        in_seconds(&[
            margin.clone(),
            interval.clone(),
            timeout.clone(),
            margin.clone(),
            format!("{interval} + {timeout} + 500 + {margin}"),
            format!("{} - 500 - {budget}", t.validity()),
            t.ttl_needed(),
        ]),
        shorter(
            "commitMargin",
            &format!("5 * {ttl} - 6 * ({interval} + {timeout} + {budget} + 1500) - 1"),
            "true",
        ),
    );
    let condition = format!("!({}) || !({}) || {}", Timing::well_formed(), t.kill_holds(), t.commit_holds());
    rule(condition, message).field_path(".commitMargin")
}

/// The warning before `maxHold` leaves at least as much time without one.
pub(crate) fn warning_within_hold() -> Rule {
    let (hold, warning) = (milliseconds("maxHold"), milliseconds("maxHoldWarning"));
    rule(
        format!("!({} && {}) || 2 * {warning} <= {hold}", formed("maxHold"), formed("maxHoldWarning")),
        format!(
            "'spec.maxHoldWarning %ss is too long: it must be at most half of maxHold %ss. Set it to %ss or less, \
             or raise maxHold.'.format({})",
            in_seconds(&[warning.clone(), hold.clone(), format!("{hold} / 2")]),
        ),
    )
    .field_path(".maxHoldWarning")
}

/// A cold standby has no containers yet, so it cannot be Ready.
pub(crate) fn cold_is_not_ready() -> Rule {
    Rule::new("!(self.mode == 'Cold' && self.readiness == 'Ready')")
        .message(
            "spec.standby.readiness is Ready with mode Cold: a cold standby is never Ready, since its containers \
             do not exist yet. Set readiness to NotReady or Auto, or mode to Warm.",
        )
        .field_path(".readiness")
}

/// Each address is `host:port`.
pub(crate) fn addresses_form() -> Rule {
    let form = format!("matches('^{HOST}:{PORT}$')");
    rule(
        format!("self.all(address, address.{form})"),
        "'spec.redis.addresses[0] is \"%s\": write host:port with a port between 1 and 65535, without a scheme, \
         such as redis.shop.svc:6379'.format([self[0]])"
            .to_owned(),
    )
}

/// The name of a gate is a DNS label: a folder in the sidecar is called so.
pub(crate) fn gate_name_form() -> Rule {
    rule(
        "self.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')".to_owned(),
        "'spec.gates.name is \"%s\": write a-z, 0-9 and \"-\", with a letter or digit at both ends, such as \
         reports'.format([self.name])"
            .to_owned(),
    )
    .field_path(".name")
}

/// Each gate has a name of its own.
pub(crate) fn gate_names_differ() -> Rule {
    let is_alone = "self.exists_one(other, other.name == one.name)";
    rule(
        format!("self.all(one, {is_alone})"),
        format!(
            "'spec.gates has two gates with the name \"%s\": give each a name of its \
             own'.format([self.filter(one, !{is_alone})[0].name])"
        ),
    )
}

/// A gate is reached at a host, by http or https, and nothing else stands in its URL.
pub(crate) fn gate_url_form() -> Rule {
    rule(
        format!("self.url.matches('^https?://{HOST}(:{PORT})?$')"),
        "'spec.gates (%s).url is \"%s\": write https://host or https://host:port, without user, path or query, such as \
         https://gate.shop.svc:8443'.format([self.name, self.url])"
            .to_owned(),
    )
    .field_path(".url")
}

/// Where a gate's certificate authorities are is a name that an object can have.
pub(crate) fn gate_authorities_form() -> Rule {
    rule(
        format!("!has(self.caRef) || self.caRef.name.{OBJECT_NAME}"),
        format!(
            "'spec.gates (%s).caRef.name is \"%s\": {}'.format([self.name, self.caRef.name])",
            object_name_remedy("ConfigMap or Secret")
        ),
    )
    .field_path(".caRef.name")
}

/// Certificate authorities say nothing of a gate that is reached without TLS.
pub(crate) fn gate_authorities_are_used() -> Rule {
    rule(
        "!has(self.caRef) || !self.url.startsWith('http:')".to_owned(),
        "'spec.gates (%s).caRef is set with the url \"%s\", which is without TLS: write https://, or remove \
         caRef'.format([self.name, self.url])"
            .to_owned(),
    )
    .field_path(".caRef")
}

/// Where certificate authorities are is a name that an object can have.
pub(crate) fn authorities_form(path: &str) -> Rule {
    rule(
        format!("self.name.{OBJECT_NAME}"),
        format!("'{path}.name is \"%s\": {}'.format([self.name])", object_name_remedy("ConfigMap or Secret")),
    )
    .field_path(".name")
}

/// A reference names an object that can exist.
pub(crate) fn object_name_form(path: &str, what: &str) -> Rule {
    rule(
        format!("self.{OBJECT_NAME}"),
        format!("'{path} is \"%s\": {}'.format([self])", object_name_remedy(what)),
    )
}

/// The name fits into a label's value.
pub(crate) fn name_fits() -> Rule {
    rule(
        "self.metadata.name.size() <= 63".to_owned(),
        "'metadata.name has %d characters: use at most 63, since pods carry the name as a label'.format(\
         [self.metadata.name.size()])"
            .to_owned(),
    )
}

/// CEL expressions for the fields that decide the timing, each a number of milliseconds.
struct Timing {
    ttl: String,
    interval: String,
    timeout: String,
    grace: String,
    budget: String,
    margin: String,
}

impl Timing {
    fn new() -> Self {
        let ttl = milliseconds("ttl");
        Self {
            interval: format!("(has(self.renewInterval) ? {} : {ttl} / 3)", milliseconds("renewInterval")),
            ttl,
            timeout: milliseconds("renewTimeout"),
            grace: milliseconds("gracePeriod"),
            budget: milliseconds("killBudget"),
            margin: milliseconds("commitMargin"),
        }
    }

    /// Whether every field can be read at all; else its own rule speaks.
    fn well_formed() -> String {
        let fields = ["ttl", "renewTimeout", "gracePeriod", "killBudget", "commitMargin"].map(formed);
        format!("{} && (!has(self.renewInterval) || {})", fields.join(" && "), formed("renewInterval"))
    }

    fn kill_holds(&self) -> String {
        let Self { ttl, interval, timeout, grace, budget, .. } = self;
        format!("6 * ({interval} + {timeout} + {grace} + {budget} + 2000) < 5 * {ttl}")
    }

    fn commit_holds(&self) -> String {
        let Self { ttl, interval, timeout, budget, margin, .. } = self;
        format!("6 * ({interval} + {timeout} + {budget} + {margin} + 1500) < 5 * {ttl}")
    }

    fn validity(&self) -> String {
        format!("5 * {} / 6 - 500", self.ttl)
    }

    /// The smallest ttl from which on every ttl satisfies both rules, the other fields as they are.
    fn ttl_needed(&self) -> String {
        let Self { timeout, grace, budget, margin, .. } = self;
        let rest =
            format!("({timeout} + {budget} + 1500 + ({grace} + 500 > {margin} ? {grace} + 500 : {margin}))");
        let interval = milliseconds("renewInterval");
        format!(
            "(has(self.renewInterval) ? 6 * ({interval} + {rest}) / 5 + 1 : \
             2 * {rest} + (2 * {rest} % 3 == 0 ? 1 : 0))"
        )
    }
}

/// The end of a message: another field is named only where shortening it alone suffices. `six_times_room` is
/// six times what is left for it.
fn shorter(field: &str, six_times_room: &str, on_condition: &str) -> String {
    format!(
        "{on_condition} && {six_times_room} >= 0 ? ', or shorten {field} to %ss or less.'.format({}) : '.'",
        in_seconds(&[format!("({six_times_room}) / 6")])
    )
}

fn object_name_remedy(what: &str) -> String {
    format!(
        "write the name of a {what} of this namespace: a-z, 0-9, \"-\" and \".\", with a letter or digit at both ends"
    )
}

fn rule(condition: String, message: String) -> Rule {
    Rule::new(condition).message(Message::Expression(message))
}

fn formed(field: &str) -> String {
    format!("self.{field}.matches('{DURATION_PATTERN}')")
}

fn milliseconds(field: &str) -> String {
    format!("duration(self.{field}).getMilliseconds()")
}

/// A list of texts, each a number of milliseconds in seconds: `9.2`, `15`. Whole seconds apart, because API
/// servers and libraries differ in how they write a double that is whole.
fn in_seconds(milliseconds: &[String]) -> String {
    format!(
        "[{}].map(ms, ms % 1000 == 0 ? string(ms / 1000) : string(double(ms) / 1000.0))",
        milliseconds.join(", ")
    )
}
