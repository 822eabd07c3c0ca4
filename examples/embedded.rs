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
    for (_, number) in documents.take(3).await?.iter() {
        println!("document {number}");
    }

    // Code that must not wait takes what is in memory, on whatever thread.
    let messages = bates.series("conversation")?.scope([("conversation", "abc123")]);
    println!("message {}", messages.next().await?);
    let other = std::thread::spawn(move || messages.try_next());
    println!("message {}", other.join().expect("it does not panic")?);

    // A number for something that is saved elsewhere: confirmed once it is, or else an explained gap.
    let invoice = bates.series("invoice")?.reserve(Duration::from_mins(1)).await?;
    println!("invoice {} is {}", invoice.number, bates.confirm(invoice.event).await?.state);

    // A number tells where it is from, and a text what speaks against it.
    let short = bates.series("short")?.next().await?;
    let found = bates.find(short.as_str()).await?;
    println!("short {short} is position {} of {}", found[0].position, found[0].entry.series().name());
    println!("validate {:?}", bates.series("short")?.validate("no-key").reasons());

    // What is in memory is given back, so that the next run goes on without a gap. Numberings keep the folder open.
    drop(documents);
    let closed = bates.close().await;
    println!("closed, {} given back", closed.returned);
    Ok(())
}
