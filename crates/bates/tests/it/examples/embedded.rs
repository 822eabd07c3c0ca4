//! The example that embeds the library.

use std::process::Command;

use tempfile::tempdir;

use super::{example_binary, words_after};

#[test]
fn each_run_of_the_embedded_example_continues_after_the_last() {
    let data = tempdir().unwrap();
    let mut shorts = Vec::new();
    for run in 0..3 {
        let output =
            Command::new(example_binary("embedded")).arg(data.path().join("numbers")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = String::from_utf8(output.stdout).unwrap();
        let documents = (0..4).map(|nth| format!("PROJ-9012-{}", 1001 + run * 4 + nth));
        assert!(words_after(&output, "document").into_iter().eq(documents), "{output}");
        assert!(
            words_after(&output, "message").into_iter().eq([1, 2].map(|nth| (run * 2 + nth).to_string())),
            "{output}"
        );
        let invoice = words_after(&output, "invoice");
        assert!(invoice[0].ends_with(&format!("-{:06}", run + 1)) && invoice[2] == "confirmed", "{output}");
        let short = words_after(&output, "short");
        assert_eq!(short[1..], ["is", "position", &run.to_string(), "of", "short"]);
        assert!(!shorts.contains(&short[0].to_owned()), "{} came twice", short[0]);
        shorts.push(short[0].to_owned());
    }
}
