//! A scope by its key: what `INCR`, `INCRBY`, `LPOP`, `RPOP`, `GET`, `LLEN`, `EXISTS` and `TYPE` share.

use std::fmt::Display;
use std::sync::Arc;

use bates_core::{By, Code, Entry, Machine, Peek, ScopeName, Store};

use super::super::session::Session;
use super::{Call, Outcome, Reply, Request, incr, lpop, shown};

/// A command about a key that has to wait for the store.
pub(in super::super) struct KeyRequest {
    key: Box<str>,
    action: KeyAction,
}

/// What a command does with its scope.
#[derive(Clone, Copy)]
pub(super) enum KeyAction {
    /// Takes as many numbers, and answers with the last one.
    Take(u64),
    /// Takes one number, or a list of as many.
    Pop(Option<u64>),
    /// Looks at the scope, which is not created.
    Look(fn(&mut Reply<'_>, &Entry, &Peek)),
}

impl<'c, S: Store> Call<'c, S> {
    /// The key. `None`: it is not UTF-8 and so the key of no series, which is answered.
    pub(super) fn key(&mut self) -> Option<&'c str> {
        let key = self.command.arg(1).unwrap_or_default();
        let text = std::str::from_utf8(key).ok();
        if text.is_none() {
            no_such_key(&mut self.reply(), key);
        }
        text
    }

    pub(super) fn look(&mut self, answer: fn(&mut Reply<'_>, &Entry, &Peek)) -> Outcome {
        self.key().map_or(Outcome::Answered, |key| KeyAction::Look(answer).later(key))
    }
}

impl KeyAction {
    pub(super) fn later(self, key: &str) -> Outcome {
        Outcome::Later(Request::Key(KeyRequest { key: key.into(), action: self }))
    }
}

impl KeyRequest {
    /// Waits for the store, and answers.
    pub(super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        output: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(output, session.protocol);
        let Some(entry) = find(machine, &self.key).await else {
            return no_such_key(&mut reply, self.key.as_bytes());
        };
        let parameters: Vec<(&str, &str)> = entry
            .key()
            .and_then(|template| template.read(&self.key))
            .map(Iterator::collect)
            .unwrap_or_default();
        let (name, by) = (ScopeName::from(&*parameters), By::resp(session.caller().who()));
        let outcome = match self.action {
            KeyAction::Take(_) if !entry.counts_plainly() => return not_a_count(&mut reply, &entry),
            // All or none: an addition that was made in part could not be answered.
            KeyAction::Take(count) => {
                machine.take(&entry, name, count, by).await.map(|taken| incr::answer(&mut reply, &taken))
            }
            KeyAction::Pop(count) => {
                let numbers = machine.next(&entry, name, count.unwrap_or(1), by).await;
                numbers.map(|numbers| lpop::answer(&mut reply, count, &numbers))
            }
            KeyAction::Look(answer) => {
                machine.peek(&entry, name).await.map(|peek| answer(&mut reply, &entry, &peek))
            }
        };
        if let Err(error) = outcome {
            refuse(&mut reply, error.code(), &error);
        }
    }
}

/// The series of a key, also if another node has created it just now.
async fn find<S: Store>(machine: &Machine<S>, key: &str) -> Option<Arc<Entry>> {
    if let Some(entry) = machine.of_key(key) {
        return Some(entry);
    }
    // A store that cannot be asked knows no more than this node. Others may have followed meanwhile.
    let _ = machine.follow().await;
    machine.of_key(key)
}

/// A prefix that programs look at, the stable code, and the sentence.
pub(super) fn refuse(reply: &mut Reply<'_>, code: Code, sentence: impl Display) {
    reply.error(code.resp_prefix(), format_args!("{code}: {sentence}"));
}

fn no_such_key(reply: &mut Reply<'_>, key: &[u8]) {
    refuse(reply, Code::BAD_KEY, format_args!("no series has a key like \"{}\"", shown(key)));
}

pub(super) fn not_a_count(reply: &mut Reply<'_>, entry: &Entry) {
    let name = entry.series().name();
    let sentence = format_args!("series \"{name}\" gives texts, which cannot be counted up: use LPOP");
    refuse(reply, Code::NOT_A_COUNT, sentence);
}
