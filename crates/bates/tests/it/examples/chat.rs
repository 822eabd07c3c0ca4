//! The chat room: two processes, one order.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use bates_testkit::history::{Gaps, History, Rules};
use tempfile::tempdir;

use super::example_binary;
use super::process::ask;
use crate::running::Server;

const PEOPLE: u64 = 4;
const MESSAGES: u64 = 50;

/// One process of the chat example.
struct Chat {
    child: Child,
    address: String,
}

impl Chat {
    fn start(bates: &Server, folder: &Path) -> Self {
        let mut command = Command::new(example_binary("chat"));
        command.arg("127.0.0.1:0").arg(format!("redis://127.0.0.1:{}", bates.port)).arg(folder);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit(' ').next().unwrap().to_owned();
        Self { child, address }
    }

    fn post(&self, room: &str, message: &str) -> u64 {
        let (status, _, answer) = ask(&self.address, &format!("POST /{room}"), "", message);
        assert_eq!(status, 200, "{answer}");
        answer.trim_end().parse().unwrap()
    }

    fn show(&self, room: &str) -> Vec<(u64, String)> {
        let (status, _, messages) = ask(&self.address, &format!("GET /{room}"), "", "");
        assert_eq!(status, 200, "{messages}");
        let line = |line: &str| {
            line.split_once(' ').map(|(number, text)| (number.parse().unwrap(), text.to_owned()))
        };
        messages.lines().map(|text| line(text).unwrap()).collect()
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_processes_show_all_messages_in_the_same_order() {
    let (data, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let bates = Server::start(data.path());
    let chats = [Chat::start(&bates, folder.path()), Chat::start(&bates, folder.path())];
    let history = History::default();
    thread::scope(|threads| {
        for person in 0..PEOPLE {
            let (chats, history) = (&chats, &history);
            threads.spawn(move || {
                let (scope, mut client) = (history.scope("lobby"), history.client());
                for (nth, chat) in (0..MESSAGES).zip(chats.iter().cycle()) {
                    let request = client.ask(scope);
                    let number = chat.post("lobby", &format!("{person} says {nth}"));
                    client.answered(request, number, number);
                    // The room is sorted at any time, and contains the message that was just posted.
                    let seen = chats[usize::try_from(person % 2).unwrap()].show("lobby");
                    assert!(seen.is_sorted() && seen.iter().any(|(shown, _)| *shown == number), "{seen:?}");
                }
            });
        }
    });
    // Across processes: a message that is answered before another is posted has the lower number; none is missing.
    let rules = Rules { is_ordered: true, gaps: Gaps::AtMost { start: 1, skipped_max: 0 } };
    assert_eq!(history.check(rules), []);
    let [one, other] = chats.each_ref().map(|chat| chat.show("lobby"));
    assert_eq!(one, other);
    assert!(one.iter().map(|(number, _)| *number).eq(1..=PEOPLE * MESSAGES));
    for person in 0..PEOPLE {
        let own = one.iter().filter_map(|(_, text)| text.strip_prefix(&format!("{person} says ")));
        assert!(
            own.eq((0..MESSAGES).map(|nth| nth.to_string())),
            "each message once, in the order in which it was posted"
        );
    }
    assert_eq!(chats[1].post("kitchen", "hello"), 1, "another room has its own order");
    assert_eq!(chats[0].show("empty"), []);
    assert_eq!(ask(&chats[0].address, "POST /..%2f..%2fetc", "", "x").0, 404);
}
