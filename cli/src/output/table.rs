//! Aligned columns that never wrap: at a terminal the column that may shrink is cut, ids never are.

use super::{Screen, Tone, clean};

const GAP: &str = "  ";
const NARROWEST: usize = 8;

/// A table for people.
#[derive(Debug)]
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    shrinks: Option<usize>,
}

impl Table {
    /// With these columns.
    pub fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new(), shrinks: None }
    }

    /// The column that is cut when the terminal is too narrow.
    #[must_use]
    pub fn shrinking(mut self, header: &str) -> Self {
        self.shrinks = self.headers.iter().position(|name| *name == header);
        self
    }

    /// One more row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell).replace(['\n', '\t'], " ")).collect());
    }

    /// Prints it, or `empty` if it has no rows, and how to see more if there is more.
    pub fn print(self, screen: &Screen, empty: &str, next_cursor: Option<&str>) -> anyhow::Result<()> {
        if self.rows.is_empty() {
            screen.note(empty);
            return Ok(());
        }
        screen.print(&self.render(screen))?;
        if let Some(cursor) = next_cursor {
            screen.note(&format!("There is more: --cursor {cursor}"));
        }
        Ok(())
    }

    fn render(&self, screen: &Screen) -> String {
        let widths = self.widths(screen.width);
        let mut out =
            screen.paint(Tone::Faint, &line(self.headers.iter().map(|header| (*header).to_owned()), &widths));
        for row in &self.rows {
            out.push('\n');
            out.push_str(&line(row.iter().cloned(), &widths));
        }
        out
    }

    fn widths(&self, terminal: Option<usize>) -> Vec<usize> {
        let column = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell));
            cells.max().unwrap_or(0).max(width(self.headers[index]))
        };
        let mut widths: Vec<usize> = (0..self.headers.len()).map(column).collect();
        let total = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        if let (Some(terminal), Some(index)) = (terminal, self.shrinks) {
            let excess = total.saturating_sub(terminal);
            widths[index] = widths[index].saturating_sub(excess).max(NARROWEST.min(widths[index]));
        }
        widths
    }
}

fn line(cells: impl Iterator<Item = String>, widths: &[usize]) -> String {
    let mut out = String::new();
    for (cell, column) in cells.zip(widths) {
        let cell = fit(cell, *column);
        let padding = column.saturating_sub(width(&cell));
        out.push_str(&cell);
        out.push_str(&" ".repeat(padding));
        out.push_str(GAP);
    }
    out.trim_end().into()
}

/// Columns that the text takes; colours take none.
fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut in_color = false;
    for character in text.chars() {
        match (in_color, character) {
            (false, '\u{1b}') => in_color = true,
            (true, 'm') => in_color = false,
            (true, _) => {}
            (false, _) => columns += 1,
        }
    }
    columns
}

fn fit(cell: String, column: usize) -> String {
    if width(&cell) <= column {
        return cell;
    }
    let mut cut: String = cell.chars().take(column.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Names and values, one pair a line, values aligned; pairs without a value are left out.
pub fn facts(pairs: &[(&str, Option<String>)]) -> String {
    let present: Vec<(&str, &String)> =
        pairs.iter().filter_map(|(name, value)| value.as_ref().map(|value| (*name, value))).collect();
    let column = present.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let lines: Vec<String> = present
        .iter()
        .map(|(name, value)| {
            let indented = value.replace('\n', &format!("\n{}", " ".repeat(column + GAP.len())));
            format!("{name}{}{GAP}{indented}", " ".repeat(column - width(name)))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: Option<usize>) -> Screen {
        let flags = crate::args::GlobalArgs {
            server: None,
            business_unit: None,
            json: false,
            no_color: true,
            quiet: true,
        };
        let mut screen = Screen::new(&flags);
        screen.width = width;
        screen
    }

    #[test]
    fn columns_align_and_only_the_shrinking_one_is_cut() {
        let mut table = Table::new(&["ID", "NAME", "STATUS"]).shrinking("NAME");
        table.row(["0190-1".into(), "a-very-long-name-of-a-thing".into(), "\u{1b}[32mok\u{1b}[0m".into()]);
        table.row(["0190-22".into(), "short\nname".into(), "failed".into()]);
        assert_eq!(
            table.render(&screen(Some(30))),
            "ID       NAME           STATUS\n\
             0190-1   a-very-long-…  \u{1b}[32mok\u{1b}[0m\n\
             0190-22  short name     failed"
        );
        assert!(table.render(&screen(None)).contains("a-very-long-name-of-a-thing"));
    }

    #[test]
    fn facts_align_and_skip_what_is_absent() {
        let text = facts(&[("id", Some("1".into())), ("error", None), ("status", Some("a\nb".into()))]);
        assert_eq!(text, "id      1\nstatus  a\n        b");
    }
}
