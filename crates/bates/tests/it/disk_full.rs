//! A full disk: the server issues the ranges that it holds, refuses new ones, and recovers by itself.

use bates_testkit::history::{Gaps, Rules};

use super::disk::Disk;
use super::load::Load;
use super::running::{Client, Server};

/// The kills leave gaps, so any are allowed.
const RULES: Rules = Rules { is_ordered: true, gaps: Gaps::Any };

/// The log of a store grows to about 40 MiB before it starts over.
const SIZE: &str = "64m";

/// Begins new counters until the server refuses one: how many it accepted, and the refusal.
fn fill_counters(server: &Server, prefix: &str) -> (u64, String) {
    let mut client = Client::connect(server.port).unwrap();
    for key in 0.. {
        let answer = client.incr_raw(&format!("counter:{prefix}.{key}")).expect("the server stays up");
        if answer != ":1" {
            return (key, answer);
        }
    }
    unreachable!("the loop only ends with a refusal")
}

#[test]
fn a_server_on_a_full_disk_issues_held_ranges_refuses_new_ones_and_recovers() {
    let disk = Disk::mount(SIZE);
    let server = disk.serve();
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.incr("counter:held"), Some(1));
    for round in 0..3 {
        disk.fill();
        let (_, refusal) = fill_counters(&server, &format!("full{round}"));
        assert!(refusal.starts_with("-ERR store_unavailable: "), "{refusal}");
        let first = 2 + round * 3;
        for number in first..first + 3 {
            assert_eq!(client.incr("counter:held"), Some(number), "from memory");
        }
        let (again, refusal) = fill_counters(&server, &format!("still{round}"));
        assert!(again == 0 && refusal.starts_with("-ERR store_unavailable: "), "{again}: {refusal}");
        disk.make_room();
        for key in 0..100 {
            let answer = client.incr_raw(&format!("counter:room{round}.{key}"));
            assert_eq!(answer.as_deref(), Some(":1"), "without a restart");
        }
    }
    let stderr = server.stop();
    assert!(stderr.contains("0 gaps left"), "{stderr}");
}

/// The disk fills and empties under load; then the server is killed while the disk is full, and started again.
#[test]
fn a_full_disk_and_a_kill_under_load_repeat_no_number() {
    let disk = Disk::mount(SIZE);
    let load = Load::begin(8, 200);
    let mut started_when_full = 0;
    for _ in 0..3 {
        let server = disk.serve();
        load.ask(&server);
        load.wait_for(1_000);
        disk.fill();
        let (_, refusal) = fill_counters(&server, "full");
        assert!(refusal.starts_with("-ERR store_unavailable: "), "{refusal}");
        disk.make_room();
        load.wait_for(1_000);
        disk.fill();
        let (_, refusal) = fill_counters(&server, "full-again");
        assert!(refusal.starts_with("-ERR store_unavailable: "), "{refusal}");
        server.kill();
        // The server starts or refuses; either way it repeats no number.
        if let Ok(server) = disk.try_serve() {
            started_when_full += 1;
            load.ask(&server);
            server.kill();
        }
        disk.make_room();
    }
    let server = disk.serve();
    load.ask(&server);
    load.wait_for(1_000);
    let history = load.end();
    assert_eq!(history.check(RULES), [], "started {started_when_full} times on a full disk");
}

/// Whichever write of a start fails, the folder stays marked as a store. So if its database goes missing afterwards,
/// the server does not start over with an empty one.
#[test]
fn a_failed_start_on_a_full_disk_leaves_the_folder_marked_as_a_store() {
    let data = tempfile::tempdir().unwrap();
    Server::start(data.path()).stop();
    let state = || std::fs::read_to_string(data.path().join("bates.state")).unwrap();
    assert!(state().contains("bates store closed"), "{}", state());
    let mut refused = 0;
    for nth in 1..=16 {
        let inject = format!("pwrite64:error=ENOSPC:when={nth}");
        let server = Server::start_doomed(data.path(), &inject, &[]);
        refused += u32::from(server.is_none());
        drop(server);
        assert!(state().starts_with("bates store "), "after write {nth}: {:?}", state());
        Server::start(data.path()).stop();
    }
    assert!(refused > 0, "some start must fail");
}

/// The log of the store can fill the disk by itself. A checkpoint then moves its pages into the database, which has
/// room for them.
#[test]
fn a_log_that_fills_the_disk_is_moved_into_the_database() {
    let disk = Disk::mount("8m");
    let key = |addition: u64| format!("counter:{}", addition % 50);
    // Each addition is larger than any range in memory, so each is a commit; together they need thrice the disk.
    for additions in [50, 6_000] {
        let server = disk.serve();
        let mut client = Client::connect(server.port).unwrap();
        for addition in 0..additions {
            let answer = client.send(&["INCRBY", &key(addition), "1000000"]);
            assert!(answer.as_ref().is_some_and(|answer| answer.starts_with(':')), "{addition}: {answer:?}");
        }
        server.stop();
    }
}

/// After a crash the log is copied before it is read.
#[test]
fn a_start_after_a_crash_reports_how_much_room_the_copy_of_the_log_needs() {
    let disk = Disk::mount(SIZE);
    let server = disk.serve();
    let mut client = Client::connect(server.port).unwrap();
    for key in 0..200 {
        assert_eq!(client.incr(&format!("counter:{key}")), Some(1));
    }
    disk.fill();
    server.kill();
    for _ in 0..2 {
        let refused = disk.try_serve().err().expect("a refusal for lack of room");
        assert!(refused.contains("no room to copy ") && refused.contains(" bytes. Make room"), "{refused}");
    }
    disk.make_room();
    let server = disk.serve();
    let mut client = Client::connect(server.port).unwrap();
    for key in 0..200 {
        assert!(client.incr(&format!("counter:{key}")) > Some(1));
    }
}
