//! What is asked of a fence check, and what may it answer?

/// What a writer says of itself. Texts, since that is what arrives from outside, right or wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// The fence, as digits if it is one.
    pub fence: String,
    /// Who holds it: a name that is new for each holding.
    pub holder: String,
}

/// What became of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It is there, durably.
    Done,
    /// Not there: a newer fence was here, or another holder with this one.
    Refused(String),
    /// Not there: what was given as fence, holder or resource cannot be one.
    Invalid(String),
    /// Not there, for a reason that says nothing about the lease (a constraint, a deadlock, no connection).
    Failed(String),
    /// Nobody could confirm whether it is there.
    Unknown(String),
}

/// Something that compares and stores fences where a write happens. A resource is `namespace/name` and keeps one
/// value.
pub trait FenceCheck: Send + Sync {
    /// Makes a resource that no fence was used on yet, and that has no value.
    fn prepare(&self, resource: &str) -> anyhow::Result<()>;

    /// Writes a value and waits until its fate is known, or cannot be. The resource itself takes no negative
    /// value: that is the failure which has nothing to do with fences.
    fn write(&self, resource: &str, claim: &Claim, value: i64) -> Outcome;

    /// The same, but the connection breaks when the server has answered the commit and before the answer is here.
    /// A refusal that came before the commit may be reported as such.
    fn write_and_lose_the_answer(&self, resource: &str, claim: &Claim, value: i64) -> Outcome;

    /// The value that the resource has now, if any.
    fn value(&self, resource: &str) -> anyhow::Result<Option<i64>>;

    /// Ends the server as a crash does (SIGKILL) and starts it again on what it left on disk.
    fn crash(&self) -> anyhow::Result<()>;
}

// === impl Claim ===

impl Claim {
    /// A claim of this fence by this holder.
    pub fn new(fence: impl Into<String>, holder: impl Into<String>) -> Self {
        Self { fence: fence.into(), holder: holder.into() }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Whether it is this kind of [`Outcome`], whatever its text.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
