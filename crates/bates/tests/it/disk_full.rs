//! A disk without room: what is in memory is still given, what is not is refused, and it all comes back by itself.

use bates_testkit::history::{Gaps, Rules};

use super::disk::Disk;
use super::load::Load;
use super::running::{Client, Server};

/// Gaps are no matter here: the server is killed, and asked in whatever order.
const RULES: Rules = Rules { is_ordered: true, gaps: Gaps::Any };

/// The log of a store grows to about 40 MiB before it begins anew.
const SIZE: &str = "64m";

/// New counters until one is refused, which is answered.
fn until_refused(server: &Server, prefix: &str) -> (u64, String) {
    let mut client = Client::connect(server.port).unwrap();
    for key in 0.. {
        let answer = client.incr_raw(&format!("counter:{prefix}.{key}")).expect("the server stays up");
        if answer != ":1" {
            return (key, answer);
        }
    }
    unreachable!("a disk without room ends")
}

#[test]
fn on_a_full_disk_held_numbers_go_on_new_leases_are_refused_and_room_heals_it() {
    let disk = Disk::mount(SIZE);
    let server = disk.serve();
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.incr("counter:held"), Some(1));
    for round in 0..3 {
        disk.fill();
        let (_, refusal) = until_refused(&server, &format!("full{round}"));
        assert!(refusal.starts_with("-ERR store_unavailable: "), "{refusal}");
        let first = 2 + round * 3;
        for number in first..first + 3 {
            assert_eq!(client.incr("counter:held"), Some(number), "it is in memory");
        }
        let (again, refusal) = until_refused(&server, &format!("still{round}"));
        assert!(again == 0 && refusal.starts_with("-ERR store_unavailable: "), "{again}: {refusal}");
        disk.make_room();
        for key in 0..100 {
            let answer = client.incr_raw(&format!("counter:room{round}.{key}"));
            assert_eq!(answer.as_deref(), Some(":1"), "without a restart");
        }
    }
    let said = server.stop();
    assert!(said.contains("0 gaps left"), "{said}");
}

/// Under load the disk fills and empties; then the server is killed while it is full, and started again.
#[test]
fn a_disk_that_fills_under_load_and_a_kill_on_it_repeat_no_number() {
    let disk = Disk::mount(SIZE);
    let load = Load::begin(8, 200);
    let mut started_when_full = 0;
    for _ in 0..3 {
        let server = disk.serve();
        load.ask(&server);
        load.wait_for(1_000);
        disk.fill();
        let (_, refusal) = until_refused(&server, "full");
        assert!(refusal.starts_with("-ERR store_unavailable: "), "{refusal}");
        disk.make_room();
        load.wait_for(1_000);
        disk.fill();
        let (_, refusal) = until_refused(&server, "full-again");
        assert!(refusal.starts_with("-ERR store_unavailable: "), "{refusal}");
        server.kill();
        // It opens or it refuses; either way it gives nothing that was given.
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

/// Whichever write of a start finds no room: the folder still says that it was a store, so that one whose database
/// goes missing afterwards does not begin again.
#[test]
fn a_start_without_room_does_not_make_a_folder_forget_that_it_was_a_store() {
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
    assert!(refused > 0, "a start needs room");
}

/// The log of the store may grow larger than the disk has room for, with nobody else to blame. What is in it goes
/// into the database, which has room for its own.
#[test]
fn a_log_that_fills_the_disk_makes_room_for_itself() {
    let disk = Disk::mount("8m");
    let key = |addition: u64| format!("counter:{}", addition % 50);
    // Each addition is larger than any lease, so each is a commit; together they are thrice the disk.
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
fn a_start_after_a_crash_without_room_for_a_copy_of_the_log_says_how_much_it_takes() {
    let disk = Disk::mount(SIZE);
    let server = disk.serve();
    let mut client = Client::connect(server.port).unwrap();
    for key in 0..200 {
        assert_eq!(client.incr(&format!("counter:{key}")), Some(1));
    }
    disk.fill();
    server.kill();
    for _ in 0..2 {
        let refused = disk.try_serve().err().expect("there is no room");
        assert!(refused.contains("no room to copy ") && refused.contains(" bytes. Make room"), "{refused}");
    }
    disk.make_room();
    let server = disk.serve();
    let mut client = Client::connect(server.port).unwrap();
    for key in 0..200 {
        assert!(client.incr(&format!("counter:{key}")) > Some(1));
    }
}
