//! The numbering machine inside a program: no server, one folder.
//!
//!     cargo run --example embedded              # or with another folder: … -- numbers

use std::time::Duration;

use bates::{Bates, Promise, Reset, Series};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "numbers".to_owned());
    let series = [
        Series::new("document", "{project}-{type}-{seq}").start(1001),
        Series::new("short", "{seq:base62:6}").shuffled(),
        Series::new("conversation", "{seq}").promise(Promise::Ordered).key("seq:{conversation}"),
        Series::new("invoice", "INV-{date:%Y}-{seq:6}").promise(Promise::Gapless).reset(Reset::Yearly),
    ];
    let bates = Bates::open(folder, series).await?;

    // A series and a scope: made once, used for many numbers.
    let documents = bates.series("document")?.scope([("project", "PROJ"), ("type", "9012")]);
    println!("document {}", documents.next().await?);
    for number in documents.take(3).await? {
        println!("document {number}");
    }

    // Code that must not wait takes numbers from memory, on any thread.
    let messages = bates.series("conversation")?.scope([("conversation", "abc123")]);
    println!("message {}", messages.next().await?);
    let other = std::thread::spawn(move || messages.try_next());
    println!("message {}", other.join().expect("it does not panic")?);

    // A number for something that is saved elsewhere: confirm it, or it becomes an explained gap.
    let invoice = bates.series("invoice")?.reserve(Duration::from_mins(1)).await?;
    println!("invoice {} is {}", invoice.number, bates.confirm(invoice.document_id).await?.state);

    // A number can be traced to its series and position; any text can be validated.
    let short = bates.series("short")?.next().await?;
    let found = bates.find(&short).await?;
    let position = found[0].position.expect("the library hides no position");
    println!("short {short} is position {position} of {}", found[0].entry.series().name());
    println!("validate {:?}", bates.series("short")?.validate("no-key").reasons());

    // Unused numbers go back to the store, so the next run continues without a gap. A scope keeps the folder open.
    drop(documents);
    println!("closed with {} gaps", bates.close().await?);
    Ok(())
}
