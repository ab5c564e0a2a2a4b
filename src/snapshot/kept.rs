//! What was asked and answered, kept: the snapshot itself, and the recorder that makes one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Answer, Question, SnapshotError, View};
use crate::event::canonical;
use crate::id::Digest;

/// One question with its answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// What was asked.
    pub question: Question,
    /// What was answered.
    pub answer: Answer,
}

/// The observations that a decision rests on, in the order of their questions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Observation>", into = "Vec<Observation>")]
pub struct Snapshot {
    answers: BTreeMap<Question, Answer>,
}

impl From<Vec<Observation>> for Snapshot {
    fn from(observations: Vec<Observation>) -> Self {
        Self { answers: observations.into_iter().map(|seen| (seen.question, seen.answer)).collect() }
    }
}

impl From<Snapshot> for Vec<Observation> {
    fn from(snapshot: Snapshot) -> Self {
        snapshot.answers.into_iter().map(|(question, answer)| Observation { question, answer }).collect()
    }
}

impl Snapshot {
    /// How many observations it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether nothing was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Questions with their answers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Question, &Answer)> {
        self.answers.iter()
    }

    /// The snapshot without one observation: for the law that knowing less never promises more.
    #[must_use]
    pub fn without(mut self, question: &Question) -> Self {
        self.answers.remove(question);
        self
    }

    /// The digest over all observations. Equal worlds give equal digests.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest_of(self.answers.iter())
    }
}

fn digest_of<'a>(answers: impl Iterator<Item = (&'a Question, &'a Answer)>) -> Digest {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for (question, answer) in answers {
        for value in [serde_json::to_value(question), serde_json::to_value(answer)] {
            // Questions and answers are integers, texts and digests: they have a canonical form.
            parts.push(value.ok().and_then(|value| canonical::write(&value).ok()).unwrap_or_default());
        }
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Digest::of("throughline/snapshot/1", &parts)
}

impl View for Snapshot {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        self.answers
            .get(question)
            .cloned()
            .ok_or_else(|| SnapshotError::NotRecorded { question: Box::new(question.clone()) })
    }
}

/// Stands before a view, asks each question once, and keeps the answers.
pub struct Recorder<'v> {
    view: &'v mut dyn View,
    kept: Snapshot,
}

impl<'v> Recorder<'v> {
    /// Records what is asked of `view`.
    pub fn new(view: &'v mut dyn View) -> Self {
        Self { view, kept: Snapshot::default() }
    }

    /// What was asked and answered.
    #[must_use]
    pub fn into_snapshot(self) -> Snapshot {
        self.kept
    }

    /// What was asked and answered so far.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.kept
    }
}

impl View for Recorder<'_> {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        if let Some(answer) = self.kept.answers.get(question) {
            return Ok(answer.clone());
        }
        let answer = self.view.ask(question)?;
        self.kept.answers.insert(question.clone(), answer.clone());
        Ok(answer)
    }
}
