//! Rendering into a buffer that is large enough does not allocate.

use bates_pattern::{Options, Position, Reset};

use super::{compile, position, rejecting, shuffled};

fn allocations(run: impl FnMut()) -> u64 {
    allocation_counter::measure(run).count_total
}

#[test]
fn rendering_does_not_allocate() {
    let dated = Options { reset: Reset::Yearly, ..Options::default() };
    let filtered = Options { order: shuffled().order, ..rejecting("openg2p") };
    for (template, options) in [
        ("{project}-{type}-{seq}", Options::default()),
        ("{project}-{type}-{seq:base62:6}", shuffled()),
        ("{project}-{type}-{date:%Y}-{seq:6}{check:mod97}", dated),
        ("{project}-{type}-{seq:11}-{check:verhoeff}", filtered),
    ] {
        let pattern = compile(template, options);
        let date = "2026-11-15".parse().unwrap();
        let scope = pattern.scope([("project", "PROJ"), ("type", "9012")], Some(date)).unwrap();
        let mut out = Vec::with_capacity(64);
        let counted = allocations(|| {
            for value in 0..100 {
                out.clear();
                let _ = scope.render(position(value), &mut out);
            }
            let mut walk = scope.accepted(position(0), Position::MAX);
            for _ in 0..100 {
                out.clear();
                walk.next_into(&mut out).unwrap();
            }
        });
        assert_eq!(counted, 0, "{template}");
    }
    // The counter works.
    assert!(allocations(|| drop(std::hint::black_box(vec![0_u8; 100]))) > 0);
}
