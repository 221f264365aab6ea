//! Hands a run's variables to terraform: in files that only the child may read and that are there while it runs.
//!
//! Files rather than the environment, because there terraform reads a text as an expression or not by the type of the
//! variable, and because files given by name win over every file of the repository. Texts are in a JSON file, where
//! nothing is interpreted; expressions in a native one, each between brackets that it was found not to close. What the
//! root module mentions nowhere goes by the environment all the same, where terraform ignores what is not declared:
//! in a file it would warn of each.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plumbline_core::protocol::Variable;
use plumbline_core::variables::hcl;

use crate::error::StepError;
use crate::files::read_left_by_child;
use crate::session::Session;

const TEXTS_NAME: &str = "variables.tfvars.json";
const EXPRESSIONS_NAME: &str = "variables.tfvars";
const CONFIGURATION_ENDINGS: [&str; 4] = [".tf", ".tf.json", ".tofu", ".tofu.json"];
/// More or longer files of a root module are not looked through.
const FILES_MAX: usize = 1_000;
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How one command gets the variables. The files are gone when this is.
pub(crate) struct Given {
    files: Vec<PathBuf>,
    /// For what the root module does not mention.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl Given {
    /// Writes the files for a command in the given working directory.
    pub(crate) fn write(session: &Session, directory: &Path) -> Result<Self, StepError> {
        let words = words_of(directory);
        let is_mentioned = |one: &&Variable| words.as_ref().is_none_or(|words| words.contains(&one.key));
        let (mentioned, others): (Vec<&Variable>, Vec<&Variable>) =
            session.bundle.variables.iter().partition(is_mentioned);
        let environment = others
            .into_iter()
            .map(|one| (format!("TF_VAR_{}", one.key).into(), one.value.clone().into()))
            .collect();
        let mut given = Self { files: Vec::new(), environment };
        let (expressions, texts): (Vec<&Variable>, Vec<&Variable>) =
            mentioned.into_iter().partition(|one| one.is_hcl);
        given.add(session, TEXTS_NAME, &texts, texts_file)?;
        given.add(session, EXPRESSIONS_NAME, &expressions, expressions_file)?;
        Ok(given)
    }

    /// The arguments that name the files.
    pub(crate) fn args(&self) -> Vec<String> {
        self.files.iter().map(|path| format!("-var-file={}", path.display())).collect()
    }

    fn add(
        &mut self,
        session: &Session,
        name: &str,
        variables: &[&Variable],
        content: impl Fn(&[&Variable]) -> Result<String, StepError>,
    ) -> Result<(), StepError> {
        if variables.is_empty() {
            return Ok(());
        }
        let path = session.layout.given.join(name);
        let failed = || StepError::machine("the variables cannot be handed over");
        std::fs::write(&path, content(variables)?).map_err(failed())?;
        // Remembered before it is opened to the child: whatever fails next, the file goes.
        self.files.push(path.clone());
        session.isolation.share(&path).map_err(failed())
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        for path in &self.files {
            // The whole directory goes when the attempt ends.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// One variable a line: terraform quotes whole lines of a file with a value that it refuses.
fn texts_file(variables: &[&Variable]) -> Result<String, StepError> {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let lines: Vec<String> =
        variables.iter().map(|one| format!("{}: {}", quote(&one.key), quote(&one.value))).collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

fn expressions_file(variables: &[&Variable]) -> Result<String, StepError> {
    let mut text = String::new();
    for one in variables {
        // The API has looked; what is written here must not depend on it.
        hcl::check(&one.value).map_err(|reason| {
            StepError::Permanent(format!("the variable {} is no HCL expression: {reason}", one.key))
        })?;
        let _ = writeln!(text, "{} = (\n{}\n)", one.key, one.value);
    }
    Ok(text)
}

/// Every word of the root module's configuration; `None` if it could not be looked through.
fn words_of(directory: &Path) -> Option<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    let mut files = 0;
    for entry in std::fs::read_dir(directory).ok()? {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_string_lossy().into_owned();
        if !CONFIGURATION_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        files += 1;
        // A link is not followed; what it leads to may declare anything.
        let bytes = read_left_by_child(&path, FILE_BYTES_MAX).ok()??;
        if files > FILES_MAX {
            return None;
        }
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let found = bytes.split(|byte| !is_word(byte)).filter(|word| !word.is_empty());
        words.extend(found.map(|word| String::from_utf8_lossy(word).into_owned()));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(key: &str, value: &str) -> Variable {
        Variable { key: key.into(), value: value.into(), is_secret: false, is_hcl: false }
    }

    #[test]
    fn each_text_is_one_line_of_the_file_and_survives_it() {
        let values = ["a\nb\r\n", "\"${x}\" %{y} \\", "\u{1}\u{7f}\u{2028}\u{feff}é", ""];
        let variables: Vec<Variable> =
            values.iter().enumerate().map(|(n, value)| variable(&format!("k{n}"), value)).collect();
        let text = texts_file(&variables.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(text.lines().count(), values.len() + 2, "{text}");
        let read: std::collections::BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.into_values().collect::<Vec<_>>(), values);
    }

    #[test]
    fn an_expression_that_would_close_its_brackets_is_not_written() {
        let hostile = variable("a", "1)\nother = (2");
        assert!(expressions_file(&[&hostile]).is_err());
        assert_eq!(expressions_file(&[&variable("a", "[1]")]).unwrap(), "a = (\n[1]\n)\n");
    }

    #[test]
    fn words_are_those_of_the_configuration_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("main.tf", "variable \"one\" {}\n# variable two\n");
        write("more.tf.json", "{\"variable\": {\"three\": {}}}");
        write("readme.md", "four");
        let words = words_of(directory.path()).unwrap();
        let has = |word: &str| words.contains(word);
        assert!(has("one") && has("two") && has("three") && !has("four") && !has("on"));
        std::os::unix::fs::symlink("main.tf", directory.path().join("linked.tf")).unwrap();
        assert_eq!(words_of(directory.path()), None);
    }
}
