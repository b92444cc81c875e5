//! What does a gate's answer mean? Pure: status and body in.

use fencedlease_wire::Fence;
use fencedlease_wire::gate::{GateProblem, GuardedResource, RaiseAnswer};
use hyper::StatusCode;

use crate::hold::pod::GateAnswer;

/// How much of a gate's words is passed on, in characters.
const MAX_WORDS: usize = 300;

/// The answer to the raise of this fence, judged.
pub(super) fn of(status: StatusCode, body: &[u8], resource: &GuardedResource, fence: Fence) -> GateAnswer {
    if status == StatusCode::OK {
        return match serde_json::from_slice::<RaiseAnswer>(body) {
            Ok(answer) if answer.resource == *resource && answer.fence == fence => {
                GateAnswer::Stored { unsettled: answer.unsettled }
            }
            _ => failed(format!(
                "it answered 200, but not as a gate that has stored fence {fence}; {NOT_A_GATE}"
            )),
        };
    }
    let Ok(problem) = serde_json::from_slice::<GateProblem>(body) else {
        return failed(format!("it answered {}, but not as a gate does; {NOT_A_GATE}", status.as_u16()));
    };
    match problem.highest {
        Some(highest) if status == StatusCode::PRECONDITION_FAILED && highest >= fence => {
            GateAnswer::Ahead { highest }
        }
        _ => failed(format!("it answered {} {}", status.as_u16(), words(&problem))),
    }
}

const NOT_A_GATE: &str = "see that the URL is that of a gate, with no other proxy in front";

fn failed(message: String) -> GateAnswer {
    GateAnswer::Failed { message }
}

/// What the gate said, with the remedy on this side of it where its own words are for applications.
fn words(problem: &GateProblem) -> String {
    let said: String = problem.message.chars().filter(|char| !char.is_control()).take(MAX_WORDS).collect();
    let code: String = problem.code.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    let remedy = match code.as_str() {
        "TicketForged" => {
            "gate and pod have different keys of this FencedLease: see that both have its present one"
        }
        "TicketOld" | "TicketAhead" => "set the clocks of the gate's node and of this one",
        "ResourceUnknown" => "add this FencedLease to the gate's --guard, and its key to the gate's --keys",
        _ => return format!("{code}: {said}"),
    };
    format!("{code}; {remedy}")
}
