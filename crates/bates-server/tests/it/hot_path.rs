//! Reading and answering allocate nothing, and an announced length reserves no memory.

use bates_server::resp::{Limits, Progress, Protocol, Reader, Reply};

use super::claims::encode;

fn allocated(run: impl FnMut()) -> (u64, u64) {
    let measured = allocation_counter::measure(run);
    (measured.count_total, measured.bytes_total)
}

/// Reads all commands and returns their number.
fn drain(reader: &mut Reader, mut bytes: &[u8]) -> usize {
    let mut count = 0;
    loop {
        match reader.read(bytes).unwrap() {
            Progress::Command(command) => {
                count += 1;
                bytes = &bytes[command.consumed()..];
            }
            Progress::Empty { consumed } => bytes = &bytes[consumed..],
            Progress::Incomplete { .. } => return count,
        }
    }
}

#[test]
fn a_pipeline_is_read_and_answered_without_allocating() {
    let command = vec![b"INCR".to_vec(), b"seq:conv_abc123".to_vec()];
    let mut pipeline = encode(&vec![command; 64]);
    pipeline.extend_from_slice(b"PING\r\nINCR \"seq a\"\r\n");
    let (mut reader, mut out) = (Reader::new(Limits::AUTHENTICATED), Vec::with_capacity(4096));
    assert_eq!(drain(&mut reader, &pipeline), 66);
    let (count, _) = allocated(|| {
        assert_eq!(drain(&mut reader, &pipeline), 66);
        out.clear();
        let mut reply = Reply::new(&mut out, Protocol::Resp2);
        for value in 0..64 {
            reply.integer(value);
            reply.bulk(b"PROJ-9012-1001");
        }
    });
    assert_eq!(count, 0);
    // The counter works.
    assert!(allocated(|| drop(std::hint::black_box(vec![0_u8; 100]))).0 > 0);
}

#[test]
fn announced_lengths_reserve_nothing() {
    for announced in ["*65536\r\n", "*1\r\n$524288\r\n", "*2147483647\r\n", "*2\r\n$1\r\na\r\n$524288\r\nx"] {
        let (_, bytes) = allocated(|| {
            let mut reader = Reader::new(Limits::AUTHENTICATED);
            let _ = reader.read(announced.as_bytes());
        });
        assert!(bytes < 1024, "{announced:?} allocates {bytes} bytes");
    }
}

#[test]
fn memory_for_a_large_command_is_freed() {
    let large = encode(&[vec![b"x".to_vec(); 60_000]]);
    let small = encode(&[vec![b"x".to_vec()]]);
    let measured = allocation_counter::measure(|| {
        let mut reader = Reader::new(Limits::AUTHENTICATED);
        assert_eq!(drain(&mut reader, &large), 1);
        assert_eq!(drain(&mut reader, &small), 1);
        // Not dropped, so that the measurement counts only memory that the reader freed by itself.
        std::mem::forget(reader);
    });
    assert!(measured.bytes_max > 60_000 * 16, "the large command was read");
    assert!(measured.bytes_current <= 1024 * 16, "{} bytes are still allocated", measured.bytes_current);
}
