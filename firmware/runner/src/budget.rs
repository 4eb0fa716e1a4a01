//! Figures beside their aims.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::Result;

/// One line of budgets.toml.
#[derive(Deserialize)]
struct Budget {
    image: String,
    figure: String,
    unit: String,
    /// What it should be at most; absent where it is only watched.
    aim: Option<u64>,
    /// What it must not be above: about a twentieth more than was measured last.
    limit: Option<u64>,
    /// What exactly is counted.
    what: String,
}

#[derive(Deserialize)]
struct Budgets {
    budget: Vec<Budget>,
}

/// What has been measured: (image, figure) and value.
pub struct Figures(BTreeMap<(String, String), u64>);

impl Figures {
    pub fn new() -> Figures {
        Figures(BTreeMap::new())
    }

    pub fn add(&mut self, image: &str, figure: &str, value: u64) {
        self.0.insert((image.to_owned(), figure.to_owned()), value);
    }

    /// Prints each figure beside its aim, or its limit. Fails where one is above its limit, and where
    /// budgets.toml and the figures do not name the same things, so that none is forgotten.
    pub fn print(mut self) -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("budgets.toml");
        let budgets: Budgets = toml::from_str(&std::fs::read_to_string(path)?)?;
        println!(
            "{:12} {:22} {:>7} {:>7} {:13} what",
            "image", "figure", "value", "aim", "unit"
        );
        let mut above = Vec::new();
        for Budget {
            image,
            figure,
            unit,
            aim,
            limit,
            what,
        } in budgets.budget
        {
            let value = self
                .0
                .remove(&(image.clone(), figure.clone()))
                .ok_or_else(|| format!("{image} {figure} is in budgets.toml, but not measured"))?;
            let aim_text = match (aim, limit) {
                (Some(aim), _) => aim.to_string(),
                (None, Some(limit)) => format!("<={limit}"),
                (None, None) => "-".to_owned(),
            };
            if limit.is_some_and(|limit| value > limit) {
                above.push(format!("{image} {figure}"));
            }
            let mark = if aim.is_some_and(|aim| value > aim) {
                "  ABOVE THE AIM"
            } else {
                ""
            };
            println!("{image:12} {figure:22} {value:7} {aim_text:>7} {unit:13} {what}{mark}");
        }
        match self.0.keys().next() {
            None if above.is_empty() => Ok(()),
            None => Err(format!("above the limit: {}", above.join(", ")).into()),
            Some((image, figure)) => {
                Err(format!("{image} {figure} is measured, but not in budgets.toml").into())
            }
        }
    }
}
