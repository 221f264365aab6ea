//! Rows, verdicts, medians, and the table at the end.

use std::fmt::Write as _;

/// Whether a budget holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Over,
    /// There is no budget.
    Reported,
    /// The feature does not exist yet, or what measures it is not on this machine.
    NotMeasured,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    what: String,
    budget: String,
    measured: String,
    beside: String,
    pub(crate) verdict: Verdict,
}

/// What was measured so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// A figure that must not be above its budget.
    pub(crate) fn at_most(&mut self, what: &str, unit: &str, budget: f64, measured: f64, beside: String) {
        self.add(what, format!("≤ {budget} {unit}"), figure(measured, unit), beside, measured <= budget);
    }

    /// A figure that must not be below its budget.
    pub(crate) fn at_least(&mut self, what: &str, unit: &str, budget: f64, measured: f64, beside: String) {
        self.add(what, format!("≥ {budget} {unit}"), figure(measured, unit), beside, measured >= budget);
    }

    /// Anything else that holds or does not.
    pub(crate) fn holds(&mut self, what: &str, budget: &str, measured: String, beside: String, holds: bool) {
        self.add(what, budget.into(), measured, beside, holds);
    }

    /// A figure that has no budget.
    pub(crate) fn reported(&mut self, what: &str, unit: &str, measured: f64, beside: String) {
        self.rows.push(Row {
            what: what.into(),
            budget: "reported".into(),
            measured: figure(measured, unit),
            beside,
            verdict: Verdict::Reported,
        });
    }

    /// A budget that nothing was measured for.
    pub(crate) fn not_measured(&mut self, what: &str, budget: &str, why: &str) {
        self.rows.push(Row {
            what: what.into(),
            budget: budget.into(),
            measured: "not yet".into(),
            beside: why.into(),
            verdict: Verdict::NotMeasured,
        });
    }

    fn add(&mut self, what: &str, budget: String, measured: String, beside: String, holds: bool) {
        let verdict = if holds { Verdict::Holds } else { Verdict::Over };
        self.rows.push(Row { what: what.into(), budget, measured, beside, verdict });
    }

    /// The table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| what | budget | measured | beside it | |\n|---|---|---|---|---|\n");
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::Holds => "holds",
                Verdict::Over => "**over**",
                Verdict::Reported | Verdict::NotMeasured => "–",
            };
            writeln!(
                table,
                "| {} | {} | {} | {} | {verdict} |",
                row.what, row.budget, row.measured, row.beside
            )
            .expect("a string takes everything");
        }
        table
    }

    pub(crate) fn is_over(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Over)
    }
}

/// A number with as many digits as it deserves.
pub(crate) fn figure(value: f64, unit: &str) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// The middle one; of an even number the upper of both.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a share of all lies.
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values[at.min(values.len() - 1)]
}
