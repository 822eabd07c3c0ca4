//! A link shortener that takes keys from memory: one call to Bates for a hundred links, not one for each.
//!
//!     bates serve     # and in another terminal:
//!     cargo run --example shortener
//!     curl -d 'https://www.rust-lang.org' 127.0.0.1:3000      # answers with a key, such as 4Fk1zQ
//!     curl -i 127.0.0.1:3000/4Fk1zQ

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use axum::extract::{Path, State};
use axum::http::{StatusCode, header::LOCATION};
use axum::{Router, routing::get, routing::post};
use bates_client::{Client, Prefetched};

/// Prefetched keys, and the links. A real shortener keeps its links in a database; the keys are unique.
#[derive(Clone)]
struct Shortener {
    keys: Prefetched,
    links: Arc<RwLock<HashMap<String, String>>>,
}

/// Waits only if no key is in memory. While Bates is down, the prefetched keys are used up first.
async fn shorten(State(shortener): State<Shortener>, link: String) -> Result<String, (StatusCode, String)> {
    if !link.starts_with("https://") && !link.starts_with("http://") {
        return Err((StatusCode::BAD_REQUEST, "expected an http or https link\n".to_owned()));
    }
    let key = shortener.keys.next().await;
    let key = key.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")))?.to_string();
    shortener.links.write().expect("the lock is not poisoned").insert(key.clone(), link);
    Ok(key + "\n")
}

async fn follow(
    State(shortener): State<Shortener>,
    Path(key): Path<String>,
) -> Result<(StatusCode, [(&'static str, String); 1]), StatusCode> {
    let link = shortener.links.read().expect("the lock is not poisoned").get(&key).cloned();
    Ok((StatusCode::FOUND, [(LOCATION.as_str(), link.ok_or(StatusCode::NOT_FOUND)?)]))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |nth, default: &str| std::env::args().nth(nth).unwrap_or_else(|| default.to_owned());
    let client = Client::connect(argument(2, "http://127.0.0.1:8080"))?;
    let shortener = Shortener { keys: client.series("short").prefetch(100), links: Arc::default() };
    let keys = shortener.keys.clone();
    let routes = Router::new().route("/", post(shorten)).route("/{key}", get(follow)).with_state(shortener);
    let listener = tokio::net::TcpListener::bind(argument(1, "127.0.0.1:3000")).await?;
    println!("listening on {}", listener.local_addr()?);
    let stop = async { tokio::signal::ctrl_c().await.expect("a signal can be waited for") };
    axum::serve(listener, routes).with_graceful_shutdown(stop).await?;
    // Report unused keys, so that Bates can explain the gap.
    println!("{} keys were not used", keys.close().await?);
    Ok(())
}
