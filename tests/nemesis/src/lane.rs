//! One lease: a Redis, three places for holders, each behind a proxy of its own, and one fault after another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fencedlease_faults::{Clients, Direction, Fault as NetFault, FaultProxy, RedisServer, SHORT_TIMINGS};
use rustix::process::Signal;

use crate::board::{Board, now};
use crate::faults::{Dice, Fault};
use crate::history::{Executed, History, Nanos, Said};
use crate::monitor::Monitor;
use crate::processes::{Exec, Part, TTL};

/// Holders of one lease.
const PLACES: usize = 3;
/// From one look at everything to the next.
const LOOK: Duration = Duration::from_millis(5);
const MS: Nanos = 1_000_000;
/// A fault that has ended nothing by then is followed by an ordinary end of the command.
const FAULT_ENDS_MS: u64 = 2500;
/// A sidecar is stopped for longer than its lease lasts: a workload that only it would have ended meets the next one.
const STOPPED_MS: u64 = 5000;
/// Without a handover for so long the lane is stuck, however busy the machine is.
const STUCK_MS: u64 = 180_000;

/// What all lanes share.
#[derive(Debug)]
pub struct Stage {
    /// The shipped program.
    pub fencedlease: PathBuf,
    /// The workload.
    pub stamp: PathBuf,
    /// A folder in memory.
    pub folder: PathBuf,
    /// Handovers so far, of all lanes.
    pub handovers: AtomicU64,
    /// Handovers that are wanted.
    pub wanted: u64,
    /// Where the proxies live.
    pub runtime: tokio::runtime::Handle,
}

/// What one lane has seen.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All that is known of its lease.
    pub history: History,
    /// How often each fault was injected.
    pub faults: BTreeMap<Fault, u64>,
    /// From each loss that a sidecar noticed to the last stamp.
    pub loss_to_last_stamp: Vec<Duration>,
}

struct Lane<'a> {
    stage: &'a Stage,
    name: String,
    seed: u64,
    dice: Dice,
    redis: RedisServer,
    monitor: Monitor,
    proxies: Vec<FaultProxy>,
    places: Vec<Option<Exec>>,
    board: Board,
    board_path: PathBuf,
    next_run: u64,
    /// Ended runs are not replaced meanwhile: a fresh one has seen no fence yet.
    no_new_runs: bool,
    outcome: Outcome,
}

/// Plays one lane until all lanes together have handed over often enough.
pub fn play(stage: &Stage, number: u64, seed: u64) -> anyhow::Result<Outcome> {
    let name = format!("lane-{number}");
    let redis = RedisServer::start()?;
    let target = redis.address().to_string();
    let proxies = stage.runtime.block_on(async {
        let mut proxies = Vec::new();
        for _ in 0..PLACES {
            proxies.push(FaultProxy::start(target.clone()).await?);
        }
        anyhow::Ok(proxies)
    })?;
    let monitor = Monitor::start(redis.address());
    let board_path = stage.folder.join(&name);
    let mut lane = Lane {
        board: Board::open(&board_path)?,
        stage,
        name,
        seed,
        dice: Dice::new(seed.wrapping_add(number)),
        redis,
        monitor,
        proxies,
        places: (0..PLACES).map(|_| None).collect(),
        board_path,
        next_run: 1,
        no_new_runs: false,
        outcome: Outcome::default(),
    };
    lane.wait_attached(1)?;
    let mut before = 0;
    while stage.handovers.load(Ordering::SeqCst) < stage.wanted {
        before = lane.round(before)?;
    }
    lane.finish()
}

impl Lane<'_> {
    /// Waits for a new holder, and breaks something. Answers the holder's run.
    fn round(&mut self, before: u64) -> anyhow::Result<u64> {
        let since = now();
        let holder = loop {
            self.look()?;
            if let Some(place) = self.holder(before) {
                break place;
            }
            if self.is_over() {
                return Ok(before);
            }
            if now() > since + STUCK_MS * MS {
                bail!("{}: nobody has held for {STUCK_MS} ms after run {before}", self.name);
            }
        };
        let run = self.run_at(holder);
        if self.has_acquired_since_taken_away(run) {
            self.no_new_runs = false;
        }
        if before != 0 {
            self.stage.handovers.fetch_add(1, Ordering::SeqCst);
        }
        let wait = self.dice.below(500);
        self.pass(wait)?;
        let fault = self.dice.fault();
        if self.inject(fault, holder)? {
            *self.outcome.faults.entry(fault).or_default() += 1;
        }
        let since = now();
        while self.run_at(holder) == run && !self.is_over() && self.holder(run).is_none() {
            self.look()?;
            if now() > since + FAULT_ENDS_MS * MS {
                self.board.ask_to_end(run)?;
                break;
            }
        }
        Ok(run)
    }

    /// The place of a live run newer than this one whose workload has stamped.
    fn holder(&self, newer_than: u64) -> Option<usize> {
        (0..PLACES).find(|place| {
            let run = self.run_at(*place);
            run > 0
                && run != newer_than
                && matches!(self.board.read(run), Ok(Some(stamps)) if now().saturating_sub(stamps.last) < 200 * MS)
        })
    }

    fn run_at(&self, place: usize) -> u64 {
        self.places[place].as_ref().map_or(0, |exec| exec.run)
    }

    fn is_over(&self) -> bool {
        self.stage.handovers.load(Ordering::SeqCst) >= self.stage.wanted
    }

    /// Notes ends, fills places, and lets a moment pass.
    fn look(&mut self) -> anyhow::Result<()> {
        for place in 0..PLACES {
            if let Some(exec) = &mut self.places[place]
                && exec.has_ended()?
                && let Some(exec) = self.places[place].take()
            {
                if !exec.is_killed {
                    self.outcome.history.ended.insert(exec.run, now());
                }
                self.outcome.history.said.insert(exec.run, exec.said());
            }
            if self.places[place].is_none() && !self.no_new_runs {
                self.start(place)?;
            }
        }
        thread::sleep(LOOK);
        Ok(())
    }

    fn pass(&mut self, ms: u64) -> anyhow::Result<()> {
        let until = now() + ms * MS;
        while now() < until {
            self.look()?;
        }
        Ok(())
    }

    fn start(&mut self, place: usize) -> anyhow::Result<()> {
        let run = self.next_run;
        self.next_run += 1;
        let mut workload = Vec::new();
        // Dice of its own: how many runs there are depends on the machine, and faults are to depend on the seed.
        let kind = Dice::new(self.seed ^ (run << 32)).below(3);
        if kind > 0 {
            workload.extend(["env", "--ignore-signal=TERM"].map(str::to_owned));
        }
        workload.extend([self.stage.stamp.display().to_string(), self.board_path.display().to_string()]);
        workload.push(run.to_string());
        if kind == 2 {
            workload.push("--daemon".to_owned());
        }
        let folder = self.stage.folder.join(format!("{}-{run}", self.name));
        let lease = format!("nemesis/{}", self.name);
        let redis = self.proxies[place].address().to_string();
        let exec =
            Exec::start(&self.stage.fencedlease, &lease, &redis, run, folder, &SHORT_TIMINGS, &workload)?;
        self.places[place] = Some(exec);
        Ok(())
    }

    /// Answers whether somebody got it.
    fn signal(&self, place: usize, part: Part, signal: Signal) -> bool {
        self.places[place].as_ref().is_some_and(|exec| exec.signal(part, signal) > 0)
    }

    fn net(&self, place: usize, fault: NetFault) {
        self.proxies[place].set(Clients::All, fault);
    }

    /// A network fault of one place for a while.
    fn net_for(&mut self, place: usize, fault: NetFault, ms: u64) -> anyhow::Result<()> {
        self.net(place, fault);
        self.pass(ms)?;
        self.net(place, NetFault::Pass);
        Ok(())
    }

    fn signal_for(&mut self, place: usize, part: Part, ms: u64) -> anyhow::Result<bool> {
        let run = self.run_at(place);
        let is_stopped = self.signal(place, part, Signal::STOP);
        self.pass(ms)?;
        if self.run_at(place) == run {
            self.signal(place, part, Signal::CONT);
        }
        Ok(is_stopped)
    }

    /// Answers whether it could be done.
    fn inject(&mut self, fault: Fault, holder: usize) -> anyhow::Result<bool> {
        let run = self.run_at(holder);
        let (requests, replies) = (Direction::Requests, Direction::Replies);
        let while_ms = 400 + self.dice.below(1500);
        match fault {
            Fault::CommandEnds => self.board.ask_to_end(run)?,
            Fault::Terminated => return Ok(self.signal(holder, Part::Exec, Signal::TERM)),
            Fault::Cut => self.net_for(holder, NetFault::Cut, 50)?,
            Fault::AnswersLost => self.net_for(holder, NetFault::Drop { direction: replies }, while_ms)?,
            Fault::Delayed => {
                let delay = NetFault::Delay { delay_ms: 400, direction: Direction::Both };
                self.net_for(holder, delay, 1000)?;
            }
            Fault::RequestsHeld => self.net_for(holder, NetFault::Hold { direction: requests }, while_ms)?,
            Fault::AnswersHeld => self.net_for(holder, NetFault::Hold { direction: replies }, while_ms)?,
            Fault::AcquisitionsUnanswered => {
                for place in (0..PLACES).filter(|place| *place != holder) {
                    self.net(place, NetFault::Drop { direction: replies });
                }
                self.board.ask_to_end(run)?;
                self.pass(while_ms)?;
                for place in 0..PLACES {
                    self.net(place, NetFault::Pass);
                }
            }
            Fault::RedisStopped => {
                self.redis.stop()?;
                self.pass(while_ms)?;
                self.redis.cont()?;
            }
            Fault::RedisKilled | Fault::RedisEmptied => return self.empty(fault, holder),
            Fault::LeaseDeleted => {
                let key = format!("fencedlease:v1:{{exec/nemesis/{}}}:lease", self.name);
                self.redis.cli(&["DEL", &key])?;
            }
            Fault::SidecarStopped => return self.signal_for(holder, Part::Hold, STOPPED_MS + while_ms),
            Fault::SidecarKilled => return Ok(self.signal(holder, Part::Hold, Signal::KILL)),
            Fault::GuardStopped => {
                let ms = 100 + self.dice.below(800);
                return self.signal_for(holder, Part::Guard, ms);
            }
            Fault::GuardKilled => return Ok(self.signal(holder, Part::Guard, Signal::KILL)),
            Fault::ExecKilled => {
                if let Some(exec) = &mut self.places[holder] {
                    exec.is_killed = true;
                }
                return Ok(self.signal(holder, Part::Exec, Signal::KILL));
            }
        }
        Ok(true)
    }

    /// Redis loses everything, once each standby has been told of the present fence: without a recorded sequence
    /// that is what the next fence goes by.
    fn empty(&mut self, fault: Fault, holder: usize) -> anyhow::Result<bool> {
        self.no_new_runs = true;
        let name = Some(format!("run-{}", self.run_at(holder)));
        let standbys: Vec<usize> = (0..PLACES).filter(|place| *place != holder).collect();
        let until = now() + 10_000 * MS;
        loop {
            let mut runs = standbys.iter().filter_map(|place| self.places[*place].as_ref()).peekable();
            if runs.peek().is_some() && runs.all(|exec| exec.knows_holder() == name) {
                break;
            }
            if now() > until || self.run_at(holder) == 0 {
                // The holding ended by itself meanwhile.
                self.no_new_runs = false;
                return Ok(false);
            }
            self.look()?;
        }
        if fault == Fault::RedisEmptied {
            self.flush()?;
            return Ok(true);
        }
        let attached = self.monitor.attached();
        for place in 0..PLACES {
            self.net(place, NetFault::Cut);
        }
        self.redis.kill()?;
        self.redis.restart()?;
        self.wait_attached(attached + 1)?;
        for place in 0..PLACES {
            self.net(place, NetFault::Pass);
        }
        Ok(true)
    }

    /// Whether the run's lease is younger than the last loss of data. One that is older may be stamping still, and a
    /// run that starts while nobody has acquired anew hears of no fence at all.
    fn has_acquired_since_taken_away(&self, run: u64) -> bool {
        let executed = self.monitor.executed();
        let since = executed.iter().rev().take_while(|it| !matches!(it, Executed::TakenAway { .. }));
        since.into_iter().any(|it| matches!(it, Executed::Acquired { run: acquired, .. } if *acquired == run))
    }

    /// Empties Redis, and waits until that has been read in Redis's order.
    fn flush(&self) -> anyhow::Result<()> {
        let taken = |executed: &[Executed]| {
            executed.iter().filter(|it| matches!(it, Executed::TakenAway { .. })).count()
        };
        let before = taken(&self.monitor.executed());
        self.redis.cli(&["FLUSHALL"])?;
        let until = now() + STUCK_MS * MS;
        while taken(&self.monitor.executed()) == before {
            if now() > until {
                bail!("{}: MONITOR does not tell of FLUSHALL", self.name);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn wait_attached(&self, times: u64) -> anyhow::Result<()> {
        let until = now() + STUCK_MS * MS;
        while self.monitor.attached() < times {
            if now() > until {
                bail!("{}: MONITOR does not attach", self.name);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends everything, and collects what there is to know.
    fn finish(mut self) -> anyhow::Result<Outcome> {
        let mut history = std::mem::take(&mut self.outcome.history);
        for exec in self.places.drain(..).flatten() {
            history.said.insert(exec.run, exec.said());
        }
        // The last of them have been killed. A mark in Redis's order: all before it has been read when it has.
        self.flush()?;
        history.ttl = u64::try_from(TTL.as_nanos()).unwrap_or(u64::MAX);
        history.redis = self.monitor.executed();
        for run in 1..self.next_run {
            history.stamps.extend(self.board.read(run)?);
        }
        for stamps in &history.stamps {
            let said = history.said.get(&stamps.run).into_iter().flatten();
            let losses = said.filter_map(|said| match said {
                Said::Lost { fence, at } if *fence == stamps.fence => Some(*at),
                _ => None,
            });
            let spans = losses.map(|at| Duration::from_nanos(stamps.last.saturating_sub(at)));
            self.outcome.loss_to_last_stamp.extend(spans);
        }
        self.outcome.history = history;
        Ok(self.outcome)
    }
}

/// Where the boards lie: in memory.
pub fn memory_folder() -> anyhow::Result<tempfile::TempDir> {
    let place = Path::new("/dev/shm");
    tempfile::Builder::new().prefix("nemesis").tempdir_in(place).context("cannot use /dev/shm")
}
