//! The binary as a process: its streams, its exit codes, and readers that close early.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";

fn bates(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.arg("pattern").args(arguments).env_remove("BATES_PATTERN_KEY");
    command.env_remove("CLICOLOR_FORCE").env_remove("NO_COLOR");
    command
}

fn run(arguments: &[&str]) -> Output {
    bates(arguments).stdin(Stdio::null()).output().unwrap()
}

fn start(arguments: &[&str]) -> Child {
    bates(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn answers_go_to_stdout_and_errors_to_stderr() {
    let good = run(&["render", "{seq:3}", "--position", "7"]);
    assert_eq!((code(&good), &*good.stdout, &*good.stderr), (0, b"007\n".as_slice(), b"".as_slice()));
    let bad = run(&["render", "{seq:3", "--position", "7"]);
    assert_eq!((code(&bad), &*bad.stdout), (2, b"".as_slice()));
    assert!(bad.stderr.starts_with(b"error: column 7: expected"));
    let ended = run(&["render", "{seq:1}", "--position", "9", "--count", "2"]);
    assert_eq!((code(&ended), &*ended.stdout), (1, b"9\n".as_slice()));
    let skipped = run(&["render", "{seq:3}", "--position", "0", "--reject", "openg2p"]);
    assert_eq!((code(&skipped), &*skipped.stdout), (0, b"201\n".as_slice()));
    assert_eq!(skipped.stderr, b"note: 201 positions skipped: the rules reject their numbers\n");
}

#[test]
fn invalid_arguments_exit_with_code_2() {
    for bad in [
        ["render", "{seq}", "--position", "x"].as_slice(),
        &["render", "{seq}"],
        &["render", "{seq}", "--position", "0", "--count", "0"],
        &["render", "{seq}", "--position", "0", "--param", "=x"],
        &["render", "{seq}", "--position", "0", "--reset", "weekly"],
        &["capacity", "{seq}", "--rate", "10"],
        &["nonsense"],
    ] {
        let refused = run(bad);
        assert_eq!((code(&refused), &*refused.stdout), (2, b"".as_slice()), "{bad:?}");
        assert!(refused.stderr.starts_with(b"error: "), "{bad:?}");
    }
}

#[test]
fn errors_never_show_a_key_not_even_a_bad_one() {
    for key in [KEY.to_owned(), format!("{KEY}zz"), KEY[1..].to_owned()] {
        let output = run(&["render", "{seq", "--position", "0", "--order", "shuffled", "--key", &key]);
        assert_eq!(code(&output), 2);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains(&KEY[1..9]), "{stderr}");
    }
}

#[test]
fn the_key_may_come_from_the_environment() {
    let arguments = ["render", "{seq:6}", "--position", "0", "--order", "shuffled"];
    let by_flag = run(&[arguments.as_slice(), &["--key", KEY]].concat());
    let by_variable = bates(&arguments).env("BATES_PATTERN_KEY", KEY).output().unwrap();
    assert_eq!(by_flag.stdout, by_variable.stdout);
    assert_eq!(code(&by_variable), 0);
    // The variable changes nothing without a shuffled order.
    let counting =
        bates(&["render", "{seq:6}", "--position", "0"]).env("BATES_PATTERN_KEY", KEY).output().unwrap();
    assert_eq!(counting.stdout, b"000000\n");
}

#[test]
fn standard_input_is_answered_line_by_line() {
    let mut child = start(&["parse", "INV-{seq}", "-"]);
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    // Waits for each answer before it writes the next line: a program that reads to the end first would hang here.
    for number in [7, 8] {
        writeln!(input, "INV-{number}").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), format!("INV-{number}  position {number}"));
    }
    input.write_all(b"INV-\xff\r\n\x1b[2J\nINV-9").unwrap();
    drop(input);
    let rest: Vec<String> = answers.map(Result::unwrap).collect();
    assert!(rest[0].starts_with("INV-\u{fffd}  not parsed"), "{rest:?}");
    assert!(rest[1].starts_with("\u{fffd}[2J  not parsed"), "no escape reaches a terminal: {rest:?}");
    assert_eq!(rest[2], "INV-9  position 9");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_line_without_an_end_is_refused() {
    let mut child = start(&["validate", "{seq}", "-"]);
    let mut input = child.stdin.take().unwrap();
    // The program may exit before it has read everything.
    let _ = input.write_all(&vec![b'1'; 1_000_000]);
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(output.stderr.ends_with(b"standard input, line 1: longer than 65536 bytes\n"));
}

#[test]
fn a_long_text_is_answered_like_any_other() {
    let output = run(&["validate", "{seq:4}", &"1".repeat(70_000), "1234"]);
    assert_eq!(code(&output), 1);
    assert!(output.stdout.ends_with(b"  valid\n"));
    assert!(output.stdout.len() < 71_000, "no column is as wide as the longest text");
}

#[test]
fn a_reader_that_closes_early_causes_no_error() {
    let mut child = start(&["render", "{seq}", "--position", "0", "--count", "100000000"]);
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"0\n1\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), &*output.stderr), (0, b"".as_slice()));
}

#[test]
fn output_has_colours_only_on_terminals_or_when_forced() {
    let plain = run(&["validate", "{seq:4}", "12"]);
    assert!(!plain.stdout.contains(&0x1b));
    let forced = bates(&["validate", "{seq:4}", "12"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced.stdout.contains(&0x1b));
}
