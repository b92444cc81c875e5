//! How figures are shown: what was measured, the figure, its bound, and whether it keeps it.

use std::fmt;

/// What a figure has to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// It is for people to look at.
    None,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Line {
    /// What was measured.
    pub what: String,
    /// The figures that it was made of.
    pub of: String,
    /// The figure.
    pub figure: f64,
    /// Its unit: `×`, `ms`.
    pub unit: &'static str,
    /// What it has to keep.
    pub bound: Bound,
}

/// Figures that belong together.
#[derive(Clone, Debug)]
pub struct Table {
    /// What they are about, and how they were measured.
    pub title: String,
    /// The figures.
    pub lines: Vec<Line>,
}

// === impl Line ===

impl Line {
    /// In words, whether the bound is kept.
    pub fn verdict(&self) -> &'static str {
        match self.bound {
            Bound::None => "",
            Bound::AtLeast(least) if self.figure >= least => "OK",
            Bound::AtMost(most) if self.figure <= most => "OK",
            Bound::AtLeast(_) => "below the bound",
            Bound::AtMost(_) => "above the bound",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => f.pad(&format!("≥ {least}")),
            Self::AtMost(most) => f.pad(&format!("≤ {most}")),
            Self::None => f.pad(""),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        let width = |of: fn(&Line) -> &str| {
            self.lines.iter().map(|line| of(line).chars().count()).max().unwrap_or_default()
        };
        let (what, of) = (width(|line| &line.what), width(|line| &line.of));
        for line in &self.lines {
            let text = format!(
                "  {:what$}  {:of$}  {:>9.3} {:<2}  {:<7}  {}",
                line.what,
                line.of,
                line.figure,
                line.unit,
                line.bound,
                line.verdict()
            );
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
