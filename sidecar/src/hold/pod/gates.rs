//! From an acquisition to the first note: every gate stores the new fence, so that what the last holder still has on
//! its way is refused before this one runs. The lease is renewed meanwhile, and nothing of the workload starts.

use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_core::backoff::fraction;
use fencedlease_wire::endpoint::{GatesStanding, GatesStandingKind};
use fencedlease_wire::{Fence, PlannedEnd};

use super::Pod;
use super::event::{Actions, GateAnswer, RaiseRequest, Random};
use super::fact::Fact;
use super::held::Step;
use super::raise::{RAISE_TIMEOUT, Raise, in_words, time_for_gates};

/// A pod whose fence a gate did not take stays away this long, and up to twice as long at random: standbys take a
/// lease within milliseconds of its release.
const PAUSE: Duration = Duration::from_secs(5);
/// Gates are followed upwards this far, in the life of a pod. A sequence that was lost lies below it; what lies beyond
/// was set by hand or is a lie, and following it would soon use up all the digits that a fence may have. In all and not
/// each time: Redis hands out what lies above the last jump, and a gate could ask for the next one from there.
const MAX_JUMP: u64 = 1_000_000_000;

// === impl Pod ===

impl Pod {
    /// The fence goes to every gate from now on.
    pub(super) fn begin_raise(&mut self, now: BootTime) {
        let time = time_for_gates(self.config.timing.ttl(), self.config.max_hold);
        let Some(held) = &mut self.held else { return };
        held.step = Step::Raising { since: now };
        held.raise = Some(Raise::new(self.config.gates.len(), time, now));
    }

    /// Asks the gates that are due, and gives the lease back when they have had their time.
    pub(super) fn settle_raise(&mut self, now: BootTime, random: &Random, out: &mut Actions) {
        while let Some(index) = self.raise().and_then(|raise| raise.silent(now)) {
            self.gate_failed(index, "a call had no outcome".to_owned(), now, random, out);
        }
        if self.raise().is_some_and(|raise| now >= raise.until()) {
            return self.give_up_raise(now, random);
        }
        while let Some(index) = self.raise().and_then(|raise| raise.due(now)) {
            self.calls += 1;
            let call = self.calls;
            let Some(held) = &mut self.held else { return };
            let Some(raise) = &mut held.raise else { return };
            raise.asked(index, call, now);
            out.gates.push(RaiseRequest {
                call,
                gate: index,
                fence: held.holding.fence(),
                holding: held.holding.id().clone(),
                timeout: RAISE_TIMEOUT,
            });
        }
    }

    /// A gate answered, or did not. What answers a call of an earlier holding, or one that was given up, does not
    /// count.
    pub(super) fn on_raise(
        &mut self,
        call: u64,
        answer: GateAnswer,
        now: BootTime,
        random: &Random,
        out: &mut Actions,
    ) {
        let Some(index) = self.raise().and_then(|raise| raise.gate_of(call)) else { return };
        match answer {
            GateAnswer::Stored { unsettled } => self.gate_stored(index, unsettled, now, out),
            GateAnswer::Failed { message } => self.gate_failed(index, message, now, random, out),
            GateAnswer::Ahead { highest } => self.gate_ahead(index, highest, now, random, out),
        }
    }

    fn gate_stored(&mut self, index: usize, unsettled: u64, now: BootTime, out: &mut Actions) {
        let gate = self.config.gates[index].name.clone();
        let Some(held) = &mut self.held else { return };
        let (fence, step) = (held.holding.fence(), held.step);
        let Some(raise) = &mut held.raise else { return };
        raise.stored(index);
        let trouble = raise.trouble(&self.config.gates);
        if raise.is_done() {
            held.step = Step::Raised;
            held.raise = None;
            self.gates = GatesStanding { kind: GatesStandingKind::Raised, message: String::new() };
        } else if !trouble.is_empty() {
            self.gates = GatesStanding { kind: GatesStandingKind::GateUnreachable, message: trouble };
        }
        let Step::Raising { since } = step else { return };
        out.facts.push(Fact::Raised { gate, fence, took: now.since(since), unsettled });
    }

    fn gate_failed(
        &mut self,
        index: usize,
        message: String,
        now: BootTime,
        random: &Random,
        out: &mut Actions,
    ) {
        let gate = self.config.gates[index].name.clone();
        let Some(held) = &mut self.held else { return };
        let fence = held.holding.fence();
        let Some(raise) = &mut held.raise else { return };
        raise.failed(index, message.clone(), now, random.jitter);
        let trouble = raise.trouble(&self.config.gates);
        self.gates = GatesStanding { kind: GatesStandingKind::GateUnreachable, message: trouble };
        out.facts.push(Fact::RaiseFailed { gate, fence, message });
    }

    /// The gate knows a greater fence, or this one by another holder: this holding can never write through it.
    fn gate_ahead(
        &mut self,
        index: usize,
        highest: Fence,
        now: BootTime,
        random: &Random,
        out: &mut Actions,
    ) {
        let Some(held) = &mut self.held else { return };
        let (gate, fence) = (&self.config.gates[index], held.holding.fence());
        let known = self.highest_fence.unwrap_or(fence);
        let led = self.led_by_gates + highest.get().saturating_sub(known.get());
        let is_followed = led <= MAX_JUMP;
        let next = if is_followed {
            self.led_by_gates = led;
            self.highest_fence = self.highest_fence.max(Some(highest));
            format!("Given back; the next fence is above {highest}")
        } else {
            format!(
                "Gates would have led this pod more than {MAX_JUMP} above the fences of Redis, where no fence goes by itself: read about a gate that is ahead in docs/gate.md"
            )
        };
        let message = format!(
            "{} has stored fence {highest} of another holder, and Redis handed out {fence}: Redis has lost data, or others raise fences there. {next}",
            in_words(gate)
        );
        out.facts.push(Fact::GateAhead { gate: gate.name.clone(), fence, highest, message: message.clone() });
        self.gates = GatesStanding { kind: GatesStandingKind::GateAhead, message: message.clone() };
        // One step leads above what a gate has; a gate that is ahead again is not chased.
        let pause = if is_followed && self.gate_was_ahead.is_none() {
            self.config.timing.renew_timeout()
        } else {
            pause(random)
        };
        self.gate_was_ahead = Some(highest);
        self.give_back_unraised(message, pause, now);
    }

    fn give_up_raise(&mut self, now: BootTime, random: &Random) {
        let Some(held) = &self.held else { return };
        let (Some(raise), Step::Raising { since }) = (&held.raise, held.step) else { return };
        let message = format!(
            "{}. Given back after {} s, so that a pod which can reach it may try",
            raise.message(held.holding.fence(), &self.config.gates),
            now.since(since).as_secs()
        );
        self.give_back_unraised(message, pause(random), now);
    }

    fn give_back_unraised(&mut self, message: String, pause: Duration, now: BootTime) {
        let Some(held) = &mut self.held else { return };
        held.raise = None;
        held.pause = pause;
        held.unused.get_or_insert(message);
        held.holding.on_end(PlannedEnd::WorkloadEnded, now);
    }

    /// The raise that is under way, if the lease can still be used.
    fn raise(&self) -> Option<&Raise> {
        self.held.as_ref().filter(|held| !held.holding.is_over())?.raise.as_ref()
    }
}

fn pause(random: &Random) -> Duration {
    PAUSE + fraction(PAUSE, random.jitter)
}
